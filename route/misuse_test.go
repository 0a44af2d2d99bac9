package route_test

import (
	"context"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// Misuse is an error and never a panic.
func TestMisuse(t *testing.T) {
	dial := func(o anser.DialOption) error {
		c, err := anser.Dial("127.0.0.1:1", o)
		if err == nil {
			c.Close()
		}
		return err
	}
	ctx, store := t.Context(), new(registry.Memory)
	var none context.Context // a nil context
	first := func(_ any, err error) error { return err }
	for name, misuse := range map[string]func() error{
		"Rules nil option":   func() error { return dial(route.Rules(nil)) },
		"Rules Of nil":       func() error { return dial(route.Rules(route.Of(nil, "a"))) },
		"Static nil option":  func() error { return dial(route.Static(route.RuleSet{}, nil)) },
		"Load nil store":     func() error { return first(route.Load(ctx, nil, "a")) },
		"Load nil context":   func() error { return first(route.Load(none, store, "a")) },
		"Save nil store":     func() error { return first(route.Save(ctx, nil, "a", 0, route.RuleSet{}, "", "")) },
		"History nil store":  func() error { return first(route.History(ctx, nil, "a")) },
		"Version nil store":  func() error { return first(route.Version(ctx, nil, "a", 1)) },
		"Rollback nil store": func() error { return first(route.Rollback(ctx, nil, "a", 1, "")) },
		"Serve nil recorder": func() error { return (*route.Recorder)(nil).Serve(anser.NewServer()) },
		"Serve nil server":   func() error { return route.NewRecorder().Serve(nil) },
		"ServeExplain nil":   func() error { return route.ServeExplain(nil, nil) },
	} {
		if err := misuse(); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
