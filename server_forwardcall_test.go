package anser_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
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

// waiting returns a server with a handler that waits for the end of its context, and a channel
// that gets why it ended.
func waiting(t testing.TB, network *ansertest.Network) (ends chan error) {
	t.Helper()
	ends = make(chan error, 10)
	behind := anser.NewServer(silent)
	anser.Handle(behind, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		ends <- nil
		<-ctx.Done()
		ends <- ctx.Err()
		time.Sleep(time.Millisecond) // the call has ended when its answer comes
		return in, nil
	}, anser.Concurrent())
	run(t, behind, network.Listen("a:1"))
	return ends
}

// A call that was forwarded is cancelled there when its caller cancels, dies, or may no longer make
// it, and when its time is over.
func TestForwardedCallsEnd(t *testing.T) {
	for _, c := range []struct {
		name    string
		end     func(cancel func(), p *policy, d *door, network *ansertest.Network)
		code    anser.Code
		outcome anser.Outcome
		why     error
	}{
		{"cancel", func(cancel func(), _ *policy, _ *door, _ *ansertest.Network) { cancel() }, anser.Canceled, anser.OutcomeUnknown, context.Canceled},
		{"policy", func(_ func(), p *policy, _ *door, _ *ansertest.Network) { p.set() }, anser.PermissionDenied, anser.OutcomeUnknown, context.Canceled},
		{"revoked", func(_ func(), _ *policy, d *door, _ *ansertest.Network) { d.revoked.Store(true) }, anser.Unauthenticated, anser.OutcomeUnknown, context.Canceled},
		{"late", func(func(), *policy, *door, *ansertest.Network) {}, anser.DeadlineExceeded, anser.OutcomeUnknown, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				ends := waiting(t, network)
				d, p := new(door), new(policy)
				p.set("ann Echo.Wait")
				s, _ := forwardTo(t, network, "a:1", anser.Authenticate(d), anser.Authorize(p))
				client := dial(t, "gw:1", inMemory(network, showing("ann"))...)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				f := anser.Go[[]byte](ctx, client, "Echo.Wait", text("x"), anser.Timeout(5*time.Second))
				<-ends
				if n := s.Stats().InFlight; n != 1 {
					t.Errorf("%d calls in flight", n)
				}
				c.end(cancel, p, d, network)
				_, err := f.Wait()
				wantFault(t, err, c.code, c.outcome)
				if why := <-ends; why != c.why {
					t.Error(why)
				}
				time.Sleep(time.Second)
				if st := s.Stats(); st.InFlight != 0 || st.Memory != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// The policy decides by the name that the caller uses, before the function of Forward is asked.
func TestForwardAuthorizes(t *testing.T) {
	network := new(ansertest.Network)
	p := new(policy)
	p.set("ann Echo.Say")
	asked := 0
	s := anser.NewServer(silent, anser.Authenticate(new(door)), anser.Authorize(p), anser.Forward(func(ctx context.Context, _ *anser.ForwardCall) (*anser.Client, string, error) {
		asked++
		return nil, "", anser.Errorf(anser.NotFound, "%s", anser.IdentityFrom(ctx).Subject)
	}))
	run(t, s, network.Listen("gw:1"))
	c := dial(t, "gw:1", inMemory(network, showing("ann"))...)
	_, err := call(context.Background(), c, "Echo.Else", "")
	wantFault(t, err, anser.PermissionDenied, anser.Refused)
	if asked != 0 {
		t.Error("asked")
	}
	_, err = call(context.Background(), c, "Echo.Say", "")
	if e := wantFault(t, err, anser.NotFound, anser.Refused); e.Message != "ann" {
		t.Error(err)
	}
}

// A caller that is gone takes its calls along.
func TestForwardedCallerDies(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		ends := waiting(t, network)
		s, _ := forwardTo(t, network, "a:1")
		p := rawClient(t, network, "gw:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Wait"), wirepeer.Request(1, 1, []byte("x")))
		<-ends
		p.Conn.Close()
		if why := <-ends; why != context.Canceled {
			t.Error(why)
		}
		synctest.Wait()
		if st := s.Stats(); st.InFlight != 0 || st.Conns != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A drain waits for the calls that were forwarded.
func TestForwardDrains(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Slow": func(_ context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(5 * time.Second)
			return in, nil
		}})
		s, _ := forwardTo(t, network, "a:1")
		c := dial(t, "gw:1", anser.Dialer(network.Dial))
		f := anser.Go[[]byte](context.Background(), c, "Echo.Slow", text("hello"))
		time.Sleep(time.Second)
		began := time.Now()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d < 4*time.Second {
			t.Errorf("the drain took %v", d)
		}
		if out, err := f.Wait(); err != nil || string(*out) != "hello" {
			t.Error(err)
		}
	})
}

