package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
)

// An instance is paused, as by a debugger or a machine that hangs: its connections stay open, and
// it does not answer. It is ejected before any call exceeds its deadline, calls continue
// elsewhere, and it is used again after it is resumed.
func TestStoppedInstance(t *testing.T) {
	for _, b := range []balance.Balancer{balance.P2C(), balance.RoundRobin(), balance.LeastActive()} {
		t.Run(b.Name(), func(t *testing.T) {
			book := newLedger(t)
			instances := startInstances(t, 3, config{Ledger: string(book)})
			client := dial(t, "tcp://"+strings.Join(addresses(instances), ","), anser.Balancer(b))
			status := func() anser.InstanceStatus {
				for _, in := range client.Status().Instances {
					if in.Address == instances[0].config.Address {
						return in
					}
				}
				t.Fatal("the instance is gone")
				return anser.InstanceStatus{}
			}
			// Calls in flight to the instance when it is paused are answered after it is resumed.
			calls := startLoad(t, "plain", client, 32, anser.Timeout(30*time.Minute))
			eventually(t, "the instance is connected", func() bool { return status().Connected })
			began := time.Now()
			instances[0].signal(syscall.SIGSTOP)
			eventually(t, "it is ejected", func() bool { return status().Ejected != "" })
			t.Logf("ejected after %v: %s", time.Since(began).Round(time.Millisecond), status().Ejected)
			for i := range 200 { // to the others
				in := &Entry{ID: fmt.Sprintf("other-%d", i)}
				if _, err := appendEntry.Call(context.Background(), client, in); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(faultTime(2*time.Second, 20*time.Second))
			instances[0].signal(syscall.SIGCONT)
			began = time.Now()
			eventually(t, "it is back", func() bool { return status().Ejected == "" && !status().Down })
			t.Logf("back after %v", time.Since(began).Round(time.Millisecond))
			calls.progress()
			calls.stop()
			calls.mustNotFail()
			book.check(t, calls, false)
		})
	}
}
