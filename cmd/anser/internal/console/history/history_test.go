package history_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/history"
	"github.com/anser-rpc/anser/telemetry"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// calls are n calls of about a millisecond.
func calls(n uint64) *collect.Calls {
	return &collect.Calls{Window: time.Second, Rate: float64(n), Failed: 1, Times: telemetry.Histogram{Count: n, First: -80, Counts: []uint64{n}}}
}

var key = history.Key{Kind: history.OfService, A: "arith"}

// add adds one round after the other.
func add(h *history.History, rounds int, step time.Duration, n uint64) {
	for range rounds {
		time.Sleep(step)
		h.Add(key, time.Now(), step, calls(n))
	}
}

func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New()
		add(h, 30, time.Second, 10)
		time.Sleep(10 * time.Second) // a gap
		add(h, 5, time.Second, 40)
		s := h.Series(key, history.Range{From: time.Now().Add(-44 * time.Second)})
		if len(s.Rate) != 45 || s.Step != time.Second || *s.Rate[0] != 10 || *s.Rate[44] != 40 || *s.Failed[44] != 1 || *s.P99[44] != telemetry.Bound(-80) {
			t.Fatalf("%+v", s)
		}
		for i := 30; i < 40; i++ {
			if s.Rate[i] != nil || s.P50[i] != nil {
				t.Errorf("the step %d of the gap is known", i)
			}
		}
		if !s.From.Equal(time.Now().Add(-44 * time.Second).UTC()) {
			t.Errorf("the series is from %v at %v", s.From, time.Now())
		}
		s = h.Series(key, history.Range{From: time.Now().Add(-44 * time.Second), Step: 10 * time.Second})
		if s.Step != 10*time.Second || *s.Rate[0] != 10 || *s.Rate[len(s.Rate)-1] != 40 {
			t.Errorf("%+v", s)
		}
		heat := h.Heat(key, history.Range{From: time.Now().Add(-4 * time.Second)})
		sum := uint64(0)
		for i, n := range heat.Counts[4] {
			if sum += n; n > 0 && (heat.Bounds[i] < telemetry.Bound(-80) || heat.Bounds[i] > 2*telemetry.Bound(-80)) {
				t.Errorf("%d calls in the row of %v", n, heat.Bounds[i])
			}
		}
		if sum != 40 {
			t.Errorf("%d calls in the last step", sum)
		}
	})
}

// A process that is read every 30 seconds has a series without gaps, whose calls are counted once.
func TestLongSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New()
		add(h, 5, 10*time.Second, 7)
		add(h, 4, 30*time.Second, 10)
		from := time.Now().Add(-150 * time.Second)
		s := h.Series(key, history.Range{From: from, Step: 10 * time.Second})
		for i, r := range s.Rate {
			if r == nil || (*r != 7 && *r != 10) {
				t.Errorf("the rate of the step %d of %d is not known", i, len(s.Rate))
			}
		}
		counted := uint64(0)
		for _, row := range h.Heat(key, history.Range{From: from, Step: 10 * time.Second}).Counts {
			for _, n := range row {
				counted += uint64(n)
			}
		}
		if counted > 5*7+4*10 {
			t.Errorf("%d calls are counted", counted)
		}
	})
}

// Rounds that are some seconds from each other have figures and calls in each second.
func TestRoundsOfSomeSeconds(t *testing.T) {
	for _, step := range []time.Duration{2 * time.Second, 2500 * time.Millisecond, 2499300 * time.Microsecond, 5 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := history.New()
			add(h, 20, step, 30)
			span := history.Range{From: time.Now().Add(-19 * step)}
			for i, r := range h.Series(key, span).Rate {
				if r == nil || *r != 30 {
					t.Errorf("rounds every %v: the rate of the second %d is not known", step, i)
				}
			}
			counted := uint64(0)
			for i, row := range h.Heat(key, span).Counts {
				n := uint64(0)
				for _, m := range row {
					n += m
				}
				if counted += n; n == 0 {
					t.Errorf("rounds every %v: no calls in the second %d", step, i)
				}
			}
			if counted > 20*30 || counted < 19*30 {
				t.Errorf("rounds every %v: %d calls are counted", step, counted)
			}
		})
	}
}

// Seconds are kept for five minutes and steps of ten seconds for an hour, and then their places are
// used again.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New()
		add(h, 500, 10*time.Second, 10)
		s := h.Series(key, history.Range{From: time.Now().Add(-3 * time.Hour)})
		if n := len(s.Rate); n < 360 || n > 361 || s.Step != 10*time.Second || *s.Rate[n-1] != 10 {
			t.Errorf("%d steps of %v", n, s.Step)
		}
		for i, r := range h.Series(key, history.Range{}).Rate[1:] { // the place of the first one is used again
			if r == nil || *r != 10 {
				t.Errorf("the second %d of the last five minutes is not known, although there are readings every ten seconds", i)
			}
		}
		wide := h.Series(key, history.Range{From: time.Now().Add(-time.Hour), Step: time.Minute})
		if n := len(wide.Rate); n < 60 || n > 62 || *wide.Rate[30] != 10 {
			t.Errorf("%d steps of a minute", n)
		}
		time.Sleep(2 * time.Hour)
		if h.Prune(time.Now()); h.Len() != 0 {
			t.Errorf("%d series are left", h.Len())
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New()
		now := time.Now()
		for i := range history.MaxSeries + 100 {
			h.Add(history.Key{Kind: history.OfInstance, A: "a", B: string(rune(i + 1000))}, now, 10*time.Second, calls(1))
		}
		if h.Len() != history.MaxSeries {
			t.Errorf("%d series", h.Len())
		}
		time.Sleep(time.Minute)
		h.Add(key, time.Now(), time.Second, calls(7))
		if s := h.Series(key, history.Range{}); h.Len() != history.MaxSeries || *s.Rate[len(s.Rate)-1] != 7 {
			t.Error("a new series finds no room, though the others are over")
		}
		if s := h.Series(key, history.Range{From: now.Add(-time.Hour), To: now, Step: time.Second}); len(s.Rate) > 2000 {
			t.Errorf("%d steps in an answer", len(s.Rate))
		}
		if s := h.Series(key, history.Range{From: time.Now().Add(time.Hour), To: time.Now().Add(-time.Hour)}); len(s.Rate) != 1 {
			t.Errorf("%d steps of a range that ends before it begins", len(s.Rate))
		}
	})
}

// A step or a range beyond what is kept costs no more than all that is kept: a viewer cannot stop
// the console with one.
func TestHostileRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New()
		add(h, 5, time.Second, 10)
		now := time.Now()
		for _, r := range []history.Range{
			{Step: 1000 * history.Span},
			{From: now.Add(-time.Minute), Step: 24 * time.Hour},
			{To: now.Add(-1000 * history.Span)},
			{From: time.Unix(-1<<40, 0), To: time.Unix(-1<<40, 0).Add(time.Second)},
			{From: now.Add(time.Hour), To: now.Add(-time.Hour)},
		} {
			s := h.Series(key, r)
			if s.Step > history.Span || s.From.Before(now.Add(-2*history.Span)) || s.From.After(now) || len(s.Rate) == 0 {
				t.Errorf("%+v: %d steps of %v from %v at %v", r, len(s.Rate), s.Step, s.From, now)
			}
			if heat := h.Heat(key, r); heat.Step != s.Step || !heat.From.Equal(s.From) || len(heat.Counts) != len(s.Rate) {
				t.Errorf("%+v: %d steps of %v from %v, and a series has others", r, len(heat.Counts), heat.Step, heat.From)
			}
		}
	})
}
