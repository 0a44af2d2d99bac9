package netrpc_test

import (
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser/netrpc"
)

// Calls that wait for MaxPerConn give up their places when the connection ends, whatever the calls that run do.
func TestWaitingCallsEndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaits()
		s := quiet(w)
		s.MaxPerConn = 1
		c := netrpc.NewClient(serveInMemory(t, s, nil)())
		for range 3 {
			c.Go("Waits.Stubborn", &Args{}, new(Reply), nil)
		}
		<-w.entered
		synctest.Wait()
		if n := s.Stats().InFlight; n != 3 {
			t.Errorf("%d calls are in flight, want 3", n)
		}
		c.Close()
		synctest.Wait()
		if n := s.Stats().InFlight; n != 1 {
			t.Errorf("%d calls are in flight after the end, want 1", n)
		}
		close(w.release)
	})
}
