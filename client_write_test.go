package anser_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// halfWriter accepts a part of what its callers write without blocking.
type halfWriter struct{ net.Conn }

func (w halfWriter) TryWrite(p []byte) (int, error) { return w.Write(p[:rand.IntN(len(p)+1)]) }

// Callers write large requests without copying them to the write buffer. They arrive as they were
// encoded, in the order of their ids, with others before and after them, also if the transport
// accepts only a part.
func TestLargeRequestsBesideSmallOnes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveUnary(t, l)
	half := anser.Transport{Scheme: "half", Wrap: func(nc net.Conn, _ string) (net.Conn, error) { return halfWriter{nc}, nil }}
	for target, opts := range map[string][]anser.DialOption{"tcp://": {anser.Conns(1)}, "half://": {half, anser.Conns(1)}} {
		t.Run(target, func(t *testing.T) {
			c, err := anser.Dial(target+l.Addr().String(), opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var done sync.WaitGroup
			for i := range 12 {
				done.Go(func() {
					for n := range 20 {
						size := 100 + i
						if i%3 == 0 {
							size = 30<<10 + n*n*1000
						}
						in := []byte(strings.Repeat(string(rune('a'+i)), size))
						var out []byte
						ctx, cancel := context.WithCancel(context.Background())
						if n%5 == 4 {
							go cancel() // perhaps while it is being written
						}
						err := c.Call(ctx, "Echo.Bytes", &in, &out)
						if err != nil && n%5 != 4 {
							t.Error(err)
						}
						if err == nil && string(out) != string(in) {
							t.Errorf("%d bytes came back other than they were", len(in))
						}
						cancel()
					}
				})
			}
			done.Wait()
		})
	}
}

// earlyReplied writes a large request only when the reply to it has been handled.
type earlyReplied struct {
	net.Conn
	write   chan struct{} // closed when the request is about to be written
	replied bool          // the reply has been read; owned by the reader
	handled chan struct{} // closed when it has been handled
	changed chan int      // receives how many bytes of the request are those of the reply
}

func (c *earlyReplied) Read(p []byte) (int, error) {
	if c.replied {
		c.replied = false
		close(c.handled)
	}
	n, err := c.Conn.Read(p)
	select {
	case <-c.write:
		c.replied = n > 0
	default:
	}
	return n, err
}

func (c *earlyReplied) TryWrite(p []byte) (int, error) {
	if len(p) > 32<<10 {
		close(c.write)
		<-c.handled
		c.changed <- bytes.Count(p, []byte("R"))
	}
	return c.Write(p)
}

// A server may answer before the whole request has arrived. The reply does not take the place of a
// request that is still being written.
func TestReplyToPartOfARequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := &earlyReplied{write: make(chan struct{}), handled: make(chan struct{}), changed: make(chan int, 1)}
	rawServer(t, l, func(p *wirepeer.Peer) {
		select {
		case <-own.write:
			p.Send(wirepeer.Reply(1, []byte(strings.Repeat("R", 1000))))
		case <-t.Context().Done():
		}
		p.NextOf(wire.TypeRequest)
	})
	early := anser.Transport{Scheme: "early", Wrap: func(nc net.Conn, _ string) (net.Conn, error) {
		own.Conn = nc
		return own, nil
	}}
	c := dial(t, "early://"+l.Addr().String(), early, anser.Conns(1))
	in, out := []byte(strings.Repeat("x", 100<<10)), []byte(nil)
	if err := c.Call(t.Context(), "Echo.Bytes", &in, &out); err != nil || len(out) != 1000 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if n := <-own.changed; n > 10 {
		t.Errorf("%d bytes of the request were those of the reply", n)
	}
}
