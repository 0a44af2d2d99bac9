package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

// Limits of sessions.
const (
	idleEnd     = time.Hour      // after the last request; a request that is open counts
	sessionEnd  = 12 * time.Hour // after the login
	maxSessions = 1000           // of all users; the one that was not used for the longest time ends
	maxOfUser   = 20
)

// login is what a session keeps of its login.
type login struct {
	stamp string // of the user's password; empty for a user of the provider
	// What the provider has said: the ID token, and the user and the session that it names.
	token, subject, sid string
}

// session is a session of a user. Only hashes of ids are kept.
type session struct {
	user User
	key  string // hash of the id
	login
	began time.Time
	ctx   context.Context // ends with the session
	end   context.CancelFunc

	mu   sync.Mutex // guards the fields below
	used time.Time
	open int // requests that are not answered yet
}

// sessions are the sessions of a console.
type sessions struct {
	mu   sync.Mutex // guards the field below
	list map[string]*session
}

func (l *sessions) start() { l.list = make(map[string]*session) }

func hashed(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// random returns 256 random bits as text.
func random() string {
	return rand.Text() + rand.Text()
}

// add begins a session and returns its id.
func (l *sessions) add(u User, by login) (id string) {
	id = random()
	now := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), now.Add(sessionEnd))
	s := &session{user: u, key: hashed(id), login: by, began: now, used: now, ctx: ctx, end: cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pruneLocked(now)
	l.evictLocked(maxOfUser, func(o *session) bool { return o.user.Name == u.Name })
	l.evictLocked(maxSessions, func(*session) bool { return true })
	l.list[s.key] = s
	return id
}

// evictLocked ends the least recently used of the sessions that match until there are fewer than
// most.
func (l *sessions) evictLocked(most int, matches func(*session) bool) {
	for {
		n, oldest := 0, (*session)(nil)
		for _, s := range l.list {
			if !matches(s) {
				continue
			}
			n++
			if oldest == nil || s.last().Before(oldest.last()) {
				oldest = s
			}
		}
		if n < most {
			return
		}
		l.endLocked(oldest)
	}
}

func (l *sessions) pruneLocked(now time.Time) {
	for _, s := range l.list {
		if s.over(now) {
			l.endLocked(s)
		}
	}
}

func (l *sessions) endLocked(s *session) {
	delete(l.list, s.key)
	s.end()
}

// end ends a session, and the requests that use it.
func (l *sessions) end(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked(s)
}

// endOf ends the sessions of a user at the provider, or the one that has begun with a session there
// if sid is not empty.
func (l *sessions) endOf(subject, sid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.list {
		if s.subject != "" && (subject == "" || s.subject == subject) && (sid == "" || s.sid == sid) {
			l.endLocked(s)
		}
	}
}

// find returns the session of a request, or nil.
func (l *sessions) find(r *http.Request, cookie string) *session {
	list := r.CookiesNamed(cookie)
	if len(list) != 1 {
		return nil // two: another host of the domain may have set one
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.list[hashed(list[0].Value)]
	if s != nil && s.over(time.Now()) {
		l.endLocked(s)
		return nil
	}
	return s
}

// count returns the number of sessions of a user.
func (l *sessions) count(name string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pruneLocked(time.Now())
	for _, s := range l.list {
		if s.user.Name == name {
			n++
		}
	}
	return n
}

func (s *session) last() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *session) over(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx.Err() != nil || now.Sub(s.began) >= sessionEnd || s.open == 0 && now.Sub(s.used) >= idleEnd
}

// use returns a context for a request of the session, which ends with both. The function must be
// called when the request is answered.
func (s *session) use(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	s.note(1)
	return ctx, func() {
		stop()
		cancel()
		s.note(-1)
	}
}

func (s *session) note(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.open = time.Now(), s.open+n
}

// maxOpen is the number of requests that a user may have open, of which the events of a page are
// one: it leaves places for other viewers.
const maxOpen = 100

// open counts the open requests of users.
type open struct {
	mu sync.Mutex // guards the field below
	n  map[string]int
}

// begin reports whether a user may have one more. After true, end must be called.
func (o *open) begin(user string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = make(map[string]int)
	}
	if o.n[user] >= maxOpen {
		return false
	}
	o.n[user]++
	return true
}

func (o *open) end(user string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n[user]--; o.n[user] == 0 {
		delete(o.n, user)
	}
}
