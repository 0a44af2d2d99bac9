package anser

import (
	"net"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

func TestBacklog(t *testing.T) {
	const ms = mono.Time(time.Millisecond)
	var b sockDelay
	queue := 0
	read := func(now mono.Time, n int64) int64 {
		b.note(now, n, func() int { return queue })
		return b.waited.Milliseconds()
	}
	queue = 100_000
	for i, step := range []struct {
		at      mono.Time
		n, want int64
	}{
		{0, 50_000, 0},          // 100,000 bytes after it had arrived at 0
		{10 * ms, 50_000, 10},   // these had arrived by then
		{30 * ms, 50_000, 30},   // and these
		{31 * ms, 50_000, 21},   // these came after 0, but before 10 ms
		{200 * ms, 50_000, 170}, // the last ones with a known time
		{210 * ms, 10, 10},      // before 200 ms
		{220 * ms, 50_000, 0},   // the socket was empty
	} {
		if got := read(step.at, step.n); got != step.want {
			t.Errorf("read %d: waited %d ms, want %d", i, got, step.want)
		}
	}
}

// Bytes that are thrown away were taken from the socket, too: what had waited before them has
// nothing to do with what comes after them.
func TestBacklogAfterDiscard(t *testing.T) {
	in, out := net.Pipe()
	defer in.Close()
	defer out.Close()
	go out.Write(make([]byte, 1000+40_000+900)) // so few that the socket is not asked
	rd := reader{nc: in, progress: new(progress), buf: make([]byte, 1000)}
	var b sockDelay
	if err := b.fill(&rd); err != nil {
		t.Fatal(err)
	}
	rd.r = rd.w - 100 // the beginning of a frame of 40,100 bytes
	if err := rd.discard(40_000); err != nil {
		t.Fatal(err)
	}
	b.marks[0], b.num = arrivalMark{30_000, mono.Now() - mono.Time(time.Hour)}, 1
	if err := b.fill(&rd); err != nil {
		t.Fatal(err)
	}
	if got := rd.progress.received.Load(); b.taken != got || b.waited != 0 {
		t.Errorf("%d bytes were taken, want %d; the next ones have waited for %v", b.taken, got, b.waited)
	}
}
