package zookeeper_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

func TestParse(t *testing.T) {
	for target, want := range map[string][]string{ // prefix, service, endpoints…
		"zookeeper://127.0.0.1:2181/arith":                {"/anser", "arith", "127.0.0.1:2181"},
		"zookeeper://h1:2181,h2:2181/prefix/deep/service": {"/prefix/deep", "service", "h1:2181", "h2:2181"},
		"zookeeper://[::1]:2181/my-team/arith.v2":         {"/my-team", "arith.v2", "[::1]:2181"},
		"zookeeper://h:2181//arith":                       {"/anser", "arith", "h:2181"},
	} {
		endpoints, prefix, service, err := zookeeper.Parse(regtest.URL(t, target))
		got := append([]string{prefix, service}, endpoints...)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Parse(%q) = %q, %v; want %q", target, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for target, say := range map[string]string{
		"etcd://h:2181/arith":            "use zookeeper://host:2181/service",
		"zookeeper:///arith":             "has no endpoint",
		"zookeeper://h:2181":             "names no service",
		"zookeeper://h:2181/anser/":      "names no service",
		"zookeeper://h/arith":            `"h" is not host:port`,
		"zookeeper://h1,h2:2181/arith":   `"h1" is not host:port`,
		"zookeeper://h:2181/ar ith":      "use letters",
		"zookeeper://h:2181/a//b/arith":  "a part that is not a node",
		"zookeeper://h:2181/a/../arith":  "a part that is not a node",
		"zookeeper://h:2181/arith?ttl=3": "has a query",
		"zookeeper://u:secret@h:1/arith": "use the option zookeeper.Digest",
		"zookeeper://h:2181/arith#x":     "fragment",
		"zookeeper://h:2181/a%00b/arith": "a part that is not a node",
	} {
		_, _, _, err := zookeeper.Parse(regtest.URL(t, target))
		regtest.Refused(t, target, err, say, "secret")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("zookeeper://h1:2181,h2:2181/prefix/deep/service")
	f.Add("zookeeper://[::1]:2181/x")
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse(target)
		if err != nil {
			return
		}
		endpoints, prefix, service, err := zookeeper.Parse(u)
		if err != nil {
			return
		}
		if len(endpoints) == 0 || prefix[0] != '/' || strings.HasSuffix(prefix, "/") || registry.CheckService(service) != nil {
			t.Fatalf("%q: %q, %q, %q", target, endpoints, prefix, service)
		}
		r, err := zookeeper.Dial(endpoints, zookeeper.Prefix(prefix))
		if err != nil {
			t.Fatalf("%q parses, but Dial says %v", target, err)
		}
		r.Close()
	})
}

func TestDialRefuses(t *testing.T) {
	for _, c := range []struct {
		endpoints []string
		opts      []zookeeper.Option
		say       string
	}{
		{nil, nil, "no zookeeper endpoint"},
		{[]string{"localhost"}, nil, "not host:port"},
		{[]string{"h:1", ""}, nil, "not host:port"},
		{[]string{"h:1"}, []zookeeper.Option{zookeeper.Prefix("anser")}, `use "/anser"`},
		{[]string{"h:1"}, []zookeeper.Option{zookeeper.Prefix("/a//b")}, `such as "/a/b"`},
		{[]string{"h:1"}, []zookeeper.Option{zookeeper.TTL(time.Millisecond)}, "use 1s or more"},
		{[]string{"h:1"}, []zookeeper.Option{zookeeper.Digest("", "x")}, "zookeeper.Digest"},
	} {
		r, err := zookeeper.Dial(c.endpoints, c.opts...)
		regtest.Refused(t, fmt.Sprintf("Dial(%q)", c.endpoints), err, c.say)
		if r != nil {
			t.Errorf("Dial(%q) returns a registry with its error", c.endpoints)
		}
	}
}

func TestSchemeOpensWithoutZooKeeper(t *testing.T) {
	regtest.OpensOffline(t, zookeeper.Scheme(), "zookeeper")
}

func ExampleParse() {
	u, _ := url.Parse("zookeeper://10.0.0.1:2181,10.0.0.2:2181/shop/arith")
	fmt.Println(zookeeper.Parse(u))
	// Output: [10.0.0.1:2181 10.0.0.2:2181] /shop arith <nil>
}
