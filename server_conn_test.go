package anser_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// The last two calls of a draining connection end while a write is under way: the connection must
// not be closed before both replies are written.
func TestDrainWaitsForRepliesInTheBuffer(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var conn *ansertest.FaultyConn
		l := ansertest.FaultyListener(network.Listen("a:1"), ansertest.Faults{}, func(c *ansertest.FaultyConn) { conn = c })
		release := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-release[string(*in)]
			return in, nil
		}, anser.Concurrent())
		run(t, s, l)
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Wait"), wirepeer.Request(1, 1, []byte("a")), wirepeer.Request(2, 1, []byte("b")))
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(context.Background()) }()
		if _, err := p.NextOf(wire.TypeDrain); err != nil {
			t.Fatal(err)
		}
		p.Send(wire.AppendDrain(nil, wire.FlagAck, 0))
		synctest.Wait()
		conn.Stall()
		close(release["a"])
		synctest.Wait() // the reply to a is being written
		close(release["b"])
		synctest.Wait() // the reply to b waits in the buffer
		conn.Resume()
		for range 2 {
			f, err := p.Next()
			if err != nil || f.Type != wire.TypeReply {
				t.Fatalf("%v, %v; want a reply", f.Type, err)
			}
		}
		if reason, text, err := p.ReadClose(); reason != wire.Normal || err != nil {
			t.Fatal(reason, text, err)
		}
		p.Close()
		if err := <-down; err != nil {
			t.Fatal(err)
		}
	})
}

// A client need not wait for the server's preface before it calls.
func TestCallInTheFirstWrite(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		left := make(chan time.Duration, 1)
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				deadline, _ := ctx.Deadline()
				left <- time.Until(deadline)
				return in, nil
			},
		})
		nc, err := network.Dial(context.Background(), "tcp", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		p := wirepeer.New(nc)
		p.Send(wirepeer.Hello(wire.DefaultSettings()), wire.AppendMethod(nil, 1, "Echo.Say"),
			wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 1, Timeout: uint64(time.Hour / time.Microsecond)}))
		if d := <-left; d != time.Hour {
			t.Errorf("the handler has %v left of 1 h", d)
		}
		if _, err := p.ReadHello(); err != nil {
			t.Fatal(err)
		}
		if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
			t.Fatal(f.Type, err)
		}
	})
}

// A connection that ends inside a frame was cut, unlike one that its client has closed.
func TestEndInsideAFrame(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say")[:9])
		p.Conn.(*ansertest.Conn).CloseWrite()
		if reason, _, err := p.ReadClose(); reason != wire.BadFrame || err != nil {
			t.Fatal(reason, err)
		}
		p = rawClient(t, network, "a:1")
		p.Conn.(*ansertest.Conn).CloseWrite()
		if f, err := p.Next(); err != io.EOF {
			t.Fatal(f.Type, err)
		}
		synctest.Wait()
		if st := s.Stats(); st.Closed["BAD_FRAME"] != 1 || len(st.Closed) != 1 || st.Conns != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// The timeout of a call runs while the call waits behind others that arrived with it.
func TestCallExpiresInTheInputBuffer(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Slow", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(10 * time.Millisecond)
			return in, nil
		}, anser.Inline())
		anser.Handle(s, "Echo.Say", echo, anser.Inline())
		run(t, s, network.Listen("a:1"))
		p := rawClient(t, network, "a:1")
		request := func(id uint64, method uint32, timeout time.Duration) []byte {
			return wire.AppendRequest(nil, id, 0, &wire.Request{Method: method, Codec: 1, Timeout: uint64(timeout.Microseconds())})
		}
		p.Send(wire.AppendMethod(nil, 1, "Echo.Slow"), wire.AppendMethod(nil, 2, "Echo.Say"),
			request(1, 1, time.Second), request(2, 2, 500*time.Microsecond), request(3, 2, time.Second))
		got := map[uint64]wirepeer.Frame{}
		for range 3 {
			f, err := p.Next()
			if err != nil {
				t.Fatal(err)
			}
			got[f.ID] = f
		}
		if got[1].Type != wire.TypeReply || got[3].Type != wire.TypeReply {
			t.Errorf("the calls with time left: %s, %s", got[1].Type, got[3].Type)
		}
		if got[2].Type != wire.TypeError {
			t.Fatalf("the call whose time was over: %s", got[2].Type)
		}
		if e, err := wire.ParseError(0, got[2].Body); e.Code != wire.DeadlineExceeded || e.Outcome != wire.Refused || err != nil {
			t.Errorf("%+v, %v", e, err)
		}
		if n := s.Stats().Methods["Echo.Say"].Calls; n != 1 {
			t.Errorf("%d calls ran, want 1", n)
		}
	})
}

