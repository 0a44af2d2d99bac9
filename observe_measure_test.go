package anser_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// measured is an observer that notes measurements, and takes a record of the calls that more
// chooses.
func (n *notes) measured(side string, more func(m anser.Measurement) bool) anser.Observer {
	o := n.calls(side)
	o.Made, o.Ended = nil, nil
	ended := o.CallEnded
	o.CallEnded = func(ctx context.Context, c *anser.CallInfo) {
		if c.Measured {
			n.add(fmt.Sprintf("%s more of %s", side, c.Method))
		}
		ended(ctx, c)
	}
	o.Measure = func(k anser.CallKind) func(context.Context, anser.Measurement) bool {
		if k.Server != (side == "s") || (k.Target == "") != k.Server {
			n.add(fmt.Sprintf("%s has the kind %+v", side, k))
		}
		return func(ctx context.Context, m anser.Measurement) bool {
			var err error
			if m.Err != nil {
				err = m.Err
			}
			handle := m.Duration - m.Queue
			if !k.Server {
				handle = 0
			}
			n.add(fmt.Sprintf("%s measured %s: %v, took %v: %v, %v; %d and %d bytes, attempt %d", side, k.Method, resultOf(err), m.Duration, m.Queue, handle, m.RequestBytes, m.ReplyBytes, m.Attempt))
			return more(m)
		}
	}
	return o
}

func never(anser.Measurement) bool  { return false }
func always(anser.Measurement) bool { return true }

// echoes returns a server whose method fails or takes its time as the request says.
func echoes(opts ...anser.ServerOption) *anser.Server {
	s := anser.NewServer(append(opts, silent)...)
	anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		switch {
		case string(*in) == "fail":
			return nil, anser.Errorf(anser.NotFound, "no")
		case string(*in) == "twice" && anser.AttemptFrom(ctx) == 0:
			return nil, anser.Aborted
		case string(*in) == "panic":
			panic("on purpose")
		case string(*in) == "exit":
			runtime.Goexit()
		case string(*in) == "large":
			return text(strings.Repeat("x", 2000)), nil
		}
		time.Sleep(time.Second)
		return text(string(*in) + "!"), nil
	}, anser.Deduplicate())
	return s
}

