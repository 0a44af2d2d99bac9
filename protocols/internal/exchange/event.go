package exchange

import (
	"context"
	"sync"
)

type eventKey struct{}

// EventID is the id of the next message of a stream of events.
type EventID struct {
	mu  sync.Mutex // guards the fields below
	id  string
	set bool
}

// WithEventID returns a context in which SetEventID sets e.
func WithEventID(ctx context.Context, e *EventID) context.Context {
	return context.WithValue(ctx, eventKey{}, e)
}

// SetEventID sets the id of the next message, if the messages of the call are events.
func SetEventID(ctx context.Context, id string) {
	e, _ := ctx.Value(eventKey{}).(*EventID)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.id, e.set = id, true
}

// Take returns the id for a message, and whether it has one.
func (e *EventID) Take() (id string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id, ok = e.id, e.set
	e.id, e.set = "", false
	return id, ok
}
