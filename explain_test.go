package anser_test

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/ansertest"
)

// ejectA makes calls until the instance a:1, which declines them, is out.
func (w *ward) ejectA() {
	w.t.Helper()
	for i := 0; w.status("a:1").Ejected == ""; i++ {
		w.call(workMethod, 3)
		time.Sleep(100 * time.Millisecond)
		if i > 100 {
			w.t.Fatal("it is not ejected")
		}
	}
}

// An explanation takes no trial away from the calls.
func TestExplainTriesNobody(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3)
		a := w.who["a:1"]
		a.gets(declining)
		w.ejectA()
		a.gets(nil)
		time.Sleep(5 * time.Second) // from now on the next call tries it
		w.reset()
		for range 5 {
			if x, err := w.client.Explain(t.Context(), workMethod); err != nil || x.Pick == "a:1" || x.Pick == "" {
				t.Fatalf("%+v, %v: want another pick", x, err)
			}
		}
		if failed := w.call(workMethod, 1); failed != 0 || a.calls.Load() != 1 {
			t.Errorf("%d calls failed, %d went to the instance on trial", failed, a.calls.Load())
		}
	})
}
