package striped_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser/internal/striped"
)

func newLimit(places, parts int) *striped.Limit {
	l := new(striped.Limit)
	l.Init(places, parts)
	return l
}

// Every place can be taken from any part, and none beyond them.
func TestLimit(t *testing.T) {
	for _, places := range []int{0, 1, 3, 64, 1000, 10_000} {
		for _, parts := range []int{1, 2, 16} {
			l := newLimit(places, parts)
			for i := range places {
				if !l.Take(uint32(i * i)) {
					t.Fatalf("%d of %d places are taken in %d parts, and there is no other", i, places, parts)
				}
			}
			for i := range parts {
				if l.Take(uint32(i)) {
					t.Fatalf("more than %d places in %d parts", places, parts)
				}
			}
			if n := l.Taken(); n != int64(places) {
				t.Errorf("%d places are taken, want %d", n, places)
			}
			if places == 0 {
				continue
			}
			l.Give(0)
			if !l.Take(uint32(parts - 1)) {
				t.Errorf("the place that part 0 of %d gave back is not there for the last part", parts)
			}
			if l.Take(0) {
				t.Error("it is there twice")
			}
			for i := range places {
				switch {
				case i == 0:
					l.Give(uint32(parts - 1))
				default:
					l.Give(uint32(i * i))
				}
			}
			if n := l.Taken(); n != 0 {
				t.Errorf("%d places are taken in the end", n)
			}
			for i := range places {
				if !l.Take(0) {
					t.Fatalf("one part gets %d of %d places", i, places)
				}
			}
		}
	}
}

// Places beyond the limit count, and are paid back before others are taken.
func TestForce(t *testing.T) {
	l := newLimit(2, 4)
	l.Force(0)
	l.Force(1)
	l.Force(1)
	l.Force(2)
	if n := l.Taken(); n != 4 {
		t.Errorf("%d places are taken, want 4", n)
	}
	for _, part := range []uint32{1, 2} {
		l.Give(part)
		if n := l.Taken(); n >= 2 && l.Take(3) {
			t.Errorf("a place is taken while %d of 2 are", n)
		}
	}
	l.Give(0)
	if !l.Take(3) || l.Take(3) {
		t.Error("with one place taken there is not one more")
	}
}

// Many goroutines never take more than there are, and all places are there in the end.
func TestLimitIsExact(t *testing.T) {
	const places = 7
	l := newLimit(places, 8)
	var now, refused atomic.Int64
	var wg sync.WaitGroup
	for range 2 * places {
		wg.Go(func() {
			for range 5000 {
				part := rand.Uint32()
				if !l.Take(part) {
					refused.Add(1)
					continue
				}
				if n := now.Add(1); n > places {
					t.Errorf("%d of %d places are taken", n, places)
				}
				now.Add(-1)
				l.Give(part)
			}
		})
	}
	wg.Wait()
	if n := l.Taken(); n != 0 {
		t.Errorf("%d places are taken in the end", n)
	}
	for i := range places {
		if !l.Take(uint32(i)) {
			t.Errorf("after all that, only %d places are there", i)
		}
	}
}

// As many goroutines as there are places, each of which holds one at most, are never refused.
func TestLimitRefusesNoneInVain(t *testing.T) {
	const places = 6
	l := newLimit(places, 4)
	var wg sync.WaitGroup
	for range places {
		wg.Go(func() {
			for range 5000 {
				part := rand.Uint32()
				if !l.Take(part) {
					t.Error("refused, and a place is free")
					return
				}
				l.Give(part)
			}
		})
	}
	wg.Wait()
}

// What one part has tells about all of them.
func TestEstimate(t *testing.T) {
	for _, parts := range []int{1, 2, 16} {
		l := newLimit(1000, parts)
		for i := range 320 {
			l.Take(uint32(i))
		}
		for i := range parts {
			if n := l.Estimate(uint32(i)); n != 320 {
				t.Errorf("about %d places are taken by part %d of %d, want 320", n, i, parts)
			}
		}
		l.Give(0)
		if n := l.Estimate(0); n != int64(320-parts) {
			t.Errorf("about %d places are taken after part 0 of %d gave one back, want %d", n, parts, 320-parts)
		}
	}
}
