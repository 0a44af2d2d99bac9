package cancelpace_test

import (
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/cancelpace"
	"github.com/anser-rpc/anser/internal/mono"
)

const (
	maxCalls = 100
	second   = mono.Time(time.Second)
)

// fill uses up what may be sent at once.
func fill(t *testing.T, p *cancelpace.Pacer, now mono.Time) {
	t.Helper()
	for i := range maxCalls {
		if !p.Allow(now, maxCalls) {
			t.Fatalf("only %d of %d calls may be cancelled at once", i, maxCalls)
		}
	}
	if p.Allow(now, maxCalls) {
		t.Fatalf("more than %d calls may be cancelled at once", maxCalls)
	}
}

// drain returns the waiting CANCELs that may be sent at a time.
func drain(p *cancelpace.Pacer, now mono.Time) (ids []uint64) {
	for {
		id, ok := p.Next(now, maxCalls)
		if !ok {
			return ids
		}
		ids = append(ids, id)
	}
}

// A client that keeps to the pace never exceeds the limit, although all calls are cancelled.
func TestThePaceIsBelowTheLimit(t *testing.T) {
	var p cancelpace.Pacer
	var l cancelpace.Limit
	now, id, sent := second, uint64(0), 0
	for range 20_000 { // 100 seconds
		for range 200 {
			id++
			if p.Allow(now, maxCalls) {
				sent++
				if !l.Allow(now, maxCalls) {
					t.Fatalf("%d CANCELs are over the limit", sent)
				}
			} else if p.Owed() < maxCalls {
				p.Add(id, 0)
			}
		}
		now = now.Add(cancelpace.Pause)
		for range drain(&p, now) {
			sent++
			if !l.Allow(now, maxCalls) {
				t.Fatalf("%d CANCELs are over the limit", sent)
			}
		}
	}
	if least := 15_000 * 100; sent < least {
		t.Errorf("%d CANCELs in 100 seconds, want at least %d", sent, least)
	}
}

func TestWaitingCancels(t *testing.T) {
	var p cancelpace.Pacer
	fill(t, &p, second)
	p.Add(1, 0)
	p.Add(2, 2*second) // the server ends it by itself
	p.Add(3, 5*second)
	p.Add(4, 0)
	p.Answered(4)
	p.Answered(99)
	if n := p.Owed(); n != 3 {
		t.Errorf("%d CANCELs wait, want 3", n)
	}
	if ids := drain(&p, second); ids != nil {
		t.Errorf("the CANCELs of %d are sent at once", ids)
	}
	if ids := drain(&p, 3*second); !slices.Equal(ids, []uint64{1, 3}) {
		t.Errorf("the CANCELs of %d are sent, want 1 and 3", ids)
	}
	if n := p.Owed(); n != 0 {
		t.Errorf("%d CANCELs wait after all were sent", n)
	}
	if !p.Allow(4*second, maxCalls) {
		t.Error("no further call may be cancelled")
	}
}

// A CANCEL does not overtake others that wait.
func TestWaitingCancelsComeFirst(t *testing.T) {
	var p cancelpace.Pacer
	fill(t, &p, second)
	p.Add(1, 0)
	if p.Allow(9*second, maxCalls) {
		t.Error("a CANCEL overtakes one that waits")
	}
	p.Clear()
	if p.Owed() != 0 || !p.Allow(9*second, maxCalls) {
		t.Error("CANCELs wait after Clear")
	}
}
