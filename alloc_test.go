package anser_test

import (
	"context"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// maxAllocs is how many allocations of the framework a unary call may cost per side, in addition
// to those of the messages.
const maxAllocs = 2

// allocs returns how many allocations of the whole process f costs. It makes allowance for the
// objects that pools drop under the race detector.
func allocs(t *testing.T, f func()) float64 {
	t.Helper()
	for range 200 {
		f()
	}
	n := testing.AllocsPerRun(2000, f)
	if raced {
		n -= 2
	}
	return n
}

// answer is a server that allocates nothing: it answers every REQUEST of an established
// connection with the same REPLY.
func answer(p *wirepeer.Peer) {
	buf := append(make([]byte, 0, 64<<10), p.Rest()...) // the first request may have come with the SETTINGS
	reply := wirepeer.Reply(0, make([]byte, 64))
	for {
		for len(buf) >= wire.HeaderSize {
			size := wire.HeaderSize + int(binary.LittleEndian.Uint32(buf))
			if len(buf) < size {
				break
			}
			if wire.Type(buf[4]) == wire.TypeRequest {
				copy(reply[8:16], buf[8:16])
				if _, err := p.Conn.Write(reply); err != nil {
					return
				}
			}
			buf = buf[:copy(buf, buf[size:])]
		}
		n, err := p.Conn.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return
		}
		buf = buf[:len(buf)+n]
	}
}

func TestAllocationsOfTheClient(t *testing.T) {
	network := new(ansertest.Network)
	rawServer(t, network.Listen("a:1"), answer)
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	in, out := make([]byte, 64), make([]byte, 0, 64)
	ctx := context.Background()
	if n := allocs(t, func() {
		if err := c.Call(ctx, "Echo.Say", &in, &out); err != nil {
			t.Fatal(err)
		}
	}); n > maxAllocs {
		t.Errorf("a call costs the client %v allocations, want %d at most", n, maxAllocs)
	}
	cancelable, cancel := context.WithCancel(ctx)
	defer cancel()
	if n := allocs(t, func() {
		if err := c.Call(cancelable, "Echo.Say", &in, &out); err != nil {
			t.Fatal(err)
		}
	}); n > maxAllocs {
		t.Errorf("a call that can be cancelled costs the client %v allocations, want %d at most", n, maxAllocs)
	}
	// A future contains its reply, whose bytes are the other allocation. Another goroutine
	// writes.
	if n := allocs(t, func() {
		if _, err := anser.Go[[]byte](ctx, c, "Echo.Say", &in).Wait(); err != nil {
			t.Fatal(err)
		}
	}); n > maxAllocs+2 {
		t.Errorf("a future costs the client %v allocations, want %d at most", n, maxAllocs+2)
	}
	if n := allocs(t, func() {
		if err := anser.Send(ctx, c, "Echo.Say", &in); err != nil {
			t.Fatal(err)
		}
	}); n > maxAllocs {
		t.Errorf("a oneway call costs the client %v allocations, want %d at most", n, maxAllocs)
	}
	// The typed form makes the reply, of two parts in the raw codec.
	if n := allocs(t, func() {
		if _, err := anser.Call[[]byte](ctx, c, "Echo.Say", &in); err != nil {
			t.Fatal(err)
		}
	}); n > maxAllocs+2 {
		t.Errorf("a typed call costs the client %v allocations, want %d at most", n, maxAllocs+2)
	}
}

func TestAllocationsOfTheServer(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		t.Run(name, func(t *testing.T) {
			network := new(ansertest.Network)
			s := anser.NewServer(silent)
			anser.Handle(s, "Echo.Say", echo, opt)
			run(t, s, network.Listen("a:1"))
			p := rawClient(t, network, "a:1")
			p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
			request := wirepeer.Request(0, 1, make([]byte, 64))
			reply := make([]byte, len(wirepeer.Reply(0, make([]byte, 64))))
			id := uint64(0)
			n := allocs(t, func() {
				id++
				binary.LittleEndian.PutUint64(request[8:], id)
				if _, err := p.Conn.Write(request); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(p.Conn, reply); err != nil || wire.Type(reply[4]) != wire.TypeReply {
					t.Fatal(err)
				}
			})
			// The request consists of two parts in the raw codec.
			if n > maxAllocs+2 {
				t.Errorf("a call costs the server %v allocations, want %d at most", n, maxAllocs+2)
			}
		})
	}
}

// A trace context costs the server of a call little more than its own 25 bytes.
func TestBytesOfATraceAtTheServer(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Say", echo, anser.Inline())
	run(t, s, network.Listen("a:1"))
	p := rawClient(t, network, "a:1")
	p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
	reply := make([]byte, len(wirepeer.Reply(0, make([]byte, 64))))
	id := uint64(0)
	per := func(request []byte) float64 {
		const n = 2000
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			id++
			binary.LittleEndian.PutUint64(request[8:], id)
			if _, err := p.Conn.Write(request); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(p.Conn, reply); err != nil || wire.Type(reply[4]) != wire.TypeReply {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / n
	}
	r := wire.Request{Method: 1, Codec: 1, Priority: 2, Payload: make([]byte, 64), Trace: wire.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{1}}}
	plain, traced := wire.AppendRequest(nil, 0, 0, &r), wire.AppendRequest(nil, 0, wire.FlagTrace, &r)
	var more float64
	for range 10 { // what else the process allocates counts too
		without := per(plain)
		if more = per(traced) - without; more < 40 {
			return
		}
	}
	t.Errorf("a trace context costs a call %v bytes", more)
}

// A message of a stream costs no allocation on either side, nor does the credit for it.
func TestAllocationsOfAStream(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.HandleStream(s, "Echo.Talk", func(_ context.Context, st *bytesStream) error {
		var msg []byte
		for {
			if err := st.RecvInto(&msg); err != nil {
				return ended(err)
			}
			if err := st.Send(&msg); err != nil {
				return err
			}
		}
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.FlowControlWindows(16<<10, 32<<10))
	st := open(t, context.Background(), c, "Echo.Talk")
	msg, back := make([]byte, 1000), []byte(nil)
	n := allocs(t, func() {
		if err := st.Send(&msg); err != nil {
			t.Fatal(err)
		}
		if err := st.RecvInto(&back); err != nil {
			t.Fatal(err)
		}
	})
	if n >= 1 {
		t.Errorf("a message there and back costs %v allocations", n)
	}
	st.CloseSend()
	hearEnd(t, st)
}
