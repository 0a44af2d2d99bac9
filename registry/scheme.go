package registry

import "net/url"

// Scheme teaches a client to understand targets of the form "name://…". It is an option of
// anser.Dial.
type Scheme struct {
	// Name is the scheme, in lower case: "etcd".
	Name string
	// Open returns the registry that target names and the service to look for in it. It does
	// not wait for the registry. A resolver that is an io.Closer is closed with the client.
	Open func(target *url.URL) (r Resolver, service string, err error)
}

// DialOption makes a Scheme an option of anser.Dial.
func (Scheme) DialOption() {}
