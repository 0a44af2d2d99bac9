package e2e_test

import (
	"strings"
	"testing"
)

// Every instance of a service is restarted, one after the other, under load and again and again:
// no call fails, although no method is declared idempotent, and every call is executed once.
func TestRollingRestart(t *testing.T) {
	const rounds = 20
	reg := startRegistry(t)
	book := newLedger(t)
	c := config{Registry: reg.config.Address, Ledger: string(book)}
	instances := startInstances(t, 3, c)
	w := watch(t, reg.config.Address)
	w.waitFor(instances)
	calls := startLoad(t, "plain", dialService(t, reg.config.Address, t.TempDir()), 32)
	for round := range rounds {
		for i, p := range instances {
			p.drain()
			c.Address = p.config.Address // as on a machine of its own
			if round%2 == 1 {
				c.Address = freeAddress() // as in a container
			}
			instances[i] = start(t, "instance", c)
			w.waitFor(instances)
		}
		calls.progress()
	}
	calls.stop()
	calls.mustNotFail()
	book.check(t, calls, false)
}

// The same without a registry that informs clients in time that an instance is leaving: the
// instance does.
func TestRollingRestartOfFixedAddresses(t *testing.T) {
	const rounds = 10
	book := newLedger(t)
	c := config{Ledger: string(book)}
	instances := startInstances(t, 3, c)
	calls := startLoad(t, "plain", dial(t, "tcp://"+strings.Join(addresses(instances), ",")), 32)
	for range rounds {
		for i, p := range instances {
			p.drain()
			c.Address = p.config.Address
			instances[i] = start(t, "instance", c)
			calls.progress()
		}
	}
	calls.stop()
	calls.mustNotFail()
	book.check(t, calls, false)
}
