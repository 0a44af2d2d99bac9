package kubernetes

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func lease(version int, renewed time.Time) []*coordinationv1.Lease {
	return []*coordinationv1.Lease{{
		ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: fmt.Sprint(version)},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(30)), RenewTime: new(metav1.NewMicroTime(renewed))},
	}}
}

func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leases
		check := func(what string, all []*coordinationv1.Lease, fresh, asked, alive, sure bool) {
			t.Helper()
			holders, next, isSure := l.alive(all, fresh, asked)
			if holders["a"] != alive || isSure != sure {
				t.Errorf("%s: alive %v, sure %v, want %v, %v", what, holders["a"], isSure, alive, sure)
			}
			if alive && sure && (next <= 0 || next > 30*time.Second) {
				t.Errorf("%s: look again in %v, want at most the duration", what, next)
			}
		}
		start := time.Now()
		// The holder's clock is five minutes ahead or behind, which only matters when the Lease is
		// new here.
		check("new", lease(5, start.Add(5*time.Minute)), false, false, true, true)
		time.Sleep(29 * time.Second)
		check("before the end", lease(5, start), false, false, true, true)
		check("renewed", lease(6, start.Add(-5*time.Minute)), false, false, true, true)
		time.Sleep(29 * time.Second)
		check("what another watch saw later than this one", lease(5, start), false, false, true, true)
		time.Sleep(2 * time.Second)
		check("over, as far as this process knows", lease(6, start), false, false, true, false)
		check("over, as the server says too", lease(6, start), false, true, false, true)
		check("still over", lease(6, start), false, false, false, true)
		check("an old version does not bring it back", lease(5, start), false, false, false, true)
		check("back", lease(7, start), false, false, true, true)
		time.Sleep(time.Minute)
		check("nobody could renew it", lease(7, start), true, false, true, true)
		check("from before a restore of the server", lease(3, start), true, false, true, true)
	})
	synctest.Test(t, func(t *testing.T) {
		var l leases
		now := time.Now()
		if holders, _, sure := l.alive(lease(5, now.Add(-39*time.Second)), false, false); !holders["a"] || !sure {
			t.Error("a Lease that is new here has run out although the clocks may differ")
		}
		l = leases{}
		if holders, _, sure := l.alive(lease(5, now.Add(-41*time.Second)), false, false); holders["a"] || !sure {
			t.Error("a Lease of a process that died long ago is alive")
		}
	})
}
