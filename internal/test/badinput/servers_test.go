package badinput_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/testusage"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

func TestBadServers(t *testing.T) {
	for _, over := range transports {
		t.Run(over.name, func(t *testing.T) {
			testusage.Leaves(t, func() {
				g := newTarget(t, over)
				g.settle(t)
				rest := g.work(t)
				t.Run("rows", func(t *testing.T) {
					each(t, true, func(r row) bool { return r.hello != nil || r.reply != nil }, func(t *testing.T, r row) {
						for name, write := range manners {
							t.Run(name, func(t *testing.T) { deceive(t, over, r.toClient, write) })
						}
					})
				})
				rest()
				g.stop(t)
			})
		})
	}
}

// heard records the ends of connections reported to a client's observer.
type heard struct {
	mu   sync.Mutex
	ends []error
}

func (h *heard) note(_ anser.ConnInfo, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.ends = append(h.ends, err)
	}
}

// of returns how many connections ended, or did not begin, for the reason.
func (h *heard) of(r wire.Reason) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, err := range h.ends {
		if broken, ok := errors.AsType[*wire.Error](err); ok && broken.Reason == r {
			n++
		}
	}
	return n
}

// deceive makes a client call a server that is bad at first.
func deceive(t *testing.T, over transport, r toClient, write func(net.Conn, []byte) error) {
	network, address, _ := strings.Cut(over.address(t), "://")
	if address == "" {
		network, address = "tcp", network
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	target := l.Addr()
	serverTLS, clientTLS := identity()
	if over.tls {
		l = tls.NewListener(l, serverTLS)
	}
	var healed atomic.Bool
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				nc.SetDeadline(time.Now().Add(2 * bound))
				r.serve(nc, write, &healed, stop)
			})
		}
	})
	ends := new(heard)
	opts := []anser.DialOption{
		silent, anser.NoSnapshot(), anser.Conns(1), anser.Timeout(bound), anser.ConnectTimeout(bound), anser.Observe(anser.Observer{ConnClosed: ends.note, ConnFailed: ends.note}),
		anser.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, target.Network(), target.String())
		}),
	}
	if over.tls {
		opts = append(opts, anser.TLS(clientTLS))
	}
	switch {
	case r.how.late:
		opts = append(opts, anser.WriteStall(time.Hour), anser.ReadTimeout(impatience), anser.HandshakeTimeout(bound))
	case r.how.stall && r.hello != nil: // long enough for the handshake with the good server
		opts = append(opts, anser.HandshakeTimeout(10*impatience))
	case r.how.stall:
		opts = append(opts, anser.WriteStall(impatience), anser.HandshakeTimeout(bound))
	default:
		opts = append(opts, anser.HandshakeTimeout(bound))
	}
	if r.compressor != nil {
		opts = append(opts, anser.Compress(r.compressor))
	}
	c, err := anser.Dial("tcp://127.0.0.1:1", opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Close()
		l.Close()
		close(stop)
		wg.Wait()
	}()
	if as := map[uint8]codec.Codec{3: protobuf.NewJSON(), 5: msgpack.New()}[r.codec]; as != nil {
		_, err = anser.Call[message](context.Background(), c, "Good.Echo", new(message), anser.WithFailMode(anser.Failfast), anser.Codec(as))
	} else if r.opens {
		err = converse(c)
	} else {
		err = ask(t, c)
	}
	if (err == nil) != r.good {
		t.Errorf("the call: %v, want it to fail: %t", err, !r.good)
	} else {
		t.Log(err)
	}
	for end := time.Now().Add(bound); r.why != 0 && ends.of(r.why) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("connections ended with %v, want %s", ends.ends, r.why)
		}
	}
	if r.why != 0 {
		t.Log("counted by the observer's ConnClosed or ConnFailed:", r.why)
	}
	healed.Store(true)
	for end := time.Now().Add(bound); ; time.Sleep(5 * time.Millisecond) {
		if err = ask(t, c); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server is good now, but: %v", err)
		}
	}
}

// ask makes a call whose correct reply is "ok".
func ask(t *testing.T, c *anser.Client) error {
	t.Helper()
	in := []byte("hello")
	out, err := anser.Call[[]byte](context.Background(), c, "Good.Echo", &in, anser.WithFailMode(anser.Failfast))
	if err == nil && string(*out) != "ok" {
		t.Errorf("the reply is %q without an error", *out)
	}
	return err
}

// converse opens a stream and receives until its end.
func converse(c *anser.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	st, err := anser.Open[[]byte, []byte](ctx, c, "Good.Hold", anser.WithFailMode(anser.Failfast))
	if err != nil {
		return err
	}
	for _, err := range st.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// serve handles one connection of a server that is bad until it has healed.
func (r toClient) serve(nc net.Conn, write func(net.Conn, []byte) error, healed *atomic.Bool, stop chan struct{}) {
	p := wirepeer.New(nc)
	if r.hello != nil && !healed.Load() {
		if write(nc, r.hello()) == nil {
			r.how.follow(nc, stop, impatience)
		}
		io.Copy(io.Discard, nc)
		return
	}
	if p.Send(r.settings()) != nil {
		return
	}
	if _, err := p.ReadHello(); err != nil {
		return
	}
	p.Sealed = r.sealed
	for {
		f, err := p.NextOf(wire.TypeRequest)
		if err != nil {
			return
		}
		if r.reply == nil || healed.Load() {
			p.Send(wirepeer.Reply(f.ID, []byte("ok")))
			continue
		}
		if write(nc, r.reply(f.ID)) == nil {
			r.how.follow(nc, stop, impatience)
		}
	}
}
