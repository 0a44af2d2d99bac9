package anser_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// A call with a key whose connection to a forwarding server is lost is not sent there again: it
// might be forwarded to another instance, which does not know the key and would run it.
func TestForwardedKeyOfALostCaller(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		countOnce(t, network, "a:1", &ran, 3*time.Second)
		countOnce(t, network, "b:1", &ran, 3*time.Second)
		forwardTo(t, network, "tcp://a:1,b:1")
		conns := make(chan func(), 10)
		c := dial(t, "gw:1", anser.Dialer(losing(network, conns)))
		time.AfterFunc(time.Second, func() { (<-conns)() })
		_, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey("k"))
		wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		time.Sleep(time.Minute)
		if n := ran.Load(); n != 1 {
			t.Errorf("ran %d times", n)
		}
		if _, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey("new")); err != nil {
			t.Error(err)
		}
	})
}

// Neither is one whose server behind the forwarding one was killed and has come back, whether the
// client of the forwarding server may repeat it or not.
func TestForwardedKeyAtAnotherLife(t *testing.T) {
	for name, options := range map[string][]anser.DialOption{"attempts": nil, "one attempt": {anser.Attempts(1)}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var ran, other atomic.Int32
				l := network.Listen("a:1")
				countOn(t, l, &ran, time.Hour)
				conns := make(chan func(), 10)
				up := dial(t, "a:1", append(options, anser.Dialer(losing(network, conns)))...)
				forwardToClient(t, network, up)
				c := dial(t, "gw:1", anser.Dialer(network.Dial))
				time.AfterFunc(time.Second, func() {
					l.Close() // as with kill: clients are not notified
					(<-conns)()
					countOnce(t, network, "a:1", &other, 0)
				})
				_, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey("k"))
				wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
				if ran.Load() != 1 || other.Load() != 0 {
					t.Errorf("ran %d times, and %d times in the next life: %v", ran.Load(), other.Load(), err)
				}
			})
		})
	}
}
