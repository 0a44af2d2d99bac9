package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/telemetry"
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// pair returns a client of a new server, both with the options.
func pair(t testing.TB, opts ...anser.Option) (*anser.Server, *anser.Client) {
	t.Helper()
	network := new(ansertest.Network)
	serverOpts := []anser.ServerOption{silent}
	dialOpts := []anser.DialOption{silent, anser.Dialer(network.Dial), anser.Conns(1)}
	for _, o := range opts {
		serverOpts, dialOpts = append(serverOpts, o), append(dialOpts, o)
	}
	s := anser.NewServer(serverOpts...)
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	anser.Handle(s, "Echo.Wait", func(_ context.Context, in *[]byte) (*[]byte, error) {
		time.Sleep(time.Duration(len(*in)) * time.Second)
		return in, nil
	})
	anser.Handle(s, "Echo.Fail", func(_ context.Context, in *[]byte) (*[]byte, error) {
		return nil, anser.Errorf(anser.NotFound, "the secret is %s", *in)
	})
	l := network.Listen("a:1")
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	c, err := anser.Dial("a:1", dialOpts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
		<-done
	})
	return s, c
}

func say(t testing.TB, c *anser.Client, method, in string) {
	t.Helper()
	msg := []byte(in)
	if _, err := anser.Call[[]byte](context.Background(), c, method, &msg); err != nil && anser.CodeOf(err) != anser.NotFound && anser.CodeOf(err) != anser.Unimplemented {
		t.Fatal(err)
	}
}

// summary is the methods of a snapshot as text.
func summary(m *telemetry.Meter) string {
	var b strings.Builder
	for _, k := range m.Snapshot().Methods {
		fmt.Fprintf(&b, "%t %q %s:", k.Server, k.Target, k.Name)
		for _, c := range k.Codes {
			fmt.Fprintf(&b, " %d %v", c.Times.Count, c.Code)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := telemetry.New(telemetry.Slow(2 * time.Second))
		_, c := pair(t, m.Option())
		if len(m.Servers()) != 1 || len(m.Clients()) != 1 || m.Clients()[0] != c {
			t.Errorf("the meter knows %v and %v", m.Servers(), m.Clients())
		}
		tap, err := m.Tap(telemetry.Filter{Side: "server", Method: "Echo.W*", Slower: 3 * time.Second}, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 2, 3} {
			say(t, c, "Echo.Say", "x")
			say(t, c, "Echo.Wait", strings.Repeat("x", n))
		}
		say(t, c, "Echo.Fail", "hunter2")
		say(t, c, "Echo.Missing", "x")
		synctest.Wait()
		want := `true "" Echo.Fail: 1 not found
true "" Echo.Say: 3 ok
true "" Echo.Wait: 3 ok
true "" _OTHER: 1 unimplemented
false "a:1" Echo.Fail: 1 not found
false "a:1" Echo.Missing: 1 unimplemented
false "a:1" Echo.Say: 3 ok
false "a:1" Echo.Wait: 3 ok
`
		if got := summary(m); got != want {
			t.Errorf("measured\n%s\nwant\n%s", got, want)
		}
		for _, k := range m.Snapshot().Methods {
			if k.Name != "Echo.Wait" {
				continue
			}
			if times := k.Times(); times.Sum != 6*time.Second || times.Quantile(0.5) < 2*time.Second || times.Quantile(0.5) > 2200*time.Millisecond {
				t.Errorf("server %t: sum %v, median %v, want 6s and 2s", k.Server, times.Sum, times.Quantile(0.5))
			}
			if k.Slowest == nil || k.Slowest.Duration != 3*time.Second {
				t.Errorf("server %t: the slowest call is %+v", k.Server, k.Slowest)
			}
			if k.Server && (k.Handle != 6*time.Second || k.RequestBytes != 6 || k.ReplyBytes != 6) {
				t.Errorf("the handler took %v with %d and %d bytes, want 6s, 6, 6", k.Handle, k.RequestBytes, k.ReplyBytes)
			}
		}
		failures, _ := m.Failures()
		if len(failures) != 4 || failures[0].Method != "Echo.Missing" {
			t.Errorf("%d failures: %+v", len(failures), failures[0])
		}
		for _, f := range failures {
			if f.Message != "" {
				t.Errorf("a failure has the message %q, which may contain a secret", f.Message)
			}
		}
		slow, _ := m.SlowCalls()
		if len(slow) != 4 || slow[0].Duration != 3*time.Second {
			t.Errorf("%d slow calls, want 4", len(slow))
		}
		select {
		case r := <-tap.Calls:
			if r.Method != "Echo.Wait" || r.Handle != 3*time.Second || r.Side != "server" || r.Peer == "" {
				t.Errorf("the tap gave %+v", r)
			}
		default:
			t.Error("the tap gave nothing")
		}
		if len(tap.Calls) != 0 {
			t.Error("the tap gave more than one call")
		}
		m.Untap(tap)
		say(t, c, "Echo.Wait", "xxxx")
		if len(tap.Calls) != 0 {
			t.Error("the tap gave a call after its end")
		}
		time.Sleep(3 * time.Minute)
		for _, k := range m.Snapshot().Methods {
			if k.Slowest != nil {
				t.Errorf("%s: the slowest call of three minutes ago is still there", k.Name)
			}
		}
		say(t, c, "Echo.Wait", "x")
		for _, k := range m.Snapshot().Methods {
			if k.Name == "Echo.Wait" && (k.Slowest == nil || k.Slowest.Duration != time.Second) {
				t.Errorf("the slowest call of this minute is %+v", k.Slowest)
			}
		}
	})
}

