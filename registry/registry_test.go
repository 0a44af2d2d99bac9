package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry"
)

// unreachable is a registry that only reports trouble.
type unreachable struct{ why error }

func (u unreachable) Watch(ctx context.Context, _ string, _ func([]registry.Instance), trouble func(error)) error {
	trouble(u.why)
	<-ctx.Done()
	return ctx.Err()
}

func TestListSaysWhyItFoundNothing(t *testing.T) {
	why := errors.New("connection refused")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := registry.List(ctx, unreachable{why}, "arith")
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || !strings.Contains(err.Error(), `"arith"`) {
		t.Errorf("List = %v, want the context's error, the reason and the service", err)
	}
}

func TestListReturnsPermanentErrors(t *testing.T) {
	_, err := registry.List(t.Context(), registry.NewMemory(), "a/b")
	if err == nil || !strings.Contains(err.Error(), "use letters") {
		t.Errorf("List of service a/b = %v", err)
	}
}
