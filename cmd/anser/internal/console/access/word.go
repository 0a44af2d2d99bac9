package access

import (
	"context"
	"errors"
	"sync"
	"time"
)

// WordBound is how long a request of [Access.WrapLong] goes on after the proxy has named its user
// last. An open page asks for its events again after [ProxyBound]; the rest is for slow networks.
const WordBound = ProxyBound + 30*time.Second

// ErrNoWord is the cause with which the context of a long request ends if the proxy that logs users
// in has not named the user for [WordBound], or with a lower role than the request needs.
var ErrNoWord = errors.New("the proxy does not name the user any more, or with a lower role")

// words are the long requests that are open. Each lasts as long as the proxy names its user.
type words struct {
	mu   sync.Mutex // guards the field below
	open map[string]map[*word]struct{}
}

// word is a long request.
type word struct {
	role Role // that it needs
	end  context.CancelCauseFunc
	late *time.Timer
}

// begin returns a context for a long request of a user that the proxy has just named. done must be
// called when it is answered.
func (l *words) begin(ctx context.Context, user string, role Role) (_ context.Context, done func()) {
	ctx, bound := context.WithTimeoutCause(ctx, sessionEnd, ErrNoWord)
	ctx, cancel := context.WithCancelCause(ctx)
	w := &word{role: role, end: cancel}
	w.late = time.AfterFunc(WordBound, func() { cancel(ErrNoWord) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[string]map[*word]struct{})
	}
	if l.open[user] == nil {
		l.open[user] = make(map[*word]struct{})
	}
	l.open[user][w] = struct{}{}
	return ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		w.late.Stop()
		if delete(l.open[user], w); len(l.open[user]) == 0 {
			delete(l.open, user)
		}
		cancel(nil)
		bound()
	}
}

// hear takes the proxy's word for the user of a request.
func (l *words) hear(u User) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.open[u.Name] {
		if u.Role < w.role {
			w.end(ErrNoWord)
			continue
		}
		w.late.Reset(WordBound)
	}
}
