package striped_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/striped"
)

// A caller that runs alone keeps its place. (A pool of the race detector drops some.)
func TestPlace(t *testing.T) {
	same, last := 0, striped.Place()
	for range 1000 {
		now := striped.Place()
		if now == last {
			same++
		}
		last = now
	}
	if same < 500 {
		t.Errorf("the place was the same %d times of 1,000", same)
	}
}

func BenchmarkPlace(b *testing.B) {
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			striped.Place()
		}
	})
}
