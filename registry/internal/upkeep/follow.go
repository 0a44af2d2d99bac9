package upkeep

import (
	"context"
	"time"
)

// View is what a look at the registry has found.
type View[T any] struct {
	Value T
	// Problem is what could not be read and was left out, or nil.
	Problem error
	// Again is when to look again where nothing has called for it.
	Again time.Duration
}

// Follow calls update with what look finds, at first and whenever it is no longer equal, until ctx is done,
// and then returns the cause of that. It looks when wake has a token and when the last View asks for it. It
// tells trouble, which may be nil, what look failed with and what it had to leave out, once for each text;
// when that is over it calls update even where nothing has changed. A first look that is hopeless ends it.
// Everything runs on the caller's goroutine.
func Follow[T any](ctx context.Context, wake <-chan struct{}, look func(context.Context) (View[T], error),
	equal func(a, b T) bool, update func(T), trouble func(error),
) error {
	var last T
	var delay Delay
	told := ""
	tell := func(err error) {
		if err.Error() != told && trouble != nil {
			trouble(err)
		}
		told = err.Error()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for first, current := true, false; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		view, err := look(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// Later on, permission may come back: then it is trouble like any other.
			if first && IsHopeless(err) {
				return err
			}
			tell(err)
			current = false
			delay.Wait(ctx, nil)
			continue
		}
		first, delay = false, Delay{}
		switch {
		case view.Problem == nil && told != "":
			told, current = "", false
		case view.Problem != nil && view.Problem.Error() != told:
			tell(view.Problem)
			current = false
		}
		if !current || !equal(view.Value, last) {
			update(view.Value)
			last, current = view.Value, true
		}
		timer.Reset(max(view.Again, time.Millisecond))
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
	}
}

// Signal leaves a token in wake, which holds one.
func Signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
