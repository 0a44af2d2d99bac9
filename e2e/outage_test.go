package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// The registry is killed under load. Calls go on, an instance is restarted meanwhile, a new client
// starts from the snapshot of another, and afterwards the registry has one record of each
// instance.
func TestRegistryOutage(t *testing.T) {
	reg := startRegistry(t)
	book := newLedger(t)
	snapshots := t.TempDir()
	c := config{Registry: reg.config.Address, Ledger: string(book)}
	instances := startInstances(t, 3, c)
	w := watch(t, reg.config.Address)
	w.waitFor(instances)
	client := dialService(t, reg.config.Address, snapshots)
	calls := startLoad(t, "plain", client, 32)
	eventually(t, "the client knows all instances", func() bool { return len(client.Status().Instances) == len(instances) })

	down := time.After(faultTime(10*time.Second, 30*time.Second))
	reg.kill()
	calls.progress()
	const callerCalls = 1000
	caller := start(t, "caller", config{Registry: reg.config.Address, Dir: snapshots, Calls: callerCalls})
	instances[0].drain()
	c.Address = instances[0].config.Address
	instances[0] = start(t, "instance", c)
	if err := caller.wait(); err != nil {
		t.Errorf("a client that started without the registry: %v\n%s", err, caller.stderr.String())
	}
	<-down
	calls.progress()
	// No result may depend on an expired lease. A lease that expired because its instance, or the
	// registry, got no CPU time on a busy machine looks the same: a real error with leases shows
	// in every attempt.
	const tries = 3
	for try := 1; ; try++ {
		reg = start(t, "registry", reg.config)
		w.waitFor(instances)
		kept, useful := w.keeps(instances, 2*leaseTime)
		if kept && useful {
			break
		}
		if try == tries {
			if !kept {
				t.Fatal("instances depend on leases that are not renewed")
			}
			break
		}
		reg.kill()
	}
	calls.progress()
	calls.stop()
	calls.mustNotFail()
	book.check(t, calls, false)
	fromCaller := 0
	for id, n := range book.read(t) {
		if strings.HasPrefix(id, "caller-") {
			fromCaller += n
		}
	}
	if fromCaller != callerCalls {
		t.Errorf("the client that started without the registry made %d calls, and %d were executed", callerCalls, fromCaller)
	}
}
