package anser

import (
	"net"
	"testing"
)

func TestReachable(t *testing.T) {
	for name, test := range map[string]struct {
		addrs []string
		want  string
	}{
		"nothing":        {nil, "127.0.0.1"},
		"loopback":       {[]string{"127.0.0.1/8", "::1/128", "fe80::1/64"}, "127.0.0.1"},
		"both":           {[]string{"::1/128", "2001:db8::5/64", "192.0.2.7/24", "192.0.2.8/24"}, "192.0.2.7"},
		"version 6 only": {[]string{"127.0.0.1/8", "fe80::1/64", "2001:db8::5/64", "2001:db8::6/64"}, "2001:db8::5"},
	} {
		var addrs []net.Addr
		for _, a := range test.addrs {
			ip, n, err := net.ParseCIDR(a)
			if err != nil {
				t.Fatal(err)
			}
			addrs = append(addrs, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		if ip := reachable(addrs); ip.String() != test.want {
			t.Errorf("%s: %s, want %s", name, ip, test.want)
		}
	}
}