// Frames of a refused stream are ignored, within limits, and so are frames of no stream.
func TestFramesOfARefusedStream(t *testing.T) {
	data := func(id uint64, payload int) []byte { return dataFrame(id, 0, make([]byte, payload)) }
	repeat := func(n int, frame []byte) [][]byte { return slices.Repeat([][]byte{frame}, n) }
	for name, test := range map[string]struct {
		frames [][]byte
		reason wire.Reason // 0: the connection goes on
	}{
		"data, end and window after the refusal": {frames: [][]byte{data(1, 1000), wire.AppendEnd(nil, 1, nil), wire.AppendWindow(nil, 1, 1000), data(1, 10)}},
		"data, whose credit is returned":         {frames: repeat(200, data(1, 8000))},
		"empty data":                             {frames: repeat(101, data(1, 0))},
		"empty pieces":                           {frames: repeat(101, dataFrame(1, wire.FlagMore, nil)), reason: wire.Flood},
		"some empty pieces":                      {frames: repeat(100, dataFrame(1, wire.FlagMore, nil))},
		"broken data":                            {frames: repeat(1, wire.AppendHeader(nil, wire.Header{Type: wire.TypeData, ID: 1})), reason: wire.BadFrame},
		"data of streams never opened":           {frames: repeat(101, data(9, 1)), reason: wire.Flood},
		"some data of streams never opened":      {frames: repeat(100, data(9, 1))},
		"credit for the connection":              {frames: repeat(200, wire.AppendWindow(nil, 0, 1000))},
		"no credit for the connection":           {frames: repeat(1, wire.AppendWindow(nil, 0, 0)), reason: wire.FlowControl},
		"no credit for a stream":                 {frames: repeat(1, wire.AppendWindow(nil, 1, 0))},
		"too much credit":                        {frames: repeat(1, wire.AppendWindow(nil, 0, 1<<31)), reason: wire.FlowControl},
		"too much credit in sum":                 {frames: repeat(2, wire.AppendWindow(nil, 0, 1<<30)), reason: wire.FlowControl},
	} {
		t.Run(name, func(t *testing.T) {
			network := new(ansertest.Network)
			serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
			p := rawClient(t, network, "a:1")
			p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), openRequest(1, 1, nil))
			f, err := p.Next()
			if err != nil || f.Type != wire.TypeError {
				t.Fatal(f.Type, err)
			}
			if e, _ := wire.ParseError(f.Flags, f.Body); e.Code != wire.Unimplemented || e.Outcome != wire.Refused {
				t.Fatalf("%+v", e)
			}
			p.Send(test.frames...)
			p.Send(wirepeer.Request(2, 1, []byte("hello")))
			if test.reason == 0 {
				if f, err := p.NextOf(wire.TypeReply, wire.TypeError, wire.TypeClose); f.Type != wire.TypeReply || f.ID != 2 || err != nil {
					t.Fatal(f.Type, f.ID, err)
				}
				return
			}
			if reason, _, err := p.ReadClose(); reason != test.reason || err != nil {
				t.Fatal(reason, err)
			}
		})
	}
}

// A stream frame for a call that is not a stream fails the call.
func TestStreamFrameForACall(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		ended := make(chan error, 1)
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return in, nil
		})
		anser.Handle(s, "Echo.Say", echo)
		run(t, s, network.Listen("a:1"))
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Wait"), wire.AppendMethod(nil, 2, "Echo.Say"),
			wirepeer.Request(1, 1, nil), wire.AppendEnd(nil, 1, nil))
		f, err := p.Next()
		if f.Type != wire.TypeError || f.ID != 1 || err != nil {
			t.Fatal(f.Type, f.ID, err)
		}
		if e, _ := wire.ParseError(f.Flags, f.Body); e.Code != wire.InvalidArgument || e.Outcome != wire.OutcomeUnknown {
			t.Fatalf("%+v", e)
		}
		if err := <-ended; err != context.Canceled {
			t.Fatal(err)
		}
		p.Send(wirepeer.Request(2, 2, nil))
		if f, err := p.Next(); f.Type != wire.TypeReply || f.ID != 2 || err != nil {
			t.Fatal(f.Type, f.ID, err)
		}
	})
}

