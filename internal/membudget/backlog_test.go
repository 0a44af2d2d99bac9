package membudget_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/internal/membudget"
)

func newBacklog(limit int64) (*membudget.Backlog, *membudget.Budget) {
	budget, backlog := new(membudget.Budget), new(membudget.Backlog)
	budget.SetLimit(limit)
	backlog.SetBudget(budget)
	return backlog, budget
}

func TestBacklogHoldsHalf(t *testing.T) {
	b, budget := newBacklog(100)
	if b.Any() || !b.Hold(70, false) || !b.Any() {
		t.Error("the first result is not held, although it is larger than half")
	}
	b.Release(70)
	if !b.Hold(30, false) || !b.Hold(20, false) || b.Hold(1, false) || budget.Held() != 50 {
		t.Errorf("%d bytes are held, want half of the budget", budget.Held())
	}
	if b.Force(10); budget.Held() != 60 {
		t.Errorf("%d bytes are held, want a forced result too", budget.Held())
	}
	if !b.Hold(140, true) || b.Hold(1, true) || budget.Held() != 200 {
		t.Errorf("%d bytes are held for a receiver that takes some, want twice the budget", budget.Held())
	}
	b.Release(200)
	if b.Any() || budget.Held() != 0 {
		t.Errorf("%d bytes are held in the end", budget.Held())
	}
}

func TestBacklogOfMany(t *testing.T) {
	b, budget := newBacklog(100)
	budget.Force(201) // of others
	if !b.Hold(10, true) || b.Hold(10, true) {
		t.Error("with twice the budget in use, it does not hold exactly one result")
	}
	if b.Release(10); b.Any() || b.Take(10) {
		t.Error("a result is taken that the budget does not allow")
	}
	budget.Give(201)
	if !b.Take(60) || budget.Held() != 60 || b.Take(60) {
		t.Errorf("%d bytes are held", budget.Held())
	}
}

// waiters makes goroutines wait, and returns a channel with what is expected of each.
func waiters(b *membudget.Backlog, n int) <-chan int {
	begun := make(chan int, n)
	for range n {
		go func() { begun <- b.Await() }()
	}
	synctest.Wait()
	return begun
}

func TestBacklogAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBacklog(400)
		b.Hold(50, true)
		if n := b.Await(); n != 0 {
			t.Errorf("%d bytes are expected of work that has not waited", n)
		}
		b.Hold(50, true) // a quarter
		begun := waiters(b, 5)
		if len(begun) != 0 {
			t.Fatalf("%d have begun while a quarter of the budget waits", len(begun))
		}
		b.Release(50)
		if synctest.Wait(); len(begun) != 1 || <-begun != 50 {
			t.Fatal("not exactly one has begun, of which as much is expected as there is room for")
		}
		b.Release(50)
		if synctest.Wait(); len(begun) != 1 {
			t.Fatalf("%d have begun, want one more", len(begun))
		}
		b.Known(50)
		if synctest.Wait(); len(begun) != 2 {
			t.Fatalf("%d have begun, want one for the result that is known", len(begun))
		}
		time.Sleep(200 * time.Millisecond) // without a change: they may wait for each other
		if synctest.Wait(); len(begun) != 4 {
			t.Errorf("%d have begun, want all", len(begun))
		}
		for range 4 {
			b.Known(<-begun)
		}
	})
}

func TestBacklogEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBacklog(4)
		b.Hold(100, true)
		begun := waiters(b, 10)
		if len(begun) != 0 {
			t.Fatalf("%d have begun", len(begun))
		}
		b.End()
		if synctest.Wait(); len(begun) != 10 {
			t.Errorf("%d have begun after the end, want all", len(begun))
		}
		if n := b.Await(); n != 0 {
			t.Errorf("%d bytes are expected after the end", n)
		}
	})
}
