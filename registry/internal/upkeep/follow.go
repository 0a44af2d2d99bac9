package upkeep

import (
	"context"
	"time"
)

// View is the result of one read of the registry.
type View[T any] struct {
	Value T
	// Problem describes records that were left out because they could not be decoded; nil if there
	// are none.
	Problem error
	// Again is the interval until the next read, unless wake receives a token first.
	Again time.Duration
}

// Follow calls update with the value that look returns, at first and whenever it has changed,
// until ctx is done, and then returns the cause. It calls look when wake holds a token and when
// the last View asks for it. It reports the errors of look and the problems of its views to
// trouble, which may be nil, once per text; after the last of them it calls update even if nothing
// has changed. If the first look fails with a hopeless error, Follow returns it. Everything runs
// on the caller's goroutine.
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
			// Later on, the permission may be restored: then the error is trouble like any other.
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

// Signal puts a token into wake, which has a capacity of 1.
func Signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
