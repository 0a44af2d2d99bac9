package accept_test

import (
	"net"
	"testing"

	"github.com/anser-rpc/anser/internal/accept"
)

type addr struct{ network, address string }

func (a addr) Network() string { return a.network }
func (a addr) String() string  { return a.address }

func TestAddresses(t *testing.T) {
	for a, want := range map[addr]struct{ is, elsewhere bool }{
		{"tcp", "127.0.0.1:80"}:           {true, false},
		{"tcp", "127.8.9.1:80"}:           {true, false},
		{"tcp", "[::1]:80"}:               {true, false},
		{"tcp", "[::ffff:127.0.0.1]:80"}:  {true, false},
		{"udp", "127.0.0.1:80"}:           {true, false},
		{"quic", "127.0.0.1:80"}:          {true, false},
		{"ws", "127.0.0.1:80/127.0.0.1"}:  {true, false},
		{"ws", "localhost:80/path"}:       {true, false},
		{"unix", "/run/anser"}:            {true, false},
		{"unix", "@abstract"}:             {true, false},
		{"pipe", "pipe"}:                  {true, false},
		{"memory", "0.0.0.0:80"}:          {true, false},
		{"tcp", "0.0.0.0:80"}:             {false, true},
		{"tcp", "[::]:80"}:                {false, true},
		{"tcp", "[fe80::1%eth0]:80"}:      {false, true},
		{"ws", "10.0.0.1:80/127.0.0.1:1"}: {false, true},
		{"tcp", "10.0.0.1"}:               {false, true},
		{"tcp", ":80"}:                    {false, false},
		{"tcp", "localhost.example:80"}:   {false, false},
		{"bufconn", "bufconn"}:            {false, false},
		{"", ""}:                          {false, false},
	} {
		if is, elsewhere := accept.Near(a), accept.Elsewhere(a); is != want.is || elsewhere != want.elsewhere {
			t.Errorf("%v: %v, %v; want %v", a, is, elsewhere, want)
		}
	}
	if accept.Near(nil) || accept.Elsewhere(nil) {
		t.Error("no address is known to be somewhere")
	}
	var none *net.TCPAddr
	if accept.Near(none) {
		t.Error("a nil address of TCP is taken for a local one")
	}
}
