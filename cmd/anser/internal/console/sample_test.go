package console_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/route"
)

// Callers without a route.Recorder are not asked for their calls: they would refuse the unknown
// method, and a dry run would make the page show failed calls.
func TestCallersThatServeAMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 2, 2)
		s.sim.Hook(1, simulate.Hook{Change: func(d *admin.Document) {
			d.Servers[0].Methods = append(d.Servers[0].Methods, admin.ServedMethod{Name: route.RecentMethod, Runs: "worker"})
		}})
		advance(s, 5*time.Second)
		list := s.CallersOf("pay.service-001", route.RecentMethod)
		if len(list) != 1 || list[0].ID != "shop.service-000-2" {
			t.Errorf("the callers %+v serve %s, want shop.service-000-2", list, route.RecentMethod)
		}
		if list := s.CallersOf("pay.service-001", "Items.Get"); len(list) != 2 {
			t.Errorf("the callers %+v serve Items.Get, want both", list)
		}
	})
}
