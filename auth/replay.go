package auth

import "time"

// MaxLoginsPerKey is how many logins of one key a [Signed] remembers, each for two to four times
// [ClockWindow]. So 270 a second are always possible. Further ones are refused until older ones
// are forgotten. Other keys have room of their own.
const MaxLoginsPerKey = 1 << 16

// SignedStats is a snapshot of the counters of a [Signed].
type SignedStats struct {
	NotValid   int64 // credentials with a wrong signature, or of a key that is not known
	WrongClock int64 // valid signatures whose time is more than ClockWindow from the time here
	// Keys has the counters of each key that was used, by its id. A key that was taken back
	// disappears some minutes later.
	Keys map[string]KeyStats
}

// KeyStats are the counters of one key of a [Signed].
type KeyStats struct {
	Accepted   int64 // logins
	Replayed   int64 // signatures that had been shown before, and were refused
	NoRoom     int64 // valid signatures that were refused since MaxLoginsPerKey are remembered
	Remembered int   // logins now
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

// macPrefix is the part of a MAC that is remembered: 128 bits, which cannot be made to collide
// without the secret.
type macPrefix [16]byte

// logins are those of one key. A credential is good for two windows at most, from the end of one
// to the other, and each map is kept for at least so long.
type logins struct {
	seen  [2]map[macPrefix]struct{}
	since time.Time // when seen[0] was begun
	stats KeyStats
}

// note remembers a valid signature of the key, or says why it is refused.
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

// turn begins another map when the first one is as old as credentials get.
func (l *logins) turn(now time.Time) {
	switch age := now.Sub(l.since); {
	case age > 4*ClockWindow:
		l.seen, l.since = [2]map[macPrefix]struct{}{}, now
	case age > 2*ClockWindow:
		l.seen[1], l.seen[0], l.since = l.seen[0], nil, now
	}
}

// sweepLocked forgets keys that nobody has used for so long that all of their logins are too old.
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
