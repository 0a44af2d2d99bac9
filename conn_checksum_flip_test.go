package anser_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/wire"
)

// flipper flips one bit that one side of a connection sends.
type flipper struct {
	net.Conn
	write bool         // flips a written bit, else a read one
	bit   int64        // the index of the bit
	at    atomic.Int64 // bytes that have passed
	done  *atomic.Bool
}

func (f *flipper) pass(p []byte) {
	at := f.at.Add(int64(len(p))) - int64(len(p))
	if i := f.bit/8 - at; i >= 0 && i < int64(len(p)) && f.done.CompareAndSwap(false, true) {
		p[i] ^= 1 << (f.bit % 8)
	}
}

func (f *flipper) Write(p []byte) (int, error) {
	if f.write {
		p = bytes.Clone(p)
		f.pass(p)
	}
	return f.Conn.Write(p)
}

func (f *flipper) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if !f.write {
		f.pass(p[:n])
	}
	return n, err
}

// Whichever bit is flipped, from the first one of the handshake on, the caller gets a true
// result.
func TestFlippedBits(t *testing.T) {
	const in = "a message of some bytes"
	for _, row := range []struct{ server, client bool }{{server: true}, {client: true}} {
		for _, write := range []bool{true, false} {
			t.Run(fmt.Sprintf("of the server %t, written %t", row.server, write), func(t *testing.T) {
				failed, flips, slow := 0, 0, 0
				for bit := int64(0); ; bit++ {
					var done atomic.Bool
					bubble(t, func(t *testing.T, network *ansertest.Network) {
						var opts []anser.ServerOption
						dials := []anser.DialOption{anser.Conns(1), anser.Dialer(func(ctx context.Context, n, address string) (net.Conn, error) {
							nc, err := network.Dial(ctx, n, address)
							if err != nil {
								return nil, err
							}
							return &flipper{Conn: nc, write: write, bit: bit, done: &done}, nil
						})}
						if row.server {
							opts = append(opts, anser.Checksums())
						} else {
							dials = append(dials, anser.Checksums())
						}
						var ran atomic.Int64
						serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(_ context.Context, m *[]byte) (*[]byte, error) {
							ran.Add(1)
							if string(*m) != in {
								t.Errorf("bit %d: the handler got %q", bit, *m)
							}
							return text("re: " + string(*m)), nil
						}}, opts...)
						c := dial(t, "a:1", dials...)
						began := time.Now()
						out, err := call(context.Background(), c, "Echo.Say", in, anser.Timeout(3*time.Second), anser.WithFailMode(anser.Failfast))
						if took := time.Since(began); took > time.Second {
							slow++
							t.Logf("bit %d: the call took %v: a side waited for bytes that do not come: %v", bit, took, err)
						}
						synctest.Wait()
						n := ran.Load()
						switch {
						case err == nil && (out != "re: "+in || n != 1):
							t.Errorf("bit %d: the reply is %q, and it ran %d times", bit, out, n)
						case err == nil:
						case n > 1:
							t.Errorf("bit %d: it ran %d times: %v", bit, n, err)
						case n != 0 && fault(t, err).Outcome != anser.OutcomeUnknown:
							t.Errorf("bit %d: it ran, but %v", bit, err)
						}
						if err != nil {
							failed++
						}
					})
					if !done.Load() {
						break // there are no more
					}
					flips++
				}
				if slow > 1 { // the bit that announces AUTH, which the server then waits for
					t.Errorf("%d of the flips had a side wait for bytes that do not come", slow)
				}
				t.Logf("%d bits, %d of which had the call fail", flips, failed)
				if least := 8 * (wire.PrefaceSize + 2*wire.HeaderSize + len(in)); flips < least || failed < least/2 {
					t.Errorf("%d bits were flipped and %d calls failed: that is too few", flips, failed)
				}
			})
		}
	}
}
