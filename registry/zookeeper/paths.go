package zookeeper

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// segment returns the text as the name of a node: slashes and other special characters escaped as in URLs, and
// the names that mean something else in a path.
func segment(text string) string {
	switch text {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(text)
}

func (c *config) servicesPath() string { return c.prefix + "/services" }

func (c *config) servicePath(service string) string { return c.servicesPath() + "/" + segment(service) }

func (c *config) instancePath(in registry.Instance) string {
	return c.servicePath(in.Service) + "/" + segment(in.Key())
}

// documentPath returns the node of a document. All are next to each other: as its parent, the node of another
// document could not tell whether that document is there.
func (c *config) documentPath(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = segment(p)
	}
	return c.prefix + "/documents/" + strings.Join(parts, ":")
}

// decode returns the instance that a node of the service holds.
func (c *config) decode(service, name string, data []byte) (registry.Instance, error) {
	node := c.servicePath(service) + "/" + name
	in, err := registry.Decode(data)
	if err != nil {
		return in, fmt.Errorf("zookeeper node %s: %w", node, err)
	}
	// A record under a foreign name would be in two lists, or twice in one.
	if want := c.instancePath(in); want != node {
		return in, fmt.Errorf("zookeeper node %s holds the record of %s: move it there, or delete it", node, want)
	}
	return in, nil
}

// checkPrefix says what is wrong with the path that everything is under, or nil.
func checkPrefix(prefix string) error {
	for part := range strings.SplitSeq(strings.TrimPrefix(prefix, "/"), "/") {
		if prefix != "" && (part == "" || part == "." || part == "..") || strings.ContainsRune(part, 0) {
			return fmt.Errorf("zookeeper prefix %q has a part that is no node: use a path such as %q", prefix, path.Clean("/"+prefix))
		}
	}
	return nil
}
