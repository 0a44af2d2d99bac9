package cancelpace_test

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/cancelpace"
	"github.com/anser-rpc/anser/internal/mono"
)

func TestLimit(t *testing.T) {
	var l cancelpace.Limit
	n := 0
	for l.Allow(second, maxCalls) {
		n++
	}
	if n < cancelpace.Rate || n > 10*cancelpace.Rate {
		t.Errorf("%d CANCELs are allowed at once", n)
	}
	if l.Allow(second+1, maxCalls) {
		t.Error("a client may go on at once")
	}
	if !l.Allow(10*second, maxCalls) {
		t.Error("a client may not go on after ten seconds")
	}
	if !l.Allow(0, maxCalls) {
		t.Error("an earlier time fills the bucket")
	}
}

// A client that keeps to its pace never makes the reader pause, and of one that does not, few
// CANCELs follow each other without a pause.
func TestBreathes(t *testing.T) {
	var l cancelpace.Limit
	now := mono.Time(1)
	for range 10 * cancelpace.Rate {
		now = now.Add(time.Second / cancelpace.Rate)
		if !l.Allow(now, 10_000) || l.Breathes(true) {
			t.Fatal("a client that keeps to its pace is slowed down")
		}
	}
	for _, row := range []struct {
		running bool
		most    int // between two pauses
	}{{true, 128}, {false, 1024}} {
		l, since, pauses := cancelpace.Limit{}, 0, 0
		for i := range 50_000 {
			l.Allow(now, 10_000)
			since++
			if l.Breathes(row.running) {
				since, pauses = 0, pauses+1
			}
			if i > 3_000 && since > row.most {
				t.Fatalf("%d CANCELs without a pause, running: %v", since, row.running)
			}
		}
		if want := 49_000 / row.most; pauses != want {
			t.Errorf("%d pauses, want %d, running: %v", pauses, want, row.running)
		}
	}
}
