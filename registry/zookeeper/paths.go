package zookeeper

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
)

// segment returns the text as the name of a node: it escapes slashes and other special characters
// as in URLs, and the names with a special meaning in a path.
func segment(text string) string {
	switch text {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(text)
}

func (c *config) servicesPath() string {
	if c.rpcx {
		return c.prefix
	}
	return c.prefix + "/services"
}

func (c *config) servicePath(service string) string { return c.servicesPath() + "/" + segment(service) }

func (c *config) instancePath(in registry.Instance) string {
	if c.rpcx {
		name, _ := rpcxlayout.Name(in) // encode has the error
		return c.servicePath(in.Service) + "/" + name
	}
	return c.servicePath(in.Service) + "/" + segment(in.Key())
}

// documentPath returns the node of a document. All of them are siblings: the existence of a node
// that is the parent of another document would not mean that its own document exists.
func (c *config) documentPath(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = segment(p)
	}
	folder := "/documents/"
	if c.rpcx { // there, a service may have that name
		folder = "/@documents/"
	}
	return c.prefix + folder + strings.Join(parts, ":")
}

// decode returns the instance stored in a node of the service.
func (c *config) decode(service, name string, data []byte) (registry.Instance, error) {
	if c.rpcx {
		return rpcxlayout.Decode(service, name, data)
	}
	node := c.servicePath(service) + "/" + name
	in, err := registry.Decode(data)
	if err != nil {
		return in, fmt.Errorf("zookeeper node %s: %w", node, err)
	}
	// A record under a foreign name would appear in two lists, or twice in one.
	if want := c.instancePath(in); want != node {
		return in, fmt.Errorf("zookeeper node %s holds the record of %s: move it there, or delete it", node, want)
	}
	return in, nil
}

// checkPrefix returns an error if the root path of the registry is invalid.
func checkPrefix(prefix string) error {
	for part := range strings.SplitSeq(strings.TrimPrefix(prefix, "/"), "/") {
		if prefix != "" && (part == "" || part == "." || part == "..") || strings.ContainsRune(part, 0) {
			return fmt.Errorf("zookeeper prefix %q has a part that is not a node: use a path such as %q", prefix, path.Clean("/"+prefix))
		}
	}
	return nil
}
