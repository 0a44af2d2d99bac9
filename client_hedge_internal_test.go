package anser

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestLatencySteps(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 10*time.Hour; d = d*9/8 + time.Microsecond {
		s := latencyStep(d)
		if s < last || s >= latencySteps {
			t.Fatalf("step %d of %v after %d", s, d, last)
		}
		last = s
		if b := latencyBound(s); s < latencySteps-1 && (b <= d-time.Microsecond || float64(b) > 1.13*float64(d)+2000) {
			t.Errorf("%v is in a step that ends at %v", d, b)
		}
	}
	if s := latencyStep(-1); s != 0 {
		t.Error(s)
	}
}

func TestLatenciesFindTheirQuantile(t *testing.T) {
	var l latencies
	for range 10_000 {
		l.note(time.Duration(rand.ExpFloat64() * float64(time.Millisecond)))
	}
	// The true one is ln 20 = 3.0 ms.
	if d := l.high(); d < 2700*time.Microsecond || d > 3700*time.Microsecond {
		t.Errorf("95 %% within %v", d)
	}
}
