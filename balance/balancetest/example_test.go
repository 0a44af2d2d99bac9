package balancetest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/balance/balancetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A test of a balancer: in an application it is a function of its own, with a balancer of the application.
func Example() {
	_ = func(t *testing.T) {
		balancetest.Run(t, func() balance.Balancer { return balance.RoundRobin() })
	}
}
