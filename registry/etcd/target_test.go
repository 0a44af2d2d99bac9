package etcd_test

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestParse(t *testing.T) {
	for target, want := range map[string][]string{ // prefix, service, endpoints…
		"etcd://127.0.0.1:2379/arith":                 {"/anser", "arith", "127.0.0.1:2379"},
		"etcd://h1:2379,h2:2379/prefix/deep/service":  {"/prefix/deep", "service", "h1:2379", "h2:2379"},
		"etcd://[::1]:2379/my-team/arith.v2":          {"/my-team", "arith.v2", "[::1]:2379"},
		"etcd://h:2379//arith":                        {"/anser", "arith", "h:2379"},
		"etcd://h1:1,h2:2,h3:3/anser/Arith_1":         {"/anser", "Arith_1", "h1:1", "h2:2", "h3:3"},
		"etcd://etcd.svc.cluster.local:2379/a%20b/c":  {"/a b", "c", "etcd.svc.cluster.local:2379"},
		"etcd://127.0.0.1:2379/a/b/c/d/e/f/g/service": {"/a/b/c/d/e/f/g", "service", "127.0.0.1:2379"},
	} {
		endpoints, prefix, service, err := etcd.Parse(regtest.URL(t, target))
		got := append([]string{prefix, service}, endpoints...)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Parse(%q) = %q, %v; want %q", target, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for target, say := range map[string]string{
		"consul://h:2379/arith":       "use etcd://host:2379/service",
		"etcd:///arith":               "has no endpoint",
		"etcd://h:2379":               "names no service",
		"etcd://h:2379/":              "names no service",
		"etcd://h:2379/anser/":        "names no service",
		"etcd://h/arith":              `"h" is not host:port`,
		"etcd://,h:2379/arith":        `"" is not host:port`,
		"etcd://h1,h2:2379/arith":     `"h1" is not host:port`,
		"etcd://h:2379/ar ith":        "use letters",
		"etcd://h:2379/a//b/arith":    "empty part in its prefix",
		"etcd://h:2379/arith?ttl=3":   "has a query",
		"etcd://u:secret@h:1/arith":   "use the option etcd.User",
		"etcd://h:2379/arith#x":       "fragment",
		"etcd://h:2379/" + "%2F":      "names no service",
		"etcd://h:2379/x/ar%2F%3Fith": "use letters",
	} {
		_, _, _, err := etcd.Parse(regtest.URL(t, target))
		regtest.Refused(t, target, err, say, "secret")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("etcd://h1:2379,h2:2379/prefix/deep/service")
	f.Add("etcd://[::1]:2379/x")
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse(target)
		if err != nil {
			return
		}
		endpoints, prefix, service, err := etcd.Parse(u)
		if err != nil {
			return
		}
		if len(endpoints) == 0 || prefix[0] != '/' || strings.HasSuffix(prefix, "/") || registry.CheckService(service) != nil {
			t.Fatalf("%q: %q, %q, %q", target, endpoints, prefix, service)
		}
		r, err := etcd.Dial(endpoints, etcd.Prefix(prefix))
		if err != nil {
			t.Fatalf("%q parses, but Dial says %v", target, err)
		}
		r.Close()
	})
}

func TestDialRefuses(t *testing.T) {
	for _, c := range []struct {
		endpoints []string
		opts      []etcd.DialOption
		say       string
	}{
		{nil, nil, "no etcd endpoint"},
		{[]string{"localhost"}, nil, "not host:port"},
		{[]string{"h:1", ""}, nil, "not host:port"},
		{[]string{"ftp://h:1"}, nil, "unknown scheme"},
		{[]string{"http://h:1", "https://h:1"}, nil, "differ in scheme"},
		{[]string{"http://h:1"}, []etcd.DialOption{etcd.TLS(&tls.Config{})}, "use https"},
		{[]string{"h:1"}, []etcd.DialOption{etcd.Prefix("anser")}, `use "/anser"`},
		{[]string{"h:1"}, []etcd.DialOption{etcd.TTL(time.Millisecond)}, "use 1s or more"},
	} {
		r, err := etcd.Dial(c.endpoints, c.opts...)
		regtest.Refused(t, fmt.Sprintf("Dial(%q)", c.endpoints), err, c.say)
		if r != nil {
			t.Errorf("Dial(%q) returns a registry with its error", c.endpoints)
		}
	}
	if _, err := etcd.New(nil); err == nil || !strings.Contains(err.Error(), "use etcd.Dial") {
		t.Errorf("New(nil) = %v", err)
	}
	if _, err := etcd.New(clientv3.NewCtxClient(t.Context())); err == nil || !strings.Contains(err.Error(), "use etcd.Dial") {
		t.Errorf("New of a client without a connection = %v", err)
	}
}

func TestSchemeOpensWithoutEtcd(t *testing.T) {
	regtest.OpensOffline(t, etcd.Scheme(), "etcd")
}

func ExampleParse() {
	u, _ := url.Parse("etcd://10.0.0.1:2379,10.0.0.2:2379/shop/arith")
	fmt.Println(etcd.Parse(u))
	// Output: [10.0.0.1:2379 10.0.0.2:2379] /shop arith <nil>
}
