package anser_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// start makes n calls of each of three kinds: with a context that can end, without, and as futures.
func (w *ward) start(n int, opts ...anser.CallOption) (wait func() (failed []error)) {
	var mu sync.Mutex
	var failed []error
	note := func(err error) {
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var futures []*anser.Future[[]byte]
	for i := range n {
		wg.Go(func() { _, err := call(ctx, w.client, workMethod, fmt.Sprint(i), opts...); note(err) })
		wg.Go(func() { _, err := call(context.Background(), w.client, workMethod, fmt.Sprint(i), opts...); note(err) })
		futures = append(futures, anser.Go[[]byte](ctx, w.client, workMethod, text(""), opts...))
	}
	return func() []error {
		wg.Wait()
		for _, f := range futures {
			_, err := f.Wait()
			note(err)
		}
		cancel()
		return failed
	}
}

// Idempotent calls that wait at silent instances are made elsewhere, even if most instances are
// silent; the others continue to wait, and are answered when the instances recover.
func TestCallsLeaveSilentInstances(t *testing.T) {
	for _, stalled := range []int{1, 2} {
		t.Run(fmt.Sprint(stalled), func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				w := newWard(t, network, 3, anser.WithFailMode(anser.Failover))
				for i := range stalled {
					w.who[fmt.Sprintf("%c:1", 'a'+i)].stall.Load().Stall()
				}
				began := time.Now()
				var failed atomic.Int32
				plain := w.start(3, anser.Timeout(time.Hour))
				for range 20 { // some of them before the silence is found, some after
					wait := w.start(1, anser.Idempotent(), anser.Timeout(12*time.Second))
					go func() { failed.Add(int32(len(wait()))) }()
					time.Sleep(300 * time.Millisecond)
				}
				if wait := w.start(5, anser.Idempotent(), anser.Timeout(50*time.Millisecond)); len(wait()) > 0 {
					t.Error("a call still went to a silent instance")
				}
				time.Sleep(time.Minute - time.Since(began))
				if n := failed.Load(); n > 0 {
					t.Errorf("%d idempotent calls failed", n)
				}
				for i := range stalled {
					w.who[fmt.Sprintf("%c:1", 'a'+i)].stall.Load().Resume()
				}
				if failed := plain(); len(failed) > 0 && stalled == 1 {
					t.Logf("plain calls: %v", failed[0])
				}
				time.Sleep(10 * time.Second)
				for address := range w.who {
					if s := w.status(address); s.Active != 0 || s.Ejected != "" || s.Down {
						t.Errorf("%s: %+v", address, s)
					}
				}
			})
		})
	}
}

// A call without budget, without an attempt left or without another instance continues to wait,
// and is answered.
func TestCallsThatStayAtASilentInstance(t *testing.T) {
	for name, test := range map[string]struct {
		dial []anser.DialOption
		call []anser.CallOption
	}{
		"no budget":      {dial: []anser.DialOption{anser.RetryBudget(0, 0)}, call: []anser.CallOption{anser.Idempotent()}},
		"one attempt":    {call: []anser.CallOption{anser.Idempotent(), anser.Attempts(1)}},
		"failfast":       {call: []anser.CallOption{anser.Idempotent(), anser.WithFailMode(anser.Failfast)}},
		"not idempotent": {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				w := newWard(t, network, 2, append([]anser.DialOption{anser.WithFailMode(anser.Failover)}, test.dial...)...)
				w.who["a:1"].stall.Load().Stall()
				wait := w.start(2, append(test.call, anser.Timeout(time.Minute))...)
				time.Sleep(8 * time.Second)
				if w.status("a:1").Active == 0 {
					t.Error("no call waits at the silent instance")
				}
				w.who["a:1"].stall.Load().Resume()
				for _, err := range wait() {
					t.Error(err)
				}
				if n := w.who["a:1"].calls.Load(); n != 3 {
					t.Errorf("%d calls ran there, want half of 6", n)
				}
			})
		})
	}
}

// The answer of an attempt that was given up is dropped when the instance comes back, and its
// handler is told.
func TestAbandonedAttemptIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 2, anser.WithFailMode(anser.Failover))
		w.who["a:1"].stall.Load().Stall()
		if failed := w.start(10, anser.Idempotent())(); len(failed) > 0 {
			t.Fatal(failed)
		}
		w.who["a:1"].stall.Load().Resume()
		time.Sleep(5 * time.Second)
		w.reset()
		if failed := w.call(workMethod, 20); failed > 0 || w.who["a:1"].calls.Load() < 9 {
			t.Errorf("%d calls failed, %d went to the instance that is back", failed, w.who["a:1"].calls.Load())
		}
	})
}

// The chain of retries stops at a handler that serves one: what it calls is not moved either.
func TestCallsOfARetryAreNotMoved(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 2, anser.WithFailMode(anser.Failover))
		w.who["a:1"].stall.Load().Stall()
		var served atomic.Int32
		serve(t, network.Listen("front:1"), map[string]handler{"Front.Work": func(ctx context.Context, _ *[]byte) (*[]byte, error) {
			if served.Add(1) == 1 {
				return nil, anser.Refuse(anser.Unavailable, "not now")
			}
			for range 2 { // one of them at the silent instance
				if _, err := call(ctx, w.client, workMethod, "", anser.Idempotent()); err != nil {
					return nil, err
				}
			}
			return text(""), nil
		}})
		c := dial(t, "front:1", anser.Dialer(network.Dial))
		if _, err := call(context.Background(), c, "Front.Work", "", anser.Idempotent(), anser.Timeout(time.Minute)); err == nil {
			t.Error("the call of the handler was moved")
		}
		if n := served.Load(); n != 2 {
			t.Errorf("the handler ran %d times", n)
		}
	})
}

// A second attempt at the same time as the first one counts.
func TestBackupIsAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3, anser.WithFailMode(anser.Backup), anser.BackupAfter(10*time.Millisecond), anser.BackupShare(1))
		for out := ""; out != "c:1"; { // then it is a's turn
			var err error
			if out, err = call(context.Background(), w.client, workMethod, "", anser.WithFailMode(anser.Failfast)); err != nil {
				t.Fatal(err)
			}
		}
		w.who["a:1"].stall.Load().Stall()
		w.who["b:1"].gets(func(string) error { return anser.Refuse(anser.Unavailable, "not now") })
		if w.call(workMethod, 1, anser.Idempotent(), anser.Attempts(2), anser.Timeout(5*time.Second)) == 0 {
			t.Error("there was a third attempt")
		}
	})
}
