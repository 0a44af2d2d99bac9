package anser_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
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
