package e2e_test

import (
	"errors"
	"testing"

	"github.com/anser-rpc/anser"
)

// Instances are killed under load. Idempotent calls succeed all the same. Of the others at most
// those fail that were in flight to the instance, which is one for each caller, and their callers
// are told that the calls may have run. None is run twice.
func TestKill(t *testing.T) {
	const rounds, callers = 6, 16
	reg := startRegistry(t)
	book := newLedger(t)
	c := config{Registry: reg.config.Address, Ledger: string(book)}
	instances := startInstances(t, 3, c)
	w := watch(t, reg.config.Address)
	w.waitFor(instances)
	client := dialService(t, reg.config.Address, t.TempDir())
	plain := startLoad(t, "plain", client, callers)
	idempotent := startLoad(t, "idempotent", client, callers, anser.Idempotent())
	for round := range rounds {
		i := round % len(instances)
		victim := instances[i].config.Address
		before := plain.failures()
		instances[i].kill()
		plain.progress()
		idempotent.progress()
		failed := plain.failures()
		for id, err := range failed {
			if _, old := before[id]; old {
				continue
			}
			var e *anser.Error
			if !errors.As(err, &e) || e.Outcome != anser.OutcomeUnknown || e.Address != victim {
				t.Errorf("round %d, %s: %v: want the outcome unknown, and the address %s", round, id, err, victim)
			}
		}
		n := len(failed) - len(before)
		t.Logf("round %d: %d calls failed", round, n)
		if n > callers {
			t.Errorf("round %d: %d calls failed, and at most %d were in flight", round, n, callers)
		}
		// A new instance, or one that comes back where the killed one was.
		c.Address = freeAddress()
		if round%2 == 1 {
			c.Address = victim
		}
		instances[i] = start(t, "instance", c)
		w.waitFor(instances) // also until the lease of the killed one has run out
	}
	plain.stop()
	idempotent.stop()
	idempotent.mustNotFail()
	book.check(t, plain, false)
	book.check(t, idempotent, true)
}
