package anser_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/wire"
)

// Calls with Failsafe that fail are a line a minute with their number.
func TestFailsafeIsLoggedSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, execute(wire.Aborted), "a:1")
		log := new(testlog.Buffer)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failsafe), anser.Logger(log.Logger()))
		fail := func(n int) {
			for range n {
				if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		fail(100)
		if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "calls=1 method=Echo.Say") || !strings.Contains(text, "level=WARN") {
			t.Errorf("after a hundred failures:\n%s", text)
		}
		time.Sleep(time.Minute)
		fail(100)
		if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "calls=100 method=Echo.Say") {
			t.Errorf("after a hundred more, a minute later:\n%s", text)
		}
	})
}

// Calls with Failback that are given up are a line with the number of the calls before, and another
// one when the client is closed.
func TestFailbackIsLoggedSeldom(t *testing.T) {
	for name, test := range map[string]struct {
		age   time.Duration
		lines int
		parts []string
	}{
		"too old": {5 * time.Second, 1, []string{"level=WARN", "calls=1 method=Echo.Say"}},
		"closed":  {time.Hour, 1, []string{"level=WARN", "the client is closed", "calls=100\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				log := new(testlog.Buffer)
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failback), anser.Logger(log.Logger()),
					anser.FailbackQueue(anser.FailbackLimits{Age: test.age, Drain: -1}), anser.Timeout(100*time.Millisecond))
				for range 100 {
					if _, err := call(context.Background(), c, "Echo.Say", ""); !errors.Is(err, anser.ErrQueued) {
						t.Fatal(err)
					}
				}
				time.Sleep(50 * time.Second)
				c.Close()
				if n := c.Status().Failback.GivenUp; n != 100 {
					t.Errorf("%d calls are given up, want 100", n)
				}
				text := log.String()
				if strings.Count(text, "given up") != test.lines {
					t.Errorf("the log is\n%s", text)
				}
				for _, part := range test.parts {
					if !strings.Contains(text, part) {
						t.Errorf("no %q in the log:\n%s", part, text)
					}
				}
			})
		})
	}
}
