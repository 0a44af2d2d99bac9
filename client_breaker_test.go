package anser_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/testlog"
)

// A breaker opens for one method at one instance, probes it with single calls, and closes when it
// has recovered.
func TestBreaker(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3)
		a := w.who["a:1"]
		a.gets(func(method string) error {
			if method == workMethod {
				return broken(method)
			}
			return nil
		})
		failed := w.call(workMethod, 3*199)
		time.Sleep(time.Second)
		if failed != 199 || len(w.took()) != 0 {
			t.Fatalf("after 199 calls at the instance %d failed: %v", failed, w.took())
		}
		w.call(workMethod, 3)
		time.Sleep(time.Second)
		if got := w.took(); !slices.Equal(got, []anser.HealthChange{anser.BreakerOpened}) {
			t.Fatal(got)
		}
		if e := w.told()[0]; e.Instance.Address != "a:1" || e.Method != workMethod || e.Reason != "200 of 200 calls failed" || e.Until.IsZero() {
			t.Errorf("%+v", e)
		}
		if s := w.status("a:1"); len(s.Breakers) != 1 || s.Breakers[0].State != anser.StateOpen || s.Breakers[0].Method != workMethod || s.Breakers[0].Until.IsZero() || s.Ejected != "" {
			t.Errorf("%+v", s)
		}
		w.reset()
		if failed := w.call(workMethod, 30); failed != 0 || a.calls.Load() != 0 {
			t.Errorf("the breaker is open: %d calls failed, %d went there", failed, a.calls.Load())
		}
		if failed := w.call(otherMethod, 30); failed != 0 || a.calls.Load() < 9 {
			t.Errorf("another method: %d calls failed, %d of 30 went there", failed, a.calls.Load())
		}
		w.reset()
		failed = 0
		for range 100 {
			failed += w.call(workMethod, 10)
			time.Sleep(100 * time.Millisecond)
		}
		if failed == 0 || failed > 5 || a.calls.Load() != int64(failed) {
			t.Errorf("in 10 s %d of 1000 calls failed as probes, and %d went there: want 1 to 5", failed, a.calls.Load())
		}
		a.gets(nil)
		began := time.Now()
		for w.took()[len(w.took())-1] != anser.BreakerClosed {
			if w.call(workMethod, 10) > 0 || time.Since(began) > time.Minute {
				t.Fatalf("%v: it does not close", w.took())
			}
			time.Sleep(100 * time.Millisecond)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("it closed %v after the instance was well", d)
		}
		w.reset()
		if failed := w.call(workMethod, 30); failed != 0 || a.calls.Load() < 9 {
			t.Errorf("it is closed: %d calls failed, %d of 30 went there", failed, a.calls.Load())
		}
		if n := w.client.Status().Health[anser.BreakerClosed]; n != 1 {
			t.Errorf("it closed %d times", n)
		}
	})
}

// When a method fails at every instance, no breaker keeps calls away.
func TestBreakersNeverLeaveNobody(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 2)
		for _, p := range w.who {
			p.gets(broken)
		}
		w.call(workMethod, 800)
		time.Sleep(500 * time.Millisecond)
		if n := w.client.Status().Health[anser.BreakerOpened]; n != 2 {
			t.Fatalf("%d breakers opened", n)
		}
		w.reset()
		w.call(workMethod, 20)
		for address, p := range w.who {
			if p.calls.Load() < 8 {
				t.Errorf("%s got %d of 20 calls", address, p.calls.Load())
			}
		}
	})
}

// Errors that say nothing about the instance open no breaker.
func TestWhatABreakerDoesNotCount(t *testing.T) {
	for name, answer := range map[string]func(string) error{
		"an error of the handler": func(string) error { return errors.New("no such user") },
		"a bad request":           func(string) error { return anser.Refuse(anser.InvalidArgument, "bad") },
		"too much to do":          func(string) error { return anser.Refuse(anser.ResourceExhausted, "busy") },
		"refused for good":        func(string) error { return anser.Refuse(anser.Unavailable, "no").WithRetryAfter(anser.RetryNever) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				w := newWard(t, network, 2)
				w.who["a:1"].gets(answer)
				if failed := w.call(workMethod, 1000); failed != 500 {
					t.Fatalf("%d of 1000 calls failed", failed)
				}
				time.Sleep(time.Second)
				if got := w.took(); len(got) != 0 {
					t.Error(got)
				}
			})
		})
	}
}

// Dial rejects impossible health options with an error that says what to do.
func TestHealthOptionsThatCannotWork(t *testing.T) {
	for _, o := range []anser.DialOption{
		anser.Breaker{Ratio: 1.5},
		anser.Breaker{Ratio: -1},
		anser.Breaker{Calls: -1},
		anser.Breaker{Window: time.Millisecond},
		anser.Breaker{Open: -1},
		anser.OutlierDetection{Failures: -1},
		anser.OutlierDetection{Timeouts: -1},
		anser.OutlierDetection{Calls: -1},
		anser.OutlierDetection{Deviations: -1},
		anser.OutlierDetection{Slow: 1},
		anser.OutlierDetection{Time: -1},
		anser.OutlierDetection{Time: 2, MaxTime: 1},
		anser.OutlierDetection{MaxPart: 0.6},
		anser.OutlierDetection{MaxPart: -1},
		anser.Subset(10, 1), anser.Subset(10, 20), anser.Subset(-1, -1),
	} {
		if c, err := anser.Dial("127.0.0.1:1", o); err == nil {
			c.Close()
			t.Errorf("%+v is accepted", o)
		}
	}
}

// A breaker is a line in the log when it opens and when it closes, and none for calls that fail.
func TestBreakerIsLoggedOnChange(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		log := new(testlog.Buffer)
		w := newWard(t, network, 2, anser.Logger(log.Logger()))
		lines := func(change anser.HealthChange) int { return strings.Count(log.String(), change.String()) }
		w.who["a:1"].gets(broken)
		failed := 0
		for range 10 {
			failed += w.call(workMethod, 200)
			time.Sleep(100 * time.Millisecond)
		}
		if failed < 200 || lines(anser.BreakerOpened) != 1 || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("after %d failures and the changes %v the log is\n%s", failed, w.took(), log)
		}
		w.who["a:1"].gets(nil)
		for range 600 {
			w.call(workMethod, 10)
			time.Sleep(100 * time.Millisecond)
		}
		if lines(anser.BreakerClosed) != 1 || strings.Count(log.String(), "\n") != 2 { // half open is for Debug
			t.Errorf("after the changes %v the log is\n%s", w.took(), log)
		}
	})
}
