package anser_test

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// loggedIn reports whether b begins with an AUTH frame that the door accepts.
func loggedIn(b []byte) bool {
	if len(b) < wire.HeaderSize {
		return false
	}
	h, err := wire.ParseHeader(b)
	body := b[wire.HeaderSize:]
	if err != nil || h.Type != wire.TypeAuth || h.ID != 0 || h.Flags != 0 || int(h.Length) > len(body) {
		return false
	}
	scheme, data, err := wire.ParseAuth(body[:h.Length])
	subject, ok := strings.CutPrefix(string(data), secret+":")
	return err == nil && scheme == "test" && ok && subject != ""
}

// seedLogins adds good credentials, and bad ones as in badinput, followed by calls and further
// credentials.
func seedLogins(f *testing.F) {
	calls := append(wire.AppendMethod(nil, 1, "Who.AmI"), wirepeer.Request(1, 1, nil)...)
	calls = wire.AppendMethod(calls, 2, "Bad.Secret")
	calls = append(calls, wirepeer.Request(2, 2, nil)...)
	calls = wire.AppendMethod(calls, 3, "Held.Call")
	calls = append(calls, wirepeer.Request(3, 3, nil)...)
	for _, b := range [][]byte{
		auth("ann"), auth(""), calls, nil,
		append(auth("ann"), calls...),
		bytes.Join([][]byte{auth("ann"), calls, auth("ann")}, nil),
		bytes.Join([][]byte{auth("ann"), calls, auth("bob")}, nil),
		bytes.Join([][]byte{auth("ann"), auth("ann"), auth("ann"), auth("ann"), auth("ann")}, nil),
		append(auth("ann"), wire.AppendAuth(nil, "test", []byte("wrong"))...),
		append(wire.AppendAuth(nil, "test", []byte("wrong")), calls...),
		append(wire.AppendAuth(nil, "tls", nil), calls...),
		append(wire.AppendAuth(nil, "test", []byte("panic:x")), calls...),
		wire.AppendHeader(nil, wire.Header{Type: wire.TypeAuth, Length: 64<<10 + 1}),
		wire.AppendHeader(nil, wire.Header{Type: wire.TypeAuth}),
		wire.AppendClose(nil, wire.Normal, ""),
	} {
		f.Add(b, uint8(len(b)/2))
		f.Add(b, uint8(len(b)))
	}
}

// FuzzServerLogin makes clients send arbitrary bytes where a server with authentication and a
// policy expects a credential, in two pieces. The server goes on if the credential is good.
// Otherwise it closes the connection, without having run a call or revealed anything. A call that
// the policy does not allow never runs, and no state is left when the client has gone.
func FuzzServerLogin(f *testing.F) {
	seedLogins(f)
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		good := loggedIn(data)
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			p := new(policy)
			p.set("ann Who.AmI", "ann Held.Call", "bob Who.AmI")
			var ran, denied atomic.Int64
			s := anser.NewServer(silent, anser.Authenticate(new(door)), anser.Authorize(p))
			anser.Handle(s, "Who.AmI", func(ctx context.Context, in *[]byte) (*[]byte, error) {
				ran.Add(1)
				if id := anser.IdentityFrom(ctx); id == nil || id.Subject == "" {
					t.Error("a call without an identity runs")
				}
				return in, nil
			})
			anser.Handle(s, "Held.Call", func(ctx context.Context, in *[]byte) (*[]byte, error) {
				ran.Add(1)
				<-ctx.Done()
				return in, nil
			})
			anser.Handle(s, "Bad.Secret", func(_ context.Context, in *[]byte) (*[]byte, error) {
				denied.Add(1)
				return in, nil
			})
			run(t, s, network.Listen("a:1"))
			nc, err := network.Dial(context.Background(), "tcp", "a:1")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			peer := wirepeer.New(nc)
			settings := wire.DefaultSettings()
			settings.Features = wire.FeatureAuth
			peer.Send(wirepeer.Hello(settings))
			for _, b := range pieces(data, cut) {
				peer.Send(b) // the server may have hung up
				synctest.Wait()
			}
			closedFirst := len(data) >= wire.HeaderSize && wire.Type(data[4]) == wire.TypeClose
			if good {
				if _, err := peer.ReadHello(); err != nil {
					t.Fatalf("a good credential is refused: %v", err)
				}
			} else {
				if err := peer.ReadPreface(); err == nil {
					if fr, err := peer.Next(); err == nil && fr.Type != wire.TypeClose {
						t.Fatalf("%s for %x", fr.Type, data)
					}
				} else if !closedFirst {
					t.Fatalf("nothing is said to a client that is refused: %v", err)
				}
				if ran.Load() != 0 {
					t.Fatal("a call of an unknown client ran")
				}
			}
			nc.Close()
			st := s.Stats()
			for range 60 {
				if st = s.Stats(); st.Conns == 0 && st.InFlight == 0 && (good || st.HandshakeFailed == 1) {
					break
				}
				time.Sleep(time.Second)
			}
			if denied.Load() != 0 {
				t.Fatal("what is not allowed ran")
			}
			if st.Conns != 0 || st.InFlight != 0 || !good && st.HandshakeFailed != 1 {
				t.Fatalf("a minute after the client has gone: %+v", st)
			}
		})
	})
}

// FuzzAddresses matches addresses against prefixes: the results are those of the types of package
// net.
func FuzzAddresses(f *testing.F) {
	for _, prefixes := range []string{"10.0.0.0/8", "::ffff:10.0.0.0/104 fe80::/10", "0.0.0.0/0", "::/0", "10.1.2.3/32 x"} {
		for _, ip := range []string{"10.1.2.3", "::ffff:10.1.2.3", "fe80::1", "192.0.2.1", "::1"} {
			f.Add(prefixes, "127.0.0.1/32", ip, "eth0")
		}
	}
	f.Fuzz(func(t *testing.T, allow, deny, ip, zone string) {
		from := net.ParseIP(ip)
		if from == nil {
			return
		}
		parse := func(text string) (list []netip.Prefix, in bool) {
			for _, field := range strings.Fields(text) {
				p, err := netip.ParsePrefix(field)
				if err != nil {
					continue
				}
				list = append(list, p)
				addr, bits := p.Addr(), p.Bits()
				if addr.Is4In6() && bits >= 96 {
					addr, bits = addr.Unmap(), bits-96
				}
				own := netip.PrefixFrom(addr, bits).Masked()
				size := net.IPv6len
				base := from.To16()
				if addr.Is4() {
					size, base = net.IPv4len, from.To4()
				} else if from.To4() != nil && bits < 96 && !addr.Is4In6() {
					base = nil // an IPv6 prefix does not apply to IPv4
				}
				if base != nil {
					network := net.IPNet{IP: own.Addr().AsSlice(), Mask: net.CIDRMask(bits, 8*size)}
					in = in || base.Mask(network.Mask).Equal(network.IP)
				}
			}
			return list, in
		}
		allowed, inAllowed := parse(allow)
		denied, inDenied := parse(deny)
		want := !inDenied && (len(allowed) == 0 || inAllowed)
		if strings.ContainsAny(zone, "%]:[") {
			zone = ""
		}
		if got := anser.AllowsAddress(allowed, denied, &net.TCPAddr{IP: from, Port: 1, Zone: zone}); got != want {
			t.Fatalf("%s with %v but not %v: %t, want %t", from, allowed, denied, got, want)
		}
	})
}
