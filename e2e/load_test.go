package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// dial makes a client that is closed when the test ends.
func dial(t *testing.T, target string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	opts = append([]anser.DialOption{anser.Timeout(bound), anser.Logger(slog.New(slog.DiscardHandler))}, opts...)
	c, err := anser.Dial(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return c
}

// dialService makes a client of the service that is in the registry.
func dialService(t *testing.T, registry, snapshots string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	return dial(t, "etcd://"+registry+"/"+service, append(opts, scheme(), anser.SnapshotDir(snapshots))...)
}

// load is a number of callers that make one call after another.
type load struct {
	t      *testing.T
	name   string // what the calls' names start with
	opts   []anser.CallOption
	client *anser.Client
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ended  []atomic.Int64 // calls of each caller

	mu   sync.Mutex // guards done
	done map[string]error
}

// pause is what a caller waits between its calls, on average: the tests are about what happens to
// calls, and leave the processor to the processes that restart.
const pause = 10 * time.Millisecond

// startLoad starts the callers. They end with the test, or by stop.
func startLoad(t *testing.T, name string, c *anser.Client, callers int, opts ...anser.CallOption) *load {
	l := &load{t: t, name: name, opts: opts, client: c, ended: make([]atomic.Int64, callers), done: make(map[string]error)}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	for i := range callers {
		l.wg.Go(func() { l.callInTurn(ctx, i) })
	}
	t.Cleanup(l.stop)
	l.progress()
	return l
}

func (l *load) callInTurn(ctx context.Context, caller int) {
	timer := time.NewTimer(rand.N(pause))
	defer timer.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(rand.N(2 * pause))
		}
		in := &Entry{ID: fmt.Sprintf("%s-%d-%d", l.name, caller, n)}
		if rand.IntN(10) < 3 {
			in.Hold = rand.N(5 * time.Millisecond)
		}
		// Not the context that ends the load: a call that was begun is carried through.
		out, err := appendEntry.Call(context.Background(), l.client, in, l.opts...)
		if err == nil && out.ID != in.ID {
			err = fmt.Errorf("the reply to %s is that to %s", in.ID, out.ID)
		}
		l.mu.Lock()
		l.done[in.ID] = err
		l.mu.Unlock()
		l.ended[caller].Add(1)
	}
}

// progress waits until every caller has ended a call that it began after now, and so all that are
// in flight now.
func (l *load) progress() {
	l.t.Helper()
	want := make([]int64, len(l.ended))
	for i := range want {
		want[i] = l.ended[i].Load() + 2
	}
	for i := range want {
		eventually(l.t, "calls end", func() bool { return l.ended[i].Load() >= want[i] })
	}
}

// stop ends the load and waits for the calls that are in flight.
func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
}

// failures returns the errors of the calls that failed until now.
func (l *load) failures() map[string]error {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := make(map[string]error)
	for id, err := range l.done {
		if err != nil {
			failed[id] = err
		}
	}
	return failed
}

// mustNotFail fails the test, naming some of the calls, if any failed. The load has been stopped.
func (l *load) mustNotFail() {
	l.t.Helper()
	failed := l.failures()
	shown := 0
	for id, err := range failed {
		if shown++; shown > 5 {
			break
		}
		l.t.Errorf("%s: %v", id, err)
	}
	l.t.Logf("%s: %d calls, %d failed", l.name, len(l.done), len(failed))
	if len(failed) > 0 {
		l.t.Errorf("%d of %d calls failed", len(failed), len(l.done))
	}
}

// ledger is the file to which instances append their executions.
type ledger string

func newLedger(t *testing.T) ledger { return ledger(filepath.Join(t.TempDir(), "ledger")) }

// read returns how often each call was executed.
func (g ledger) read(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile(string(g))
	if err != nil {
		t.Fatal(err)
	}
	executed := make(map[string]int)
	for line := range strings.Lines(string(data)) {
		executed[strings.TrimSpace(line)]++
	}
	return executed
}

// check joins the executions of the instances with the outcomes of the calls. A call that
// succeeded was executed once, one with an unknown outcome at most once, and one that did not run
// not at all; idempotent calls may have run more often.
func (g ledger) check(t *testing.T, l *load, idempotent bool) {
	t.Helper()
	executed := g.read(t)
	maps.DeleteFunc(executed, func(id string, _ int) bool { return !strings.HasPrefix(id, l.name+"-") })
	for id, err := range l.done {
		n := executed[id]
		delete(executed, id)
		least, most := 1, 1
		if err != nil {
			switch anser.OutcomeOf(err) {
			case anser.OutcomeUnknown:
				least = 0
			case anser.NotSent, anser.Refused:
				least, most = 0, 0
			}
		}
		if n < least || n > most && !idempotent {
			t.Errorf("call %s was executed %d times, and its caller was told: %v", id, n, err)
		}
	}
	for id := range executed {
		t.Errorf("%s was executed and not called", id)
	}
}
