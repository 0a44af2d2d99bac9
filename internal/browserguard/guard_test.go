package browserguard_test

import (
	"net"
	"testing"

	"github.com/anser-rpc/anser/internal/browserguard"
)

func TestOwnHost(t *testing.T) {
	for authority, want := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "::1": true, "localhost": true, "a.localhost:1": true,
		"10.0.0.7": true, "app.example:80": true, "APP.example": true,
		"": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example:80": false,
	} {
		if got := browserguard.OwnHost(authority, []string{"app.example"}); got != want {
			t.Errorf("%q is an own host: %v, want %v", authority, got, want)
		}
	}
}

func TestIsLocal(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip)} }
	for _, a := range []net.Addr{nil, tcp("127.0.0.1"), tcp("::1"), &net.UnixAddr{}} {
		if !browserguard.IsLocal(a) {
			t.Errorf("%v is not local", a)
		}
	}
	for _, a := range []net.Addr{tcp("10.0.0.7"), tcp("0.0.0.0"), &net.UDPAddr{}} {
		if browserguard.IsLocal(a) {
			t.Errorf("%v is local", a)
		}
	}
}
