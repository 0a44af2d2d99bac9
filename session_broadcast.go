package anser

import (
	"context"
	"maps"
	"slices"
)

// Join adds the session to a group, for [Server.Broadcast]; see [InGroup].
func (s *Session) Join(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = make(map[string]struct{})
	}
	s.groups[group] = struct{}{}
	s.kept = true
}

// Leave removes the session from a group.
func (s *Session) Leave(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, group)
}

// Groups returns the names of the groups that the session is in, sorted.
func (s *Session) Groups() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.groups))
}

// InGroup returns a condition for [Server.Broadcast]: the session is in the group.
func InGroup(group string) func(*Session) bool {
	return func(s *Session) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, ok := s.groups[group]
		return ok
	}
}

// BroadcastError is a session that a broadcast did not reach.
type BroadcastError struct {
	Session *Session
	Err     error // an [*Error]
}

// Broadcast sends a oneway message, as [Send] does, to every session for which to is true; a nil
// to means all. It does not wait: a client that is not connected, or that has 1 MiB of messages
// to read, does not get the message. It returns how many messages are on their way, and the
// clients that get none.
func (s *Server) Broadcast(ctx context.Context, method string, in any, to func(*Session) bool) (sent int, failed []BroadcastError) {
	for _, sess := range s.Sessions() {
		if to != nil && !to(sess) {
			continue
		}
		c := sess.Client()
		o := c.o.call
		o.oneway, o.atOnce, o.mode = true, true, Failfast
		if err := c.send(ctx, method, in, &o, nil); err != nil {
			failed = append(failed, BroadcastError{sess, err})
			continue
		}
		sent++
	}
	return sent, failed
}
