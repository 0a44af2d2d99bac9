package retrybudget

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// drawn counts how many retries the budget grants at the time now.
func drawn(b *Budget, now mono.Time) int {
	n := 0
	for b.Withdraw(now) {
		n++
	}
	return n
}

func TestBudget(t *testing.T) {
	begin := mono.Now()
	b := New(0.2, 10)
	b.looked = begin
	if n := drawn(b, begin); n != 10 {
		t.Errorf("%d retries at the start, want 10", n)
	}
	if n := drawn(b, begin.Add(time.Second)); n != 10 {
		t.Errorf("%d retries a second later, want 10", n)
	}
	b.calls.Add(0, 1000)
	if n := drawn(b, begin.Add(2*time.Second)); n < 205 || n > 210 {
		t.Errorf("%d retries after 1000 calls in a second, want 200 for them and 10 for the second", n)
	}
	if n := drawn(b, begin.Add(time.Minute)); n != 100 {
		t.Errorf("%d retries after a minute, want those of ten seconds, 100", n)
	}
	if n := drawn(b, begin.Add(30*time.Second)); n != 0 { // clocks of two goroutines may disagree
		t.Errorf("%d retries for a time that is past", n)
	}
}

func TestBudgetForgets(t *testing.T) {
	begin := mono.Now()
	b := New(0.2, 0)
	b.looked = begin
	b.calls.Add(0, 1000)
	if !b.Withdraw(begin) {
		t.Error("calls earned nothing")
	}
	if n := drawn(b, begin.Add(10*time.Second)); n != 0 {
		t.Errorf("%d retries for calls ten seconds ago", n)
	}
	b.calls.Add(0, 1000)
	if n := drawn(b, begin.Add(1010*time.Second)); n > 3 {
		t.Errorf("%d retries for 1000 calls in 1000 seconds, want those of the last ten, 2", n)
	}
	if n := drawn(New(0, 0), begin); n != 0 {
		t.Errorf("%d retries without a budget", n)
	}
}
