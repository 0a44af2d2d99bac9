package otel_test

import (
	"cmp"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// What arrives over OTLP for each kind of call and each outcome.
func TestSpansOfOutcomes(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // one call takes 5 seconds
			testSpansOfOutcomes(t, newExport(t, way...))
		})
	}
}

func testSpansOfOutcomes(t *testing.T, e *export) {
	x := newSides(t, e, anser.RetryOn(anser.Aborted))
	ctx := t.Context()
	for _, test := range []struct {
		name           string
		call           func()
		client, server string
		error          [2]bool // the status of the span of the client, of the server
	}{
		{
			"ok", func() { x.buy(ctx, "it") },
			"anser.attempt=0 anser.pick.balancer=p2c anser.pick.reason=the only one network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=OK rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"anser.decode.duration=T anser.encode.duration=T anser.handle.duration=T anser.queue.duration=T anser.reply.size=2 anser.request.size=2 network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=OK rpc.system.name=anser",
			[2]bool{},
		},
		{
			"an answer that is an error", func() { x.buy(ctx, "missing") },
			"anser.attempt=0 anser.outcome=executed anser.pick.balancer=p2c anser.pick.reason=the only one error.type=NOT_FOUND network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=NOT_FOUND rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"anser.decode.duration=T anser.encode.duration=T anser.handle.duration=T anser.outcome=executed anser.queue.duration=T anser.request.size=7 network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=NOT_FOUND rpc.system.name=anser",
			[2]bool{true, false},
		},
		{
			"an error of the server", func() { x.buy(ctx, "broken") },
			"anser.attempt=0 anser.outcome=executed anser.pick.balancer=p2c anser.pick.reason=the only one error.type=INTERNAL network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=INTERNAL rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"anser.decode.duration=T anser.encode.duration=T anser.handle.duration=T anser.outcome=executed anser.queue.duration=T anser.request.size=6 error.type=INTERNAL network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=INTERNAL rpc.system.name=anser",
			[2]bool{true, true},
		},
		{
			"a deadline", func() {
				// Enough to reach the server on a busy machine: what does not has no span there.
				short, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				x.buy(short, "late")
				x.release <- struct{}{}
			},
			"anser.attempt=0 anser.outcome=unknown anser.pick.balancer=p2c anser.pick.reason=the only one error.type=DEADLINE_EXCEEDED network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=DEADLINE_EXCEEDED rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"anser.decode.duration=T anser.encode.duration=T anser.handle.duration=T anser.outcome=executed anser.queue.duration=T anser.request.size=4 error.type=DEADLINE_EXCEEDED network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=DEADLINE_EXCEEDED rpc.system.name=anser",
			[2]bool{true, true},
		},
		{
			"a stream", func() {
				st, err := anser.Open[[]byte, []byte](ctx, x.c, "Shop.Watch")
				if err != nil {
					t.Fatal(err)
				}
				st.Send(new([]byte("x")))
				st.CloseSend()
				for err == nil {
					_, err = st.Recv()
				}
				if err != io.EOF {
					t.Fatal(err)
				}
			},
			"anser.attempt=0 anser.pick.balancer=p2c anser.pick.reason=the only one anser.stream=true network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Watch rpc.status_code=OK rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"anser.queue.duration=T anser.stream=true network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Watch rpc.status_code=OK rpc.system.name=anser",
			[2]bool{},
		},
	} {
		test.call()
		spans := eventually(t, e, 2)
		for i, want := range []string{test.client, test.server} {
			s, kind := spans[i], []traces.Span_SpanKind{traces.Span_SPAN_KIND_CLIENT, traces.Span_SPAN_KIND_SERVER}[i]
			if got := textOf(s.Attributes); got != want || s.Kind != kind || (s.Status.GetCode() == traces.Status_STATUS_CODE_ERROR) != test.error[i] {
				t.Errorf("%s: the %v has the status %v and\n%s\nwant the status %v and\n%s", test.name, s.Kind, s.Status, got, test.error[i], want)
			}
		}
		if c, s := spans[0], spans[1]; idOf(c.TraceId) != idOf(s.TraceId) || idOf(s.ParentSpanId) != idOf(c.SpanId) || len(c.ParentSpanId) != 0 {
			t.Errorf("%s: the server's span %s/%s is not a child of the client's %s/%s", test.name, idOf(s.TraceId), idOf(s.ParentSpanId), idOf(c.TraceId), idOf(c.SpanId))
		}
	}
}

