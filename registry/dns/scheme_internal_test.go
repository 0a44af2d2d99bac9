package dns

import (
	"net/url"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// FuzzParse checks that every accepted target can be looked up.
func FuzzParse(f *testing.F) {
	for _, target := range []string{
		"dns:///arith.shop.internal:8972", "dns:///_arith._tcp.shop.internal", "dns://10.0.0.53,[::1]:53/a.b:1", "dns://a", "dns:///1.2.3.4:5", "dns:///a..b:1", "dns:///{service}:1", "dns:///a.:1",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse(target)
		if err != nil {
			return
		}
		servers, name, err := Parse(u)
		if err != nil {
			return
		}
		p, err := parsePattern(name)
		if err != nil || checkName(p.host) != nil {
			t.Fatalf("%q: %q, %v", target, name, err)
		}
		for _, full := range parseConfig("search example.com\noptions ndots:2\n").candidates(p.host) {
			if _, err := dnsmessage.NewName(full); err != nil && len(full) <= 254 {
				t.Fatalf("%q: %q is not a name: %v", target, full, err)
			}
		}
		for _, s := range servers {
			if address, err := serverAddress(s); err != nil || address == "" {
				t.Fatalf("%q: server %q, %v", target, s, err)
			}
		}
	})
}

// FuzzConfig checks that any resolv.conf results in servers and names to query.
func FuzzConfig(f *testing.F) {
	f.Add("nameserver 10.0.0.53\nsearch a.test b.test\noptions ndots:5 timeout:1\n")
	f.Add("# nothing\nnameserver\noptions ndots:x ndots:-1\ndomain")
	f.Fuzz(func(t *testing.T, text string) {
		c := parseConfig(text)
		if n := len(c.servers); n < 1 || n > 3 || c.ndots < 0 || c.ndots > 15 {
			t.Fatalf("%+v", c)
		}
		names := c.candidates("a.b")
		if len(names) > len(c.search)+1 || !slices.Contains(names, "a.b.") {
			t.Fatalf("%+v: candidates %q", c, names)
		}
		for _, name := range names {
			if checkName(name) != nil {
				t.Fatalf("%+v: %q cannot be looked up", c, name)
			}
		}
	})
}
