package awake_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/awake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Without delays it is a clock like any other.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := awake.Start()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := c.Elapsed(); got != time.Second {
			t.Errorf("after a second it shows %v", got)
		}
		time.Sleep(4 * time.Second)
		if got := c.Stop(); got < 5*time.Second-50*time.Millisecond || got > 5*time.Second {
			t.Errorf("stopped after 5 s it shows %v", got)
		}
		time.Sleep(time.Second)
		if got := c.Elapsed(); got > 5*time.Second {
			t.Errorf("it went on to %v", got)
		}
	})
}