// What arrives over OTLP for calls that did not run: a call that the server refuses has a span on
// both sides, a call that was not sent only one of the client.
func TestSpansOfCallsThatDidNotRun(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			testSpansOfCallsThatDidNotRun(t, newExport(t, append([]otel.Option{otel.Tail(time.Hour)}, way...)...))
		})
	}
}

// tries is the number of attempts. A client tries again while no server answers, as often as
// there is time.
var tries = regexp.MustCompile(`anser\.attempt=\d+`)

func testSpansOfCallsThatDidNotRun(t *testing.T, e *export) {
	x := newSides(t, e)
	if err := x.buy(t.Context(), "once"); err != nil { // the SDK makes the first span in any case
		t.Fatal(err)
	}
	eventually(t, e, 2)
	gone := listen(t)
	gone.Close()
	nobody := dial(t, gone.Addr().String(), e.Option())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name           string
		call           func() error
		outcome        anser.Outcome
		client, server string // "": no span
		child          bool   // the server's span is the child of the client's
	}{
		{
			"refused: no such method", func() error {
				_, err := anser.Call[[]byte](t.Context(), x.c, "Shop.Invented", new([]byte))
				return err
			}, anser.Refused,
			"anser.attempt=N anser.outcome=refused anser.pick.balancer=p2c anser.pick.reason=the only one error.type=UNIMPLEMENTED network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Invented rpc.status_code=UNIMPLEMENTED rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"anser.outcome=refused anser.queue.duration=T error.type=UNIMPLEMENTED rpc.method=_OTHER rpc.status_code=UNIMPLEMENTED rpc.system.name=anser",
			false,
		},
		{
			"refused: no memory for keys", func() error { return x.buy(t.Context(), "it", anser.IdempotencyKey("k")) }, anser.Refused,
			"anser.attempt=N anser.outcome=refused anser.pick.balancer=p2c anser.pick.reason=the only one error.type=UNIMPLEMENTED network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=UNIMPLEMENTED rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"anser.outcome=refused anser.queue.duration=T error.type=UNIMPLEMENTED network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=UNIMPLEMENTED rpc.system.name=anser",
			true,
		},
		{
			"not sent: the caller has cancelled", func() error { return x.buy(ended, "it") }, anser.NotSent,
			"anser.attempt=N anser.outcome=not sent error.type=CANCELLED rpc.method=Shop/Buy rpc.status_code=CANCELLED rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"", false,
		},
		{
			"not sent: over the server's limit", func() error { return x.buy(t.Context(), strings.Repeat("x", 5<<20)) }, anser.NotSent,
			"anser.attempt=N anser.outcome=not sent anser.pick.balancer=p2c anser.pick.reason=the only one error.type=RESOURCE_EXHAUSTED network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=RESOURCE_EXHAUSTED rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"", false,
		},
		{
			"not sent: no server", func() error {
				_, err := anser.Call[[]byte](t.Context(), nobody, "Shop.Buy", new([]byte))
				return err
			}, anser.NotSent,
			"anser.attempt=N anser.outcome=not sent anser.pick.balancer=p2c anser.pick.reason=the only one error.type=UNAVAILABLE network.peer.address=127.0.0.1 network.peer.port=P rpc.method=Shop/Buy rpc.status_code=UNAVAILABLE rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"", false,
		},
	} {
		if got := anser.OutcomeOf(test.call()); got != test.outcome {
			t.Errorf("%s: the outcome is %v, want %v", test.name, got, test.outcome)
		}
		want := []string{test.client}
		if test.server != "" {
			want = append(want, test.server)
		}
		spans := eventually(t, e, len(want))
		slices.SortFunc(spans, func(a, b *traces.Span) int { return cmp.Compare(b.Kind, a.Kind) }) // clients first
		for i, s := range spans {
			got := tries.ReplaceAllString(textOf(s.Attributes), "anser.attempt=N")
			if got != want[i] || s.Status.GetCode() != traces.Status_STATUS_CODE_ERROR {
				t.Errorf("%s: the %v has the status %v and\n%s\nwant an error and\n%s", test.name, s.Kind, s.Status, got, want[i])
			}
		}
		if len(spans) == 2 && (idOf(spans[1].ParentSpanId) == idOf(spans[0].SpanId) && idOf(spans[1].TraceId) == idOf(spans[0].TraceId)) != test.child {
			t.Errorf("%s: the server's span %v is a child of the client's %v: want %v", test.name, spans[1], spans[0], test.child)
		}
	}
}

