package limits_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

const bound = 2 * time.Minute // timeout of all operations, on a busy machine too

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// row is a limit.
type row struct {
	name    string
	limit   int
	opts    []anser.ServerOption
	handle  []anser.HandleOption // of Limit.Wait
	counter string               // key in ServerStats.LimitsHit, or "" for a limit with another counter
	text    string               // the text of the error, with %d for the limit
	try     func(t *testing.T, g *target, n int) error

	// Exceeding the limit results in a code and an outcome, or closes the connection with a
	// reason.
	code    anser.Code
	outcome anser.Outcome
	reason  wire.Reason
}

// target is the server of a row.
type target struct {
	*anser.Server
	addr    string
	release chan struct{} // closed when the handlers of Limit.Wait return
}

// closed is the end of a connection from the view of the peer.
type closed struct {
	reason wire.Reason
	text   string
}

func (c *closed) Error() string { return fmt.Sprintf("%s: %s", c.reason, c.text) }

// stated is the error of a call on the wire.
type stated struct{ wire.ErrorBody }

func (s *stated) Error() string { return s.Message }

func newTarget(t *testing.T, r row) *target {
	t.Helper()
	g := &target{Server: anser.NewServer(append([]anser.ServerOption{silent}, r.opts...)...), release: make(chan struct{})}
	echo := func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil }
	wait := func(_ context.Context, in *[]byte) (*[]byte, error) {
		<-g.release
		return new([]byte), nil
	}
	anser.Handle(g.Server, "Limit.Echo", echo)
	anser.Handle(g.Server, "Limit.Wait", wait, append([]anser.HandleOption{anser.Concurrent()}, r.handle...)...)
	anser.Handle(g.Server, "Limit.Any", func(_ context.Context, in *any) (*[]byte, error) { return new([]byte), nil })
	anser.HandleStream(g.Server, "Limit.Hold", func(ctx context.Context, st *anser.Stream[[]byte, []byte]) error {
		<-ctx.Done()
		return ctx.Err()
	})
	anser.HandleStream(g.Server, "Limit.Take", func(ctx context.Context, st *anser.Stream[[]byte, []byte]) error {
		_, err := st.Recv()
		return err
	})
	l, err := g.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		close(g.release)
		// The peers have hung up. On a busy machine thousands of goroutines need longer than Close
		// waits.
		err := g.Close()
		for end := time.Now().Add(bound); err != nil && time.Now().Before(end); {
			err = g.Close()
		}
		if err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return g
}

// The methods that a peer names, in this order.
const (
	echo = iota + 1
	wait
	hold
	take
	anything
)

// dial opens a connection that sends nothing.
func (g *target) dial(t *testing.T) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(bound))
	return nc
}

