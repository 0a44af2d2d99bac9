package upkeep_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

func TestLifeEndsWhatIsWithinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := upkeep.NewLife()
		during, cancel := life.Within(t.Context())
		defer cancel()
		bound, release, err := life.Bind(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		went := false
		if !life.Go(func() { <-life.Context().Done(); time.Sleep(time.Second); went = true }) {
			t.Error("Go refuses before the end")
		}
		done := ask(func() error {
			return life.Do(func() error { <-during.Done(); time.Sleep(2 * time.Second); return errAway })
		})
		began := time.Now()
		life.End()
		if took := time.Since(began); took != 2*time.Second || !went {
			t.Errorf("End took %v, and what Go began has ended: %v; want that it waits for both", took, went)
		}
		if err := <-done; err != errAway {
			t.Errorf("Do = %v, want what its function returned", err)
		}
		for _, ctx := range []context.Context{during, bound, life.Context()} {
			if context.Cause(ctx) != registry.ErrClosed {
				t.Errorf("a context ended for %v, want ErrClosed", context.Cause(ctx))
			}
		}

		after, cancel := life.Within(t.Context())
		defer cancel()
		if context.Cause(after) != registry.ErrClosed {
			t.Errorf("after the life a context begins with the cause %v", context.Cause(after))
		}
		if _, _, err := life.Bind(t.Context()); err != registry.ErrClosed {
			t.Errorf("Bind after the life = %v", err)
		}
		never := func() error { t.Error("something begins after the life"); return nil }
		if err := life.Do(never); err != registry.ErrClosed {
			t.Errorf("Do after the life = %v", err)
		}
		if life.Go(func() { never() }) {
			t.Error("Go begins something after the life")
		}
		err = life.Ask(t.Context(), "look", func(context.Context) error { return never() })
		if err != registry.ErrClosed {
			t.Errorf("Ask after the life = %v", err)
		}
		life.End() // it may be called again
	})
}

func TestAskTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := upkeep.NewLife()
		defer life.End()
		tries := 0
		err := life.Ask(t.Context(), "look", func(context.Context) error {
			if tries++; tries < 5 {
				return errAway
			}
			return nil
		})
		if err != nil || tries != 5 {
			t.Errorf("Ask = %v after %d tries, want that it goes on until it succeeds", err, tries)
		}

		tries = 0
		err = life.Ask(t.Context(), "look", func(context.Context) error { tries++; return upkeep.Hopeless(errRefused) })
		if !errors.Is(err, errRefused) || tries != 1 || err.Error() != "look: refused" {
			t.Errorf("Ask for what is refused = %v after %d tries", err, tries)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err = life.Ask(ctx, "look", func(context.Context) error { return errAway })
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errAway) {
			t.Errorf("Ask without a server = %v, want the context's error and why", err)
		}

		answer := ask(func() error {
			return life.Ask(t.Context(), "look", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		})
		life.End()
		if err := <-answer; !errors.Is(err, registry.ErrClosed) || err.Error() != "look: "+registry.ErrClosed.Error() {
			t.Errorf("Ask across the end of the life = %v", err)
		}
	})
}