// An ordinary call is measured once at each side, and nothing else; all others are followed.
func TestMeasuredCalls(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		atServer, atClient := new(notes), new(notes)
		run(t, echoes(anser.Observe(atServer.measured("s", never))), network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Observe(atClient.measured("c", never)), anser.RetryOn(anser.Aborted), anser.Idempotent())
		ctx := t.Context()
		const followed = `: 0s, 0s, 0s, 0s; with c`
		const clientOK = "c measured Echo.Say: ok, took 1s: 0s, 0s; 0 and 0 bytes, attempt 0"

		call(ctx, c, "Echo.Say", "hi")
		expectNotes(t, atServer, "s measured Echo.Say: ok, took 1s: 0s, 1s; 2 and 3 bytes, attempt 0")
		expectNotes(t, atClient, clientOK)

		call(ctx, c, "Echo.Say", "fail") // the client learns of it when it has failed
		expectNotes(t, atServer, "s measured Echo.Say: not found, executed, took 0s: 0s, 0s; 4 and 0 bytes, attempt 0")
		expectNotes(t, atClient, `c ended "Echo.Say": not found, executed, attempt 0 at "a:1", took 0s: 0s, 0s, 0s, 0s; with <nil>`)

		call(ctx, c, "Echo.Say", "panic")
		expectNotes(t, atServer, "s measured Echo.Say: internal, executed, took 0s: 0s, 0s; 5 and 0 bytes, attempt 0")
		expectNotes(t, atClient, `c ended "Echo.Say": internal, executed, attempt 0 at "a:1", took 0s: 0s, 0s, 0s, 0s; with <nil>`)

		call(ctx, c, "Echo.Say", "exit")
		synctest.Wait()
		expectNotes(t, atServer, "s measured Echo.Say: internal, executed, took 0s: 0s, 0s; 4 and 0 bytes, attempt 0")
		expectNotes(t, atClient, `c ended "Echo.Say": internal, executed, attempt 0 at "a:1", took 0s: 0s, 0s, 0s, 0s; with <nil>`)

		began := time.Now()
		call(ctx, c, "Echo.Say", "twice")
		took := time.Since(began)
		expectNotes(t, atServer, "s measured Echo.Say: aborted, executed, took 0s: 0s, 0s; 5 and 0 bytes, attempt 0", "s measured Echo.Say: ok, took 1s: 0s, 1s; 5 and 6 bytes, attempt 1")
		expectNotes(t, atClient, fmt.Sprintf(`c ended "Echo.Say": ok, attempt 1 at "a:1", took %v: 0s, 0s, 0s, 0s; with <nil>`, took))

		call(ctx, c, "Echo.Say", "large") // the server learns that replies are large
		expectNotes(t, atServer, "s measured Echo.Say: ok, took 0s: 0s, 0s; 5 and 2000 bytes, attempt 0")
		call(ctx, c, "Echo.Say", "hi")
		expectNotes(t, atServer, "s began Echo.Say", `s ended "Echo.Say": ok, attempt 0 at "", took 1s: 0s, 0s, 1s, 0s; with s`)
		call(ctx, c, "Echo.Say", "hi")
		expectNotes(t, atServer, "s measured Echo.Say: ok, took 1s: 0s, 1s; 2 and 3 bytes, attempt 0")
		atClient.take()

		call(ctx, c, "Echo.Say", strings.Repeat("x", 2000))
		expectNotes(t, atServer, "s began Echo.Say", `s ended "Echo.Say": ok, attempt 0 at "", took 1s: 0s, 0s, 1s, 0s; with s`)
		call(ctx, c, "Echo.Say", "hi") // the reply of the call before was large
		call(ctx, c, "Echo.Say", "hi")
		atServer.take()
		atClient.take()

		anser.Call[[]byte](ctx, c, "Echo.Say", text("hi"), anser.IdempotencyKey("k"))
		expectNotes(t, atServer, "s began Echo.Say", `s ended "Echo.Say": ok, attempt 0 at "", took 1s: 0s, 0s, 1s, 0s; with s`)
		expectNotes(t, atClient, clientOK)

		anser.Send(ctx, c, "Echo.Say", text("hi"))
		time.Sleep(2 * time.Second)
		expectNotes(t, atServer, "s began Echo.Say, oneway", `s ended "Echo.Say", oneway: ok, attempt 0 at "", took 1s: 0s, 0s, 1s, 0s; with s`)
		expectNotes(t, atClient, "c began Echo.Say, oneway", `c ended "Echo.Say", oneway: ok, attempt 0 at "a:1", took 0s`+followed)

		anser.Go[[]byte](ctx, c, "Echo.Say", text("hi")).Wait()
		expectNotes(t, atServer, "s measured Echo.Say: ok, took 1s: 0s, 1s; 2 and 3 bytes, attempt 0")
		expectNotes(t, atClient, "c began Echo.Say", `c ended "Echo.Say": ok, attempt 0 at "a:1", took 1s`+followed)

		anser.Call[[]byte](ctx, c, "Echo.Say", text("hi"), anser.WithFailMode(anser.Failsafe))
		expectNotes(t, atClient, "c began Echo.Say", `c ended "Echo.Say": ok, attempt 0 at "a:1", took 1s`+followed)
		atServer.take()

		_, err := anser.Call[[]byte](ctx, c, "Echo.Say", new(chan int)) // it cannot be sent
		expectNotes(t, atServer)
		expectNotes(t, atClient, "c began Echo.Say", fmt.Sprintf(`c ended "Echo.Say": %s, attempt 0 at "", took 0s`, resultOf(err))+followed)

		call(ctx, c, "Echo.Missing", "x")
		expectNotes(t, atServer, `s ended "": unimplemented, refused, attempt 0 at "", took 0s: 0s, 0s, 0s, 0s; with <nil>`)
		expectNotes(t, atClient, `c ended "Echo.Missing": unimplemented, refused, attempt 0 at "a:1", took 0s: 0s, 0s, 0s, 0s; with <nil>`)
	})
}

