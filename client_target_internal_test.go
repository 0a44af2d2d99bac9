package anser

import (
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry"
)

// FuzzTarget checks that a target is either refused with advice, or consists of addresses that can
// be dialed, each once, and remains valid in another order.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{
		"a:1", "a:1, b:2", "tcp://a:1,b:2", "unix:///run/x", "unix:///a,unix:///b", "tls://a:1,tls://b:1", "tls://[::1]:443", "quic://a:1,b:2", "file:///etc/services.json?x", "file:///x#y", "tcp://a:1,quic://b:2", "tcp://a:1,tcp://b:2",
		"", "a", "a:", ":1", "a:1,", "a:1,a:1", "tcp://", "://", "nope://a:1", "tcp://a:0", "a:99999", "0.0.0.0:1", "http://a:1/path", "file:///\x00/s",
	} {
		f.Add(target)
	}
	transports := []Transport{{Scheme: "quic"}, {Scheme: "http"}, {Scheme: "unix"}, {Scheme: "tls"}}
	f.Fuzz(func(t *testing.T, target string) {
		if strings.HasPrefix(target, "file:") {
			return // would be opened
		}
		src, err := parseTarget(target, nil, transports)
		if err != nil {
			if !strings.Contains(err.Error(), "target") && !strings.Contains(err.Error(), "address") {
				t.Fatalf("%q is refused without saying what it is: %v", target, err)
			}
			return
		}
		if len(src.fixed) == 0 || src.resolver != nil {
			t.Fatalf("%q stands for nothing: %+v", target, src)
		}
		var addresses []string
		for _, in := range src.fixed {
			if err := registry.CheckAddress(in.Address); err != nil {
				t.Fatalf("%q: %v", target, err)
			}
			if network, host := splitAddress(in.Address); network == "" || host == "" || network == "tcp" && host != in.Address {
				t.Fatalf("%q: %q is %q of %q", target, in.Address, host, network)
			}
			if strings.Contains(in.Address, "@") {
				return // in another order, what is before it can look like a user
			}
			addresses = append(addresses, in.Address)
		}
		scheme, prefix := "tcp://", ""
		if name, _, ok := strings.Cut(target, "://"); ok && name != "tcp" {
			prefix = name + "://"
			scheme = prefix
		}
		rest := make([]string, len(addresses))
		for i, a := range addresses {
			rest[i] = strings.TrimPrefix(a, prefix)
		}
		slices.Reverse(rest)
		again, err := parseTarget(scheme+strings.Join(rest, ","), nil, transports)
		if err != nil || !registry.Equal(again.fixed, src.fixed) {
			t.Fatalf("%q is %q, which is read as %+v, %v", target, addresses, again.fixed, err)
		}
	})
}
