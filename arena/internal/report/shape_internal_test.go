package report

import (
	"testing"

	"github.com/anser-rpc/anser/arena/result"
)

func TestShapesInWords(t *testing.T) {
	usual := result.Shape{Callers: 1000, Conns: 2, Payload: 581, Servers: 1, Clients: 1, Hosts: 1, Seconds: 5}
	with := func(change func(s *result.Shape)) result.Shape {
		s := usual
		change(&s)
		return s
	}
	for _, c := range []struct {
		shape            result.Shape
		key, label, kind string
	}{
		{usual, "c1000-n2", "1,000 callers, 2 connections", "Shared connections"},
		{with(func(s *result.Shape) { s.Callers, s.Conns = 1, 1 }), "c1-n1", "1 caller, 1 connection", "Shared connections"},
		{with(func(s *result.Shape) { s.Conns = 0 }), "c1000-each", "1,000 callers, a connection for each caller", "A connection for each caller"},
		{with(func(s *result.Shape) { s.Fresh = true }), "c1000-fresh", "1,000 callers, a connection for each call", "A connection for each call"},
		{with(func(s *result.Shape) { s.Window = 64 }), "c1000-n2-w64", "1,000 callers, 2 connections, 64 calls in flight for each", "Calls in flight"},
		{with(func(s *result.Shape) { s.Payload = 65_536 }), "c1000-n2-p65536", "1,000 callers, 2 connections, 64 KiB payload", "Other payloads"},
		{with(func(s *result.Shape) { s.SleepUS = 10_000 }), "c1000-n2-sleep10000", "1,000 callers, 2 connections, handler sleeps 10 ms", "Slow handlers"},
		{with(func(s *result.Shape) { s.WorkUS = 100 }), "c1000-n2-work100", "1,000 callers, 2 connections, handler works 100 µs", "Slow handlers"},
		{with(func(s *result.Shape) { s.Rate = 2500.5 }), "c1000-n2-r2500.5", "1,000 callers, 2 connections, 2,500 calls/s offered", "Open loop"},
		{with(func(s *result.Shape) { s.Servers, s.Clients, s.Hosts = 2, 4, 2 }), "c1000-n2-servers2-clients4-hosts2", "1,000 callers, 2 connections, 2 servers, 4 client processes, 2 hosts", "Several processes or hosts"},
		{with(func(s *result.Shape) { s.Calls, s.Seconds = 1_000_000, 0 }), "c1000-n2-calls1000000", "1,000 callers, 2 connections, 1,000,000 calls", "Shared connections"},
	} {
		if got := shapeKey(&c.shape, false); got != c.key {
			t.Errorf("the key is %s, want %s", got, c.key)
		}
		if got := shapeLabel(&c.shape, false); got != c.label {
			t.Errorf("the label is %q, want %q", got, c.label)
		}
		if got := kinds[kind(&c.shape)]; got != c.kind {
			t.Errorf("%s is of kind %q, want %q", c.label, got, c.kind)
		}
	}
	if got := shapeKey(&usual, true) + ": " + shapeLabel(&usual, true); got != "c1000-n2-5s: 1,000 callers, 2 connections, 5 s" {
		t.Errorf("with seconds it is %s", got)
	}
}
