package anser_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/testlog"
)

// An instance that fails far more than the others is ejected, although it succeeds now and then.
func TestSuccessRateOutlier(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 6, anser.Breaker{Off: true})
		var n atomic.Int64
		w.who["b:1"].gets(func(string) error {
			if n.Add(1)%3 == 0 {
				return broken("")
			}
			return nil
		})
		for range 100 {
			w.call(workMethod, 12)
			time.Sleep(50 * time.Millisecond)
		}
		ev := w.told()
		if len(ev) == 0 || ev[0].Change != anser.InstanceEjected || ev[0].Instance.Address != "b:1" {
			t.Fatalf("%+v", ev)
		}
		for _, e := range ev {
			if e.Instance.Address != "b:1" {
				t.Errorf("%+v", e)
			}
		}
	})
}

// Where all instances fail alike, none is an outlier.
func TestNoOutlierAmongEquals(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 6, anser.Breaker{Off: true})
		for i, p := range w.who {
			var n atomic.Int64
			p.gets(func(string) error {
				if n.Add(1)%int64(3+i[0]%2) == 0 { // a third, or a quarter
					return broken("")
				}
				return nil
			})
		}
		for range 100 {
			w.call(workMethod, 12)
			time.Sleep(50 * time.Millisecond)
		}
		if got := w.took(); len(got) != 0 {
			t.Error(got)
		}
	})
}

// With Slow, an instance whose replies take many times as long as the others' is ejected.
func TestSlowOutlier(t *testing.T) {
	for name, slow := range map[string]float64{"on": 5, "off": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				w := newWard(t, network, 5, anser.OutlierDetection{Slow: slow})
				for address, p := range w.who {
					p.gets(func(string) error {
						if address == "c:1" {
							time.Sleep(20 * time.Millisecond)
						} else {
							time.Sleep(time.Millisecond)
						}
						return nil
					})
				}
				for range 30 {
					w.call(workMethod, 50)
				}
				got := w.status("c:1").Ejected
				if slow > 0 && !strings.HasPrefix(got, "its answers take ") || slow == 0 && got != "" {
					t.Errorf("ejected: %q", got)
				}
			})
		})
	}
}

// An ejection is a line in the log, and so is the return, however many calls and probes fail in
// between.
func TestEjectionIsLoggedOnChange(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		log := new(testlog.Buffer)
		w := newWard(t, network, 3, anser.WithFailMode(anser.Failover), anser.Logger(log.Logger()))
		w.who["a:1"].gets(declining)
		for range 600 { // a minute
			w.call(workMethod, 5)
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.status("a:1").Ejections; n < 3 {
			t.Errorf("%d ejections in a row, want 3 and more", n)
		}
		line := func(text string, want ...string) {
			t.Helper()
			if strings.Count(text, "\n") != 1 {
				t.Errorf("after the changes %v the log is\n%s", w.took(), text)
			}
			for _, part := range want {
				if !strings.Contains(text, part) {
					t.Errorf("no %s in the log:\n%s", part, text)
				}
			}
		}
		line(log.Take(), "level=WARN", `msg="`+anser.InstanceEjected.String()+`"`, "address=a:1", `reason="it refused `, "until=", "service=")
		w.who["a:1"].gets(nil)
		for range 600 {
			w.call(workMethod, 5)
			time.Sleep(100 * time.Millisecond)
		}
		line(log.Take(), "level=INFO", `msg="`+anser.InstanceRestored.String()+`"`, "address=a:1", `reason="3 calls that tried it succeeded"`)
	})
}
