package anser

import (
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