// A measured call of which more is wanted is reported with its record. An observer that wants no
// more does not get it.
func TestMoreOfMeasuredCalls(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		atServer, atClient, quiet := new(notes), new(notes), new(notes)
		run(t, echoes(anser.Observe(atServer.measured("s", always)), anser.Observe(quiet.measured("s", never))), network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Observe(atClient.measured("c", always)))
		call(t.Context(), c, "Echo.Say", "hi")
		expectNotes(t, atServer, "s measured Echo.Say: ok, took 1s: 0s, 1s; 2 and 3 bytes, attempt 0", "s more of Echo.Say",
			`s ended "Echo.Say": ok, attempt 0 at "", took 1s: 0s, 0s, 1s, 0s; with <nil>`)
		expectNotes(t, quiet, "s measured Echo.Say: ok, took 1s: 0s, 1s; 2 and 3 bytes, attempt 0")
		expectNotes(t, atClient, "c measured Echo.Say: ok, took 1s: 0s, 0s; 0 and 0 bytes, attempt 0", "c more of Echo.Say",
			`c ended "Echo.Say": ok, attempt 0 at "a:1", took 1s: 0s, 0s, 0s, 0s; with <nil>`)
	})
}

// If one observer follows calls, all calls are followed.
func TestMeasuredBesideFollowed(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		atServer, atClient := new(notes), new(notes)
		other := anser.Observe(anser.Observer{CallEnded: func(context.Context, *anser.CallInfo) {}})
		run(t, echoes(anser.Observe(atServer.measured("s", never)), other), network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Observe(atClient.measured("c", never)), other)
		call(t.Context(), c, "Echo.Say", "hi")
		expectNotes(t, atServer, "s began Echo.Say", `s ended "Echo.Say": ok, attempt 0 at "", took 1s: 0s, 0s, 1s, 0s; with s`)
		expectNotes(t, atClient, "c began Echo.Say", `c ended "Echo.Say": ok, attempt 0 at "a:1", took 1s: 0s, 0s, 0s, 0s; with c`)
	})
}

// What an observer chooses for the trace of a measured call is sent, and is in its record; a call
// that it wants to follow is followed.
func TestTraceOfMeasuredCalls(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, follow := range []bool{false, true} {
			all := new(spans)
			o := all.observer()
			choose := o.Trace
			o.Trace = func(ctx context.Context, k anser.CallKind, t *anser.TraceChoice) {
				choose(ctx, k, t)
				t.Follow = follow
			}
			measured, began := 0, 0
			o.Measure = func(anser.CallKind) func(context.Context, anser.Measurement) bool {
				return func(context.Context, anser.Measurement) bool {
					measured++
					return true
				}
			}
			o.CallBegan = func(ctx context.Context, c *anser.CallInfo) context.Context {
				if began++; c.Trace.SpanID == [8]byte{} {
					t.Error("a call begins without its trace")
				}
				return ctx
			}
			s := anser.NewServer(silent, anser.Observe(o))
			anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
				if own, _ := anser.TraceFrom(ctx); own.SpanID[0] != 2 {
					t.Errorf("the handler has the span %d", own.SpanID[0])
				}
				return in, nil
			})
			run(t, s, network.Listen("a:1"))
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Observe(o))
			call(t.Context(), c, "Echo.Say", "x")
			all.expect(t, fmt.Sprint("follow ", follow), [2]byte{1, 0}, [2]byte{2, 1})
			if n := map[bool]int{false: 2, true: 0}[follow]; measured != n || began != 2-n {
				t.Errorf("follow %t: %d measured, %d began", follow, measured, began)
			}
			s.Close()
		}
	})
}

// An observer that panics in a measurement changes no result.
func TestMeasurementThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		o := anser.Observe(anser.Observer{Measure: func(anser.CallKind) func(context.Context, anser.Measurement) bool {
			return func(context.Context, anser.Measurement) bool { panic("on purpose") }
		}})
		s := echoes(o)
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", silent, anser.Dialer(network.Dial), o)
		if _, err := call(t.Context(), c, "Echo.Say", "hi"); err != nil {
			t.Error(err)
		}
		if n := s.Stats().Panics; n != 1 {
			t.Errorf("%d panics counted", n)
		}
	})
}