// The limits of the server count calls that were forwarded.
func TestForwardLimits(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		ends := waiting(t, network)
		s, _ := forwardTo(t, network, "a:1", anser.MaxInFlight(1), anser.MaxMessage(1000))
		c := dial(t, "gw:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failfast))
		f := anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("x"))
		<-ends
		_, err := call(context.Background(), c, "Echo.Wait", "y")
		wantFault(t, err, anser.ResourceExhausted, anser.Refused)
		_, err = call(context.Background(), c, "Echo.Wait", string(make([]byte, 2000)))
		wantFault(t, err, anser.ResourceExhausted, anser.Refused)
		f.Cancel()
		if st := s.Stats(); st.LimitsHit["MaxInFlight"] != 1 || st.LimitsHit["MaxMessage"] != 1 {
			t.Errorf("%+v", st.LimitsHit)
		}
	})
}

// A client that does not read its replies does not delay other clients, and does not make the
// server hold more than what is in flight.
func TestForwardToASlowReader(t *testing.T) {
	network := new(ansertest.Network)
	var calls atomic.Int64
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Large": func(context.Context, *[]byte) (*[]byte, error) {
		calls.Add(1)
		out := make([]byte, 32<<10)
		return &out, nil
	}})
	s, _ := forwardTo(t, network, "a:1", anser.MaxCalls(200))
	p := rawClient(t, network, "gw:1")
	p.Send(wire.AppendMethod(nil, 1, "Echo.Large"))
	const all = 1000
	sent := make(chan error, 1)
	go func() {
		for id := range uint64(all) {
			if err := p.Send(wirepeer.Request(id+1, 1, nil)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	eventually(t, "the server has stopped reading", func() bool { return s.Stats().InFlight > 0 && calls.Load() > 20 })
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	for range 20 {
		if out, err := call(context.Background(), c, "Echo.Large", ""); err != nil || len(out) != 32<<10 {
			t.Fatal(len(out), err)
		}
	}
	answered := 0
	for answered < all {
		f, err := p.NextOf(wire.TypeReply, wire.TypeError)
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.TypeReply {
			answered++
			continue
		}
		if e, err := wire.ParseError(f.Flags, f.Body); err != nil || e.Code != wire.ResourceExhausted || e.Outcome != wire.Refused {
			t.Fatal(e, err)
		}
		answered++
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	eventually(t, "nothing is in flight", func() bool { st := s.Stats(); return st.InFlight == 0 && st.Memory == 0 })
}

// Answers of every size reach the caller, and a reply over its limit is an error of the call.
func TestForwardSizes(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	forwardTo(t, network, "a:1")
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	for _, size := range []int{0, 1, 1000, 64 << 10, 65<<10 + 1, 1 << 20, 4 << 20} {
		in := string(bytes.Repeat([]byte{7}, size))
		if out, err := call(context.Background(), c, "Echo.Say", in); err != nil || out != in {
			t.Errorf("%d bytes: %d, %v", size, len(out), err)
		}
	}
	small := dial(t, "gw:1", anser.Dialer(network.Dial), anser.MaxMessage(1000))
	_, err := call(context.Background(), small, "Echo.Say", string(make([]byte, 200<<10)))
	wantFault(t, err, anser.ResourceExhausted, anser.Executed)
}

// Metadata that the function of Forward makes too large is refused, and so are trailers that the
// caller does not accept.
func TestForwardMetadataLimits(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		anser.SetTrailer(ctx, "long", strings.Repeat("x", 1000))
		if len(*in) > 0 {
			return nil, anser.Errorf(anser.Aborted, "stopped")
		}
		return in, nil
	}})
	up := dial(t, "a:1", anser.Dialer(network.Dial))
	s := anser.NewServer(silent, anser.Forward(func(_ context.Context, call *anser.ForwardCall) (*anser.Client, string, error) {
		switch call.Method {
		case "Echo.Large":
			call.Set = anser.Metadata{"large": strings.Repeat("x", 64<<10)}
		case "Echo.Bad":
			call.Set = anser.Metadata{"a bad key": "x"}
		}
		return up, "Echo.Say", nil
	}))
	run(t, s, network.Listen("gw:1"))
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	_, err := call(context.Background(), c, "Echo.Large", "")
	wantFault(t, err, anser.ResourceExhausted, anser.Refused)
	_, err = call(context.Background(), c, "Echo.Bad", "")
	wantFault(t, err, anser.InvalidArgument, anser.Refused)

	nc, err := network.Dial(context.Background(), "tcp", "gw:1")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p := wirepeer.New(nc)
	own := wire.DefaultSettings()
	own.MaxMetadata = 100
	p.Send(wirepeer.Hello(own), wire.AppendMethod(nil, 1, "Echo.Say"), wirepeer.Request(1, 1, nil), wirepeer.Request(2, 1, []byte("x")))
	if _, err := p.ReadHello(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := p.NextOf(wire.TypeReply, wire.TypeError)
		if err != nil || f.Type != wire.TypeError || f.Flags&wire.FlagMetadata != 0 {
			t.Fatal(f, err)
		}
		e, err := wire.ParseError(f.Flags, f.Body)
		if want := map[uint64]wire.Code{1: wire.ResourceExhausted, 2: wire.Aborted}[f.ID]; err != nil || e.Code != want || e.Outcome != wire.Executed {
			t.Error(f.ID, e, err)
		}
	}
}

