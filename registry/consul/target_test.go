package consul_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestParse(t *testing.T) {
	for target, want := range map[string][]string{ // endpoint, prefix, service
		"consul://127.0.0.1:8500/arith":     {"127.0.0.1:8500", "", "arith"},
		"consul://h:8500/shop-/arith":       {"h:8500", "shop-", "arith"},
		"consul://[::1]:8500//arith.v2":     {"[::1]:8500", "", "arith.v2"},
		"consul://consul.local:8500/Arith1": {"consul.local:8500", "", "Arith1"},
	} {
		endpoint, prefix, service, err := consul.Parse(regtest.URL(t, target))
		if got := []string{endpoint, prefix, service}; err != nil || !slices.Equal(got, want) {
			t.Errorf("Parse(%q) = %q, %v; want %q", target, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for target, say := range map[string]string{
		"etcd://h:8500/arith":            "use consul://host:8500/service",
		"consul:///arith":                `"" is not host:port`,
		"consul://h:8500":                "names no service",
		"consul://h:8500/shop-/":         "names no service",
		"consul://h/arith":               `"h" is not host:port`,
		"consul://h1:8500,h2:8500/arith": "is more than one",
		"consul://h:8500/ar ith":         "use letters",
		"consul://h:8500/a/b/arith":      "bad prefix",
		"consul://h:8500/arith?dc=1":     "has a query",
		"consul://u:secret@h:1/arith":    "use the option consul.Token",
		"consul://h:8500/arith#x":        "fragment",
	} {
		_, _, _, err := consul.Parse(regtest.URL(t, target))
		regtest.Refused(t, target, err, say, "secret")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("consul://h1:8500/shop-/service")
	f.Add("consul://[::1]:8500/x")
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse(target)
		if err != nil {
			return
		}
		endpoint, prefix, service, err := consul.Parse(u)
		if err != nil {
			return
		}
		if strings.Contains(prefix, "/") || registry.CheckService(service) != nil {
			t.Fatalf("%q: %q, %q", target, prefix, service)
		}
		r, err := consul.Dial(endpoint, consul.Prefix(prefix))
		if err != nil {
			t.Fatalf("%q parses, but Dial says %v", target, err)
		}
		r.Close()
	})
}

func TestDialRefuses(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		opts     []consul.Option
		say      string
	}{
		{"", nil, "not host:port"},
		{"localhost", nil, "not host:port"},
		{"h:1,h:2", nil, "is more than one"},
		{"h:1", []consul.Option{consul.Prefix("a/b")}, "use letters"},
		{"h:1", []consul.Option{consul.TTL(time.Millisecond)}, "use 1s or more"},
	} {
		r, err := consul.Dial(c.endpoint, c.opts...)
		regtest.Refused(t, fmt.Sprintf("Dial(%q)", c.endpoint), err, c.say)
		if r != nil {
			t.Errorf("Dial(%q) returns a registry with its error", c.endpoint)
		}
	}
}

func TestSchemeOpensWithoutConsul(t *testing.T) {
	regtest.OpensOffline(t, consul.Scheme(), "consul")
}

func ExampleParse() {
	u, _ := url.Parse("consul://127.0.0.1:8500/shop-/arith")
	fmt.Println(consul.Parse(u))
	// Output: 127.0.0.1:8500 shop- arith <nil>
}

func ExampleDial() {
	reg, err := consul.Dial("127.0.0.1:8500", consul.Prefix("shop-"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close() // withdraws the announced instances
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"}
	if err := reg.Register(ctx, in); err != nil { // waits for an agent
		fmt.Println(err)
	}
}
