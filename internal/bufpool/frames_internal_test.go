package bufpool

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// The reserve is taken while frames come and collections are frequent, and given up when either
// ends.
func TestReserve(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		since  time.Duration // the last collection
		frames int
		has    bool
		take   bool
		keeps  bool
	}{
		"frequent":                      {since: 10 * ms, frames: 8, take: true},
		"seldom":                        {since: 60 * ms, frames: 100},
		"few frames":                    {since: 10 * ms, frames: 7},
		"it has one":                    {since: 10 * ms, frames: 100, has: true, keeps: true},
		"it has one, and no more frame": {since: 10 * ms, has: true},
		"it has one, and it helps":      {since: 600 * ms, frames: 100, has: true, keeps: true},
		"it has one, much later":        {since: time.Second, frames: 100, has: true},
	} {
		s := frameStore{waiting: true} // for no collection: the test reports them
		now := mono.Time(time.Hour)
		s.noteCollection(now)
		if test.has {
			s.reserve = make([]byte, 1)
		}
		for i := range inARow {
			for range test.frames {
				s.put(0, make([]byte, smallestFrame))
				s.get(0, smallestFrame)
			}
			now = now.Add(test.since)
			want := test.take && i == inARow-1
			if take := s.noteCollection(now); take != want || (s.reserve != nil) != test.keeps {
				t.Errorf("%s, %d: take %v, kept %v; want %v, %v", name, i, take, s.reserve != nil, want, test.keeps)
			}
		}
	}
}

// Free buffers over the limit are not kept, nor are buffers that nothing has needed for a second.
func TestKeptFrames(t *testing.T) {
	s := frameStore{waiting: true} // for no collection: the test reports them
	now := mono.Time(time.Hour)
	s.noteCollection(now)
	class, size := frameClass(1 << 20)
	for range 40 {
		s.put(class, make([]byte, size))
	}
	if s.bytes != keptFrames || len(s.free[class]) != keptFrames/size {
		t.Fatalf("%d buffers with %d bytes are kept, want %d bytes", len(s.free[class]), s.bytes, keptFrames)
	}
	s.noteCollection(now.Add(time.Second))
	for range 3 {
		s.put(class, s.get(class, smallestFrame))
	}
	s.noteCollection(now.Add(2*time.Second - 1))
	if s.bytes != keptFrames {
		t.Errorf("%d bytes are kept within a second, want %d", s.bytes, keptFrames)
	}
	s.noteCollection(now.Add(2 * time.Second))
	if len(s.free[class]) != 1 || s.bytes != size {
		t.Errorf("%d buffers with %d bytes are left where one was needed at a time", len(s.free[class]), s.bytes)
	}
}