// A client that invents names gets answers, and makes the server remember none of them.
func TestForwardInventedNames(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	s, _ := forwardTo(t, network, "a:1")
	p := rawClient(t, network, "gw:1")
	const names = 1000
	for i := range uint32(names) {
		p.Send(wire.AppendMethod(nil, i+1, fmt.Sprintf("Echo.N%d", i)), wirepeer.Request(uint64(i)+1, i+1, nil))
		if f, err := p.NextOf(wire.TypeReply, wire.TypeError); err != nil || f.Type != wire.TypeError {
			t.Fatal(f, err)
		}
	}
	p.Send(wire.AppendMethod(nil, names+1, "Echo.Say"), wirepeer.Request(names+1, names+1, nil), wirepeer.Request(names+2, names+1, nil))
	for range 2 {
		if f, err := p.NextOf(wire.TypeReply, wire.TypeError); err != nil || f.Type != wire.TypeReply {
			t.Fatal(f, err)
		}
	}
	if m := s.Stats().Methods; m["Echo.Say"].Calls == 0 || len(m) > 5 {
		t.Errorf("%+v", m)
	}
}

// Observers of the server see calls that are forwarded, and may refuse them.
func TestForwardObservers(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	seen := make(chan anser.MessageInfo, 10)
	forwardTo(t, network, "a:1", anser.Observe(anser.Observer{
		Request: func(_ context.Context, m anser.MessageInfo) error {
			if m.Bytes == 3 {
				return anser.Errorf(anser.PermissionDenied, "not three")
			}
			return nil
		},
		Reply: func(_ context.Context, m anser.MessageInfo) { seen <- m },
	}))
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); err != nil || out != "hello" {
		t.Fatal(out, err)
	}
	if m := <-seen; m.Method != "Echo.Say" || m.Bytes != 5 || !m.Server || m.Err != nil {
		t.Errorf("%+v", m)
	}
	_, err := call(context.Background(), c, "Echo.Say", "now")
	wantFault(t, err, anser.PermissionDenied, anser.Refused)
	_, err = call(context.Background(), c, "Echo.None", "hello")
	wantFault(t, err, anser.Unimplemented, anser.Refused)
	if m := <-seen; m.Method != "Echo.None" || anser.CodeOf(m.Err) != anser.Unimplemented {
		t.Errorf("%+v", m)
	}
}

// maxForwardAllocs is how many allocations of the gateway a unary call may cost: the call on both
// of its sides, and a share of a slab.
const maxForwardAllocs = 3

func TestAllocationsOfForward(t *testing.T) {
	network := new(ansertest.Network)
	rawServer(t, network.Listen("a:1"), answer)
	forwardTo(t, network, "a:1")
	p := rawClient(t, network, "gw:1")
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
	if n > maxForwardAllocs {
		t.Errorf("a call that is forwarded costs the server %v allocations, want %d at most", n, maxForwardAllocs)
	} else {
		t.Logf("%v allocations a call", n)
	}
}

// Calls may come with the client's preface. Replies that they get meanwhile wait behind the
// settings, which the goroutine writes that forwards further calls: it does not wait for itself.
func TestForwardCallsThatCameWithThePreface(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		large := bytes.Repeat([]byte("x"), 2<<20) // more than a connection holds for its peer
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Large": func(context.Context, *[]byte) (*[]byte, error) { return &large, nil }})
		up := dial(t, "a:1", anser.Dialer(network.Dial))
		const calls = 4
		chosen := 0
		s := anser.NewServer(silent, anser.Forward(func(context.Context, *anser.ForwardCall) (*anser.Client, string, error) {
			if chosen++; chosen == calls-1 {
				time.Sleep(time.Second) // until the replies to the calls before are here
			}
			return up, "", nil
		}))
		run(t, s, network.Listen("gw:1"))
		nc, err := network.Dial(context.Background(), "tcp", "gw:1")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(5 * time.Second))
		p := wirepeer.New(nc)
		hello := append(wirepeer.Hello(wire.DefaultSettings()), wire.AppendMethod(nil, 1, "Echo.Large")...)
		for id := range uint64(calls) {
			hello = append(hello, wirepeer.Request(id+1, 1, nil)...)
		}
		p.Send(hello)
		if _, err := p.ReadHello(); err != nil {
			t.Fatal(err)
		}
		for range calls {
			if _, err := p.NextOf(wire.TypeReply); err != nil {
				t.Fatal(err)
			}
		}
	})
}