// Names that a caller invents use no memory.
func TestMeterIsBounded(t *testing.T) {
	m := telemetry.New(telemetry.MaxMethods(3))
	o := m.Observer()
	for i := range 100 {
		o.CallEnded(context.Background(), &anser.CallInfo{Target: fmt.Sprint("t", i%2), Method: fmt.Sprint("Invented.M", i)})
		o.CallEnded(context.Background(), &anser.CallInfo{Server: true, Err: anser.Unimplemented})
		o.CallEnded(context.Background(), &anser.CallInfo{Server: true, Method: "A.B", Err: anser.Code(100 + i)})
	}
	names := make(map[string]int)
	for _, k := range m.Snapshot().Methods {
		names[k.Name]++
		all, failed := k.Calls()
		if k.Name == telemetry.Other && !k.Server && all != 47 {
			t.Errorf("%d calls of other methods at %s, want 47", all, k.Target)
		}
		if k.Server && (failed != 100 || len(k.Codes) != 1) {
			t.Errorf("%s: %d calls failed with %d codes, want 100 with 1", k.Name, failed, len(k.Codes))
		}
	}
	if len(names) != 8 || names[telemetry.Other] != 3 {
		t.Errorf("the methods are %v, want 3 at each target, one at the server, and others", names)
	}
}

// The records of a storm of failures are limited, and so are taps.
func TestStorm(t *testing.T) {
	m := telemetry.New(telemetry.Messages())
	o := m.Observer()
	for range 10_000 {
		o.CallEnded(context.Background(), &anser.CallInfo{Server: true, Method: "A.B", Err: &anser.Error{Code: anser.Internal, Message: "m"}})
	}
	calls, skipped := m.Failures()
	if len(calls) != 256 || skipped < 8_000 || calls[0].Message != "m" {
		t.Errorf("%d failures kept, %d skipped", len(calls), skipped)
	}
	for range 16 {
		if _, err := m.Tap(telemetry.Filter{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Tap(telemetry.Filter{}, 0); !errors.Is(err, telemetry.ErrTooManyTaps) {
		t.Errorf("the 17th tap: %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, opt := range map[string]telemetry.Option{"MaxMethods": telemetry.MaxMethods(0), "Slow": telemetry.Slow(-1), "nil": nil} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, name) {
					t.Errorf("%s: %q", name, text)
				}
			}()
			telemetry.New(opt)
		}()
	}
}

// A measured call allocates as often as one that is not measured.
func TestAllocations(t *testing.T) {
	measure := func(opts ...anser.Option) float64 {
		_, c := pair(t, opts...)
		ctx, in, out := context.Background(), make([]byte, 64), make([]byte, 0, 64)
		f := func() {
			if err := c.Call(ctx, "Echo.Say", &in, &out); err != nil {
				t.Fatal(err)
			}
		}
		for range 2000 {
			f()
		}
		return testing.AllocsPerRun(2000, f)
	}
	without, with := measure(), measure(telemetry.New().Option())
	if raced {
		with -= 2 // the race detector drops objects of pools
	}
	if with > without+0.1 {
		t.Errorf("a measured call allocates %v times, another one %v times", with, without)
	}
}

func BenchmarkCalls(b *testing.B) {
	for _, tt := range []struct {
		name string
		opts []anser.Option
	}{{"without", nil}, {"measured", []anser.Option{telemetry.New().Option()}}} {
		b.Run(tt.name, func(b *testing.B) {
			_, c := pair(b, tt.opts...)
			b.SetParallelism(500)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				ctx, in, out := context.Background(), make([]byte, 64), make([]byte, 0, 64)
				for pb.Next() {
					if err := c.Call(ctx, "Echo.Say", &in, &out); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
