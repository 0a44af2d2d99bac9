package membudget_test

import (
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/membudget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBudget(t *testing.T) {
	var b membudget.Budget
	if b.Take(1) {
		t.Error("the zero value allows a byte")
	}
	b.SetLimit(100)
	if !b.Take(50) || b.Scarce() {
		t.Error("half of the limit cannot be held, or is scarce")
	}
	if !b.Take(50) || b.Take(1) || !b.Scarce() {
		t.Error("a full budget allows more, or is not scarce")
	}
	b.Force(20)
	if n := b.Held(); n != 120 {
		t.Errorf("%d bytes are held, want 120: a refused byte is not counted, a forced one is", n)
	}
	b.Give(70)
	if n := b.Held(); n != 50 || b.Scarce() || !b.Take(50) {
		t.Errorf("%d bytes are held after some were released, want 50", n)
	}
}

func TestBudgetIsNeverExceeded(t *testing.T) {
	var b membudget.Budget
	b.SetLimit(10)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 1000 {
				if b.Take(3) {
					b.Give(3)
				}
			}
		})
	}
	wg.Wait()
	if n := b.Held(); n != 0 {
		t.Errorf("%d bytes are held, want none", n)
	}
}
