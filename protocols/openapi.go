package protocols

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/anser-rpc/anser/protocols/internal/openapi"
)

// Info is what the description of a server in OpenAPI says of it as a whole; see [OpenAPI]. Fields
// without a value are left out, except that the title is "Services" and the version "0" then.
type Info struct {
	Title          string
	Version        string // of the services, not of OpenAPI
	Summary        string // one line
	Description    string // may be Markdown
	TermsOfService string // a URL
	Contact        Contact
	License        License
	// Servers are the URLs under which clients reach the server, if they are others than the one
	// where they found the description: behind a proxy, or with a path in front.
	Servers []string
}

// Contact is the person or team that answers questions about the services.
type Contact struct{ Name, URL, Email string }

// License is the license of the services. It needs a name, and may have an identifier of SPDX or a
// URL, not both.
type License struct{ Name, Identifier, URL string }

// OpenAPI adds to the description of the methods, which a server with [HTTP] serves in OpenAPI 3.1
// at /openapi.json, with a page at /openapi that shows it and calls the methods. A caller finds
// those methods in it that it may call; without an identity on a server with [anser.Authenticate],
// it gets an error. The page itself says nothing of the methods. A server with [anser.NoDescribe]
// has neither.
func OpenAPI(info Info) Option { return func(o *options) { o.info = info } }

// NoOpenAPI switches off /openapi.json and the page at /openapi.
func NoOpenAPI() Option { return func(o *options) { o.noOpenAPI = true } }

// check returns what is wrong with the info.
func (i *Info) check() error {
	var wrong []error
	for _, link := range [][2]string{
		{"the terms of service are", i.TermsOfService}, {"the URL of the contact is", i.Contact.URL}, {"the URL of the license is", i.License.URL},
	} {
		if u, err := url.Parse(link[1]); err != nil || link[1] != "" && !u.IsAbs() {
			wrong = append(wrong, fmt.Errorf("protocols.OpenAPI: %s %q: give an absolute URL", link[0], link[1]))
		}
	}
	for _, text := range i.Servers {
		if _, err := url.Parse(text); err != nil || text == "" {
			wrong = append(wrong, fmt.Errorf("protocols.OpenAPI: the server %q is no URL: give one, or a path", text))
		}
	}
	switch {
	case i.License != License{} && i.License.Name == "":
		wrong = append(wrong, errors.New("protocols.OpenAPI: the license has no name: give it one"))
	case i.License.Identifier != "" && i.License.URL != "":
		wrong = append(wrong, errors.New("protocols.OpenAPI: the license has an identifier and a URL: leave one out"))
	}
	return errors.Join(wrong...)
}

// document returns the info in the form of the document.
func (i *Info) document() openapi.Info {
	d := openapi.Info{
		Title: i.Title, Version: i.Version, Summary: i.Summary, Description: i.Description, TermsOfService: i.TermsOfService,
		Servers: slices.Clone(i.Servers),
	}
	if i.Contact != (Contact{}) {
		d.Contact = &openapi.Contact{Name: i.Contact.Name, URL: i.Contact.URL, Email: i.Contact.Email}
	}
	if i.License != (License{}) {
		d.License = &openapi.License{Name: i.License.Name, Identifier: i.License.Identifier, URL: i.License.URL}
	}
	return d
}
