package route_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func toID(id string) route.RuleSet {
	return route.RuleSet{Conditions: []route.ConditionRule{{To: route.Select{ID: route.Patterns{id}}}}}
}

func TestVersions(t *testing.T) {
	m := registry.NewMemory()
	ctx := t.Context()
	if list, err := route.History(ctx, m, "test"); err != nil || len(list) != 0 {
		t.Fatalf("a service without rules has the history %v, %v", list, err)
	}
	const changes = 70
	for i := range changes {
		d, err := route.Save(ctx, m, "test", uint64(i), toID(strings.Repeat("x", i+1)), "ada", "change")
		must(t, err)
		if d.Version != uint64(i)+1 || d.Author != "ada" || d.Time.IsZero() {
			t.Fatalf("change %d made %+v", i, d)
		}
	}
	list, err := route.History(ctx, m, "test")
	must(t, err)
	if len(list) != 64 || list[0].Version != changes || list[63].Version != changes-63 {
		t.Fatalf("%d versions from %d to %d, want 64 from 70 to 7", len(list), list[0].Version, list[len(list)-1].Version)
	}
	for _, v := range []uint64{0, 1, changes - 64, changes + 1} {
		if _, err := route.Version(ctx, m, "test", v); err == nil || !strings.Contains(err.Error(), "there is no version") {
			t.Errorf("Version(%d) = %v, want that there is none", v, err)
		}
	}
	back, err := route.Rollback(ctx, m, "test", changes-63, "bob")
	must(t, err)
	if back.Version != changes+1 || back.Author != "bob" || len(back.Rules.Conditions[0].To.ID[0]) != changes-63 {
		t.Errorf("the rollback is %+v", back)
	}
}

func TestSaveOfAnOldVersionIsRefused(t *testing.T) {
	m := registry.NewMemory()
	ctx := t.Context()
	_, err := route.Save(ctx, m, "test", 0, toID("a"), "ada", "mine")
	must(t, err)
	for _, base := range []uint64{0, 2} {
		_, err := route.Save(ctx, m, "test", base, toID("b"), "bob", "")
		e, ok := errors.AsType[*route.ConflictError](err)
		if !ok || !errors.Is(err, registry.ErrConflict) || e.Current.Author != "ada" || !strings.Contains(err.Error(), `by ada: "mine"`) {
			t.Errorf("Save on version %d = %v, want a conflict that names ada", base, err)
		}
	}
	if _, err := route.Save(ctx, m, "test", 1, route.RuleSet{Groups: []route.GroupRule{{}}}, "ada", ""); err == nil {
		t.Error("Save took rules that are not possible")
	}
}

// Of many concurrent changes of the same version one succeeds, and the history has every version.
func TestConcurrentChanges(t *testing.T) {
	m := registry.NewMemory()
	ctx := context.WithoutCancel(t.Context())
	for round := range uint64(10) {
		var wg sync.WaitGroup
		wins := make(chan string, 8)
		for _, whoami := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			wg.Go(func() {
				_, err := route.Save(ctx, m, "test", round, toID(whoami), whoami, "")
				if err == nil {
					wins <- whoami
				} else if !errors.Is(err, registry.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(wins) != 1 {
			t.Fatalf("%d of 8 changes of version %d succeeded", len(wins), round)
		}
		d, err := route.Version(ctx, m, "test", round+1)
		if whoami := <-wins; err != nil || d.Author != whoami {
			t.Errorf("version %d is %+v, %v: want the change of %s", round+1, d, err, whoami)
		}
	}
	if list, err := route.History(ctx, m, "test"); err != nil || len(list) != 10 {
		t.Errorf("%d versions in the history, %v: want 10", len(list), err)
	}
}

// A writer that died between the document and the history leaves a gap, which the next change
// fills.
func TestHistoryIsFilledUp(t *testing.T) {
	m := registry.NewMemory()
	ctx := t.Context()
	_, err := m.Save(ctx, registry.Document{Name: "rules/test", Data: []byte(`{"version":1,"author":"gone","rules":{}}`)})
	must(t, err)
	_, err = route.Save(ctx, m, "test", 1, toID("a"), "ada", "")
	must(t, err)
	if d, err := route.Version(ctx, m, "test", 1); err != nil || d.Author != "gone" {
		t.Errorf("version 1 is %+v, %v: want that of the writer that is gone", d, err)
	}
}
