package anser_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// closable is a resolver that notes its end.
type closable struct {
	*feed
	closed int
}

func (c *closable) Close() error {
	c.closed++
	return nil
}

func TestResolverOfAFailedDialIsClosed(t *testing.T) {
	r := &closable{feed: newFeed()}
	_, err := anser.Dial("bad://x", silent, registry.Scheme{Name: "bad", Open: func(*url.URL) (registry.Resolver, string, error) { return r, "not a name", nil }})
	if err == nil || !strings.Contains(err.Error(), `target "bad://x": service name "not a name"`) || r.closed != 1 {
		t.Fatal(err, r.closed)
	}
}