// eventually returns the spans, in the order in which they began, when n of them have arrived.
func eventually(t *testing.T, e *export, n int) (all []*traces.Span) {
	t.Helper()
	for len(all) < n {
		all = append(all, e.take(t)...)
		if t.Context().Err() != nil {
			t.Fatal("the time is over")
		}
	}
	if len(all) != n {
		t.Fatalf("%d spans, want %d: %v", len(all), n, all)
	}
	slices.SortFunc(all, func(a, b *traces.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	return all
}

// A call that was tried twice has an event for each attempt, and its server a span for each.
func TestSpansOfAttempts(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) { testSpansOfAttempts(t, newExport(t, way...)) })
	}
}

func testSpansOfAttempts(t *testing.T, e *export) {
	x := newSides(t, e, anser.RetryOn(anser.Aborted), anser.Idempotent())
	if err := x.buy(t.Context(), "once"); err != nil { // the SDK makes the first span in any case
		t.Fatal(err)
	}
	eventually(t, e, 2)
	if err := x.buy(t.Context(), "twice"); err != nil {
		t.Fatal(err)
	}
	spans := eventually(t, e, 3)
	want := []string{
		"anser.attempt.backoff=T anser.attempt.duration=T anser.attempt=0 anser.outcome=executed anser.pick.reason=the only one network.peer.address=127.0.0.1 network.peer.port=P rpc.status_code=ABORTED",
		"anser.attempt.duration=T anser.attempt=1 anser.pick.reason=the only one network.peer.address=127.0.0.1 network.peer.port=P rpc.status_code=OK",
	}
	events := spans[0].Events
	if len(events) != len(want) {
		t.Fatalf("events %v", events)
	}
	for i, ev := range events {
		if got := textOf(ev.Attributes); ev.Name != "anser.attempt" || got != want[i] {
			t.Errorf("%s has\n%s\nwant\n%s", ev.Name, got, want[i])
		}
		if ev.TimeUnixNano < spans[0].StartTimeUnixNano || ev.TimeUnixNano > spans[0].EndTimeUnixNano {
			t.Error("an event is outside of its span")
		}
	}
	for _, s := range spans[1:] {
		if idOf(s.ParentSpanId) != idOf(spans[0].SpanId) {
			t.Error("the span of an attempt at the server has another parent")
		}
	}
}

// The span of a oneway call at the server begins a trace of its own, with a link to the caller.
func TestSpansOfOneway(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) { testSpansOfOneway(t, newExport(t, way...)) })
	}
}

func testSpansOfOneway(t *testing.T, e *export) {
	x := newSides(t, e)
	if err := x.buy(t.Context(), "once"); err != nil {
		t.Fatal(err)
	}
	eventually(t, e, 2)
	if err := anser.Send(t.Context(), x.c, "Shop.Buy", new([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	spans := eventually(t, e, 2)
	c, s := spans[0], spans[1]
	if s.Kind != traces.Span_SPAN_KIND_SERVER {
		c, s = s, c
	}
	if idOf(s.TraceId) == idOf(c.TraceId) || len(s.ParentSpanId) != 0 || len(s.Links) != 1 || idOf(s.Links[0].SpanId) != idOf(c.SpanId) || idOf(s.Links[0].TraceId) != idOf(c.TraceId) {
		t.Errorf("the server's span is %v, the client's %v", s, c)
	}
}