// A client cannot fill the server's memory with names of methods that do not exist.
func TestMemoryOfMethodNames(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	p := rawClient(t, network, "a:1")
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var frames []byte
	for n := range wire.MaxMethods {
		name := fmt.Sprintf("Echo.%0507d", n)
		if n == wire.MaxMethods-1 {
			name = "Echo.Say"
		}
		if frames = wire.AppendMethod(frames, uint32(n+1), name); len(frames) > 100<<10 {
			p.Send(frames)
			frames = frames[:0]
		}
	}
	p.Send(frames)
	p.Send(wirepeer.Request(1, 1, nil), wirepeer.Request(2, wire.MaxMethods-1, nil), wirepeer.Request(3, wire.MaxMethods, nil))
	for _, want := range []string{`method "Echo.000`, "method 65534 is not served here", ""} {
		f, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if f.Type != wire.TypeReply {
				t.Errorf("the last method: %s", f.Type)
			}
			continue
		}
		if e, err := wire.ParseError(f.Flags, f.Body); !strings.Contains(e.Message, want) || e.Code != wire.Unimplemented || e.Outcome != wire.Refused || err != nil {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("%d MiB for names of methods", grown>>20)
	}
	p.Send(wire.AppendMethod(nil, wire.MaxMethods+1, "Echo.More"))
	if reason, _, err := p.ReadClose(); reason != wire.BadMethod || err != nil {
		t.Error(reason, err)
	}
}

// A client that calls unknown methods gets a hint for a few names, at a small cost.
func TestHintsForUnknownMethods(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	for i := range 100 {
		anser.Handle(s, fmt.Sprintf("%s.Method%04d", strings.Repeat("Service", 3), i), echo)
	}
	anser.Handle(s, "Echo.Say", echo)
	run(t, s, network.Listen("a:1"))
	p := rawClient(t, network, "a:1")
	began := time.Now()
	hints := 0
	const names, calls = 50, 40
	for n := uint32(1); n <= names; n++ {
		p.Send(wire.AppendMethod(nil, n, fmt.Sprintf("Echo.S%02d", n)))
		for i := range calls {
			p.Send(wirepeer.Request(uint64(n)*calls+uint64(i), n, nil))
			f, err := p.NextOf(wire.TypeError)
			if err != nil {
				t.Fatal(err)
			}
			e, err := wire.ParseError(f.Flags, f.Body)
			if !strings.HasPrefix(e.Message, fmt.Sprintf(`method "Echo.S%02d" is not served here`, n)) || err != nil {
				t.Fatalf("%+v, %v", e, err)
			}
			if i == calls-1 && strings.HasSuffix(e.Message, `: did you mean "Echo.Say"?`) {
				hints++
			}
		}
	}
	if hints != 16 {
		t.Errorf("%d hints, want 16", hints)
	}
	t.Logf("%d calls of unknown methods took %v", names*calls, time.Since(began))
}

// A connection on which 100,000 calls per second are opened and cancelled is closed; a connection
// with 5,000 is not.
func TestOpenAndCancelFlood(t *testing.T) {
	for _, test := range []struct {
		each  int // calls every 10 ms
		flood bool
	}{{50, false}, {1000, true}} {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			s := anser.NewServer(silent)
			anser.Handle(s, "Echo.Wait", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}, anser.Concurrent())
			run(t, s, network.Listen("a:1"))
			p := rawClient(t, network, "a:1")
			p.Send(wire.AppendMethod(nil, 1, "Echo.Wait"))
			closed := make(chan wire.Reason, 1)
			go func() {
				reason, _, _ := p.ReadClose()
				closed <- reason
			}()
			id := uint64(0)
			for range 300 { // 3 s
				var burst []byte
				for range test.each {
					id++
					burst = append(burst, wirepeer.Request(id, 1, []byte("x"))...)
					burst = wire.AppendCancel(burst, id)
				}
				if p.Send(burst) != nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			select {
			case reason := <-closed:
				if !test.flood || reason != wire.Flood {
					t.Errorf("%d calls every 10 ms: closed with %v", test.each, reason)
				}
			default:
				if test.flood {
					t.Errorf("%d calls every 10 ms: not closed", test.each)
				}
				p.Close()
				<-closed
			}
		})
	}
}
