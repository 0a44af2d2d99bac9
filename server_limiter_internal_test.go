package anser

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/anser-rpc/anser/wire"
)

// A refused call does not count as waiting any more when a worker gets it: the worker may answer at once, and
// the caller may ask for the counters before the goroutine that refused the call goes on.
func TestRefusedCallDoesNotWait(t *testing.T) {
	s := NewServer(Logger(slog.New(slog.DiscardHandler)))
	defer s.Close()
	echo := func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil }
	if err := Handle(s, "Echo.Say", echo, AdaptiveLimit(1, 1), MaxQueueTime(time.Hour)); err != nil {
		t.Fatal(err)
	}
	m, _ := s.table.find("Echo.Say")
	g := m.limits.queue
	c := &serverConn{server: s, peerSays: wire.DefaultSettings()}
	c.writer.init(nowhere{}, &s.conns, &c.streams)
	j := &job{ctx: &callContext{conn: c, method: m, id: 1, priority: uint8(Normal)}, codec: s.codecs[1]}
	s.inFlight.Add(1)
	c.open(j.ctx)
	g.running.Store(1)
	g.enter(j)

	s.workers.mu.Lock() // no worker gets the call
	refused := make(chan struct{})
	go func() {
		defer close(refused)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refuseLocked(g.lines[Normal].first(), m.limits.late)
	}()
	for end := time.Now().Add(time.Minute); g.waiting.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("the call counts as waiting until the worker has it")
			break
		}
	}
	s.workers.mu.Unlock()
	<-refused
	g.release()
}
