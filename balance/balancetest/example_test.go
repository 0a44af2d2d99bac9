package balancetest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/balance/balancetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The test of a balancer: in an application it is a function of its own, with the application's
// balancer.
func Example() {
	_ = func(t *testing.T) {
		balancetest.Run(t, func() balance.Balancer { return balance.RoundRobin() })
	}
}
