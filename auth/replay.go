package auth

import "time"

// MaxLoginsPerKey is how many logins per key a [Signed] remembers, each for two to four times
// [ClockWindow]. So 270 per second are always possible. Further ones are refused until older ones
// are forgotten. Other keys are not affected.
const MaxLoginsPerKey = 1 << 16

// SignedStats is a snapshot of the counters of a [Signed].
type SignedStats struct {
	NotValid   int64 // credentials with a wrong signature or an unknown key
	WrongClock int64 // valid signatures whose time differs from the server's clock by more than ClockWindow
	// Keys holds the counters per key ID, for keys that were used. A removed key disappears some
	// minutes later.
	Keys map[string]KeyStats
}

// KeyStats are the counters of one key of a [Signed].
type KeyStats struct {
	Accepted   int64 // logins
	Replayed   int64 // signatures refused because they were used before
	NoRoom     int64 // valid signatures refused because MaxLoginsPerKey are remembered
	Remembered int   // logins remembered now
}

// Stats returns the counters.
func (s *Signed) Stats() SignedStats {
	out := SignedStats{
		NotValid: s.notValid.Load(), WrongClock: s.wrongClock.Load(), Keys: make(map[string]KeyStats),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, l := range s.logins {
		k := l.stats
		k.Remembered = len(l.seen[0]) + len(l.seen[1])
		out.Keys[id] = k
	}
	return out
}

// macPrefix is the remembered part of a MAC: 128 bits, for which no collision can be constructed
// without the secret.
type macPrefix [16]byte

// logins holds the logins of one key. A credential is valid for at most two windows, from the
// earliest to the latest possible clock, and each map is kept for at least that long.
type logins struct {
	seen  [2]map[macPrefix]struct{}
	since time.Time // creation time of seen[0]
	stats KeyStats
}

// note remembers a valid signature of the key, or returns why it is refused.
func (s *Signed) note(id string, mac [macSize]byte, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLocked(now)
	l := s.logins[id]
	if l == nil {
		if s.logins == nil {
			s.logins = make(map[string]*logins)
		}
		l = &logins{since: now}
		s.logins[id] = l
	}
	l.turn(now)
	m := macPrefix(mac[:])
	for _, seen := range l.seen {
		if _, ok := seen[m]; ok {
			l.stats.Replayed++
			return errReplayed
		}
	}
	if len(l.seen[0])+len(l.seen[1]) >= MaxLoginsPerKey {
		l.stats.NoRoom++
		return errNoRoom
	}
	if l.seen[0] == nil {
		l.seen[0] = make(map[macPrefix]struct{})
	}
	l.seen[0][m] = struct{}{}
	l.stats.Accepted++
	return nil
}

// turn starts a new map when the first one is as old as credentials may be.
func (l *logins) turn(now time.Time) {
	switch age := now.Sub(l.since); {
	case age > 4*ClockWindow:
		l.seen, l.since = [2]map[macPrefix]struct{}{}, now
	case age > 2*ClockWindow:
		l.seen[1], l.seen[0], l.since = l.seen[0], nil, now
	}
}

// sweepLocked removes keys unused for so long that all of their logins have expired.
func (s *Signed) sweepLocked(now time.Time) {
	if now.Sub(s.swept) < 4*ClockWindow {
		return
	}
	s.swept = now
	inUse := s.now.Load().by
	for id, l := range s.logins {
		if now.Sub(l.since) <= 4*ClockWindow {
			continue
		}
		if inUse[id] == nil {
			delete(s.logins, id)
		} else {
			l.turn(now)
		}
	}
}