// peer opens a connection and names the methods on it.
func (g *target) peer(t *testing.T) *wirepeer.Peer {
	t.Helper()
	p, err := g.tryPeer(t)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (g *target) tryPeer(t *testing.T) (*wirepeer.Peer, error) {
	t.Helper()
	p := wirepeer.New(g.dial(t))
	if err := p.Send(wirepeer.Hello(wire.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	if err := p.ReadPreface(); err != nil {
		t.Fatal(err)
	}
	f, err := p.Next()
	if err != nil {
		t.Fatal(err)
	}
	if f.Type == wire.TypeClose {
		reason, text, err := wire.ParseClose(f.Body)
		if err != nil {
			t.Fatal(err)
		}
		return nil, &closed{reason, text}
	}
	for i, name := range []string{"Limit.Echo", "Limit.Wait", "Limit.Hold", "Limit.Take", "Limit.Any"} {
		p.Send(wire.AppendMethod(nil, uint32(i+1), name))
	}
	return p, nil
}

// after sends the frames and a ping, and returns the error of an ERROR or the reason of a CLOSE,
// if either arrives before the pong. Frames sent before the ping are processed by then, except by
// handlers that wait.
func after(t *testing.T, p *wirepeer.Peer, frames ...[]byte) error {
	t.Helper()
	go p.Send(append(frames, wire.AppendPing(nil, wire.TypePing, 1))...)
	var failed error
	for {
		f, err := p.NextOf(wire.TypeError, wire.TypePong, wire.TypeClose)
		if err != nil {
			t.Fatal(err)
		}
		switch f.Type {
		case wire.TypeError:
			b, err := wire.ParseError(f.Flags, f.Body)
			if err != nil {
				t.Fatal(err)
			}
			failed = &stated{b}
		case wire.TypeClose:
			reason, text, err := wire.ParseClose(f.Body)
			if err != nil {
				t.Fatal(err)
			}
			return &closed{reason, text}
		case wire.TypePong:
			return failed
		}
	}
}

// answer waits for the answer to the only call.
func answer(t *testing.T, p *wirepeer.Peer, frames ...[]byte) error {
	t.Helper()
	go p.Send(frames...)
	f, err := p.NextOf(wire.TypeError, wire.TypeReply, wire.TypeEnd, wire.TypeClose)
	if err != nil {
		t.Fatal(err)
	}
	switch f.Type {
	case wire.TypeError:
		b, err := wire.ParseError(f.Flags, f.Body)
		if err != nil {
			t.Fatal(err)
		}
		return &stated{b}
	case wire.TypeClose:
		reason, text, err := wire.ParseClose(f.Body)
		if err != nil {
			t.Fatal(err)
		}
		return &closed{reason, text}
	}
	return nil
}

func request(id uint64, method uint32, payload []byte) []byte {
	return wirepeer.Request(id, method, payload)
}

func zeros(n int) []byte { return make([]byte, n) }

// open sends n calls of a method that stay open.
func open(method uint32, flags wire.Flags) func(t *testing.T, g *target, n int) error {
	return func(t *testing.T, g *target, n int) error {
		var frames [][]byte
		for id := range uint64(n) {
			frames = append(frames, wire.AppendRequest(nil, id+1, flags, &wire.Request{Method: method, Codec: 1, Priority: 2}))
		}
		return after(t, g.peer(t), bytes.Join(frames, nil))
	}
}

func withMetadata(pairs ...wire.Pair) []byte {
	return wire.AppendRequest(nil, 1, 0, &wire.Request{Method: echo, Codec: 1, Priority: 2, Metadata: wire.AppendMetadata(nil, pairs)})
}

// blow is a compressor whose messages contain their decompressed size.
type blow struct{}

func (blow) ID() uint8                              { return 64 }
func (blow) Name() string                           { return "blow" }
func (blow) Append(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

func (blow) Decompress(dst, src []byte, limit int) ([]byte, error) {
	var n int
	fmt.Sscan(string(bytes.TrimRight(src, "\x00")), &n)
	if n > limit {
		return dst, compress.ErrTooLarge
	}
	return append(dst, make([]byte, n)...), nil
}

func TestLimits(t *testing.T) {
	for _, r := range rows() {
		t.Run(strings.ReplaceAll(r.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for n := r.limit - 1; n <= r.limit+1; n++ {
				r.check(t, n)
			}
		})
	}
}

func (r row) check(t *testing.T, n int) {
	g := newTarget(t, r)
	err := r.try(t, g, n)
	hit := int64(0)
	if n > r.limit {
		hit = 1
		r.checkError(t, err)
	} else if err != nil {
		t.Errorf("%d of %d: %v", n, r.limit, err)
	}
	if r.counter == "" {
		return
	}
	var now map[string]int64
	for end := time.Now().Add(bound); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if now = g.Stats().LimitsHit; now[r.counter] >= hit {
			break
		}
	}
	if now[r.counter] != hit || len(now) != int(hit) {
		t.Errorf("%d of %d: the counters are %v", n, r.limit, now)
	}
}

func (r row) checkError(t *testing.T, err error) {
	var text string
	var call *stated
	var conn *closed
	var local *anser.Error
	switch {
	case errors.As(err, &call):
		text = call.Message
		if anser.Code(call.Code) != r.code || anser.Outcome(call.Outcome) != r.outcome {
			t.Errorf("code %v, outcome %v, want %s, %s", call.Code, call.Outcome, r.code, r.outcome)
		}
	case errors.As(err, &local):
		text = local.Message
		if local.Code != r.code || local.Outcome != r.outcome {
			t.Errorf("%s, %s; want %s, %s", local.Code, local.Outcome, r.code, r.outcome)
		}
	case errors.As(err, &conn):
		text = conn.text
		if conn.reason != r.reason {
			t.Errorf("the connection was closed with %s, want %s", conn.reason, r.reason)
		}
	default:
		t.Fatalf("one over the limit of %d: %v", r.limit, err)
	}
	want := r.text
	if strings.Contains(want, "%d") {
		want = fmt.Sprintf(want, r.limit)
	}
	if !strings.Contains(text, want) {
		t.Errorf("the error says %q, want %q", text, want)
	}
}
