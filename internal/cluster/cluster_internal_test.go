package cluster

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// restingHost is a host that was never dialed.
type restingHost struct{}

func (*restingHost) Reach() Reach         { return Reach{} }
func (*restingHost) Connected() bool      { return false }
func (*restingHost) Silent() bool         { return false }
func (*restingHost) Judge()               {}
func (*restingHost) SetSpare(bool)        {}
func (*restingHost) RedialNow()           {}
func (*restingHost) Seen(mono.Time) Sight { return Sight{State: Idle} }
func (*restingHost) Try(mono.Time)        {}

type (
	restingCluster  = Cluster[*restingHost, *string]
	restingEndpoint = Endpoint[*restingHost, *string]
	restingMethod   = Method[*restingHost, *string]
)

// crowd returns a cluster of n instances that gets no calls, with the default options of a client.
func crowd(tb testing.TB, n int) (*restingCluster, *restingMethod) {
	tb.Helper()
	cl := New(Options[*restingHost, *string]{
		Balancer: balance.P2C(),
		Breaker:  BreakerOptions{Ratio: 0.5, Calls: 200, Window: 10 * time.Second, Open: 2 * time.Second, Codes: []uint8{13}},
		Ejection: EjectionOptions{
			Failures: 5, Timeouts: 3, Deviations: 1.9, Calls: 100,
			Time: 2 * time.Second, MaxTime: 8 * time.Second, MaxPart: 0.5,
		},
		Log:     slog.New(slog.DiscardHandler),
		Acquire: func(string) *restingHost { return new(restingHost) },
		Release: func(*restingHost) {},
		Refresh: func() {},
		Emit:    func(Event) {},
	})
	var list []registry.Instance
	for i := range n {
		list = append(list, registry.Instance{Service: "s", Address: fmt.Sprintf("host-%d:1", i)})
	}
	cl.Update(list, time.Time{})
	tb.Cleanup(func() { cl.Close(); cl.Join() })
	return cl, &restingMethod{Name: "Echo.Say"}
}
