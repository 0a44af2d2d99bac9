package access

import (
	"crypto/hmac"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

// Limits of logins at a provider.
const (
	pendingEnd = 10 * time.Minute
	// Logins that are remembered as used until their end: of all users, and of one.
	maxSpent   = 10_000
	maxSpentOf = 100
)

// pending is a login that is under way. The console keeps nothing of it, so that no number of other
// logins can end it: the browser has the id and the time in a cookie with a MAC, and the rest is
// computed from them.
type pending struct {
	id, state, nonce, verifier string
	began                      time.Time
}

// pendingOf returns the login with an id.
func (a *Access) pendingOf(id string, began time.Time) pending {
	of := id + " " + strconv.FormatInt(began.Unix(), 10)
	return pending{id: id, state: a.token("login state " + of), nonce: a.token("login nonce " + of), verifier: a.token("login verifier " + of), began: began}
}

// cookie returns the value for the browser's cookie.
func (a *Access) pendingCookie(l pending) string {
	text := l.id + "." + strconv.FormatInt(l.began.Unix(), 10)
	return text + "." + a.token("login cookie "+text)
}

// pendingIn returns the login of a cookie, unless it is over or the console has not set the cookie.
func (a *Access) pendingIn(cookie string) (pending, bool) {
	dot := strings.LastIndexByte(cookie, '.')
	if dot < 0 || !hmac.Equal([]byte(cookie[dot+1:]), []byte(a.token("login cookie "+cookie[:dot]))) {
		return pending{}, false
	}
	id, text, _ := strings.Cut(cookie[:dot], ".")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return pending{}, false
	}
	began := time.Unix(seconds, 0)
	// A clock that was set back makes a login over, not longer.
	if age := time.Since(began); age < 0 || age > pendingEnd {
		return pending{}, false
	}
	return a.pendingOf(id, began), true
}

// spent are the logins that have led to a session, until their cookies end: each does so once. Only
// users that the provider has confirmed take a place.
type spent struct {
	mu   sync.Mutex // guards the field below
	list map[string]spentLogin
}

type spentLogin struct {
	user string
	end  time.Time
}

// add remembers that a login is used. It returns over if it was before, and another problem if
// there is no room to remember it.
func (s *spent) add(l pending, user string, over *respond.Error) *respond.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		s.list = make(map[string]spentLogin)
	}
	now, ofUser := time.Now(), 0
	for id, o := range s.list {
		if now.After(o.end) {
			delete(s.list, id)
		} else if o.user == user {
			ofUser++
		}
	}
	if _, used := s.list[l.id]; used {
		return over
	}
	if len(s.list) >= maxSpent || ofUser >= maxSpentOf {
		return respond.Problem(http.StatusTooManyRequests, "there were too many logins in the last ten minutes", "wait some minutes and log in again")
	}
	s.list[l.id] = spentLogin{user, l.began.Add(pendingEnd + time.Second)}
	return nil
}

func (a *Access) loginCookie() string { return a.cookie() + "-login" }

// setLoginCookie sets the cookie of a login. It is lax: the provider leads the browser back here.
func (a *Access) setLoginCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: a.loginCookie(), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: a.o.Secure, SameSite: http.SameSiteLaxMode,
	})
}

// serveOIDCLogin begins a login. It has no limit: it keeps nothing and asks nothing.
func (a *Access) serveOIDCLogin(w http.ResponseWriter, r *http.Request) {
	if a.oidc == nil {
		noProvider().Write(w)
		return
	}
	at, err := a.oidc.endpoints(r.Context())
	if err != nil {
		a.oidc.silent().Write(w)
		return
	}
	l := a.pendingOf(random(), time.Now())
	a.setLoginCookie(w, a.pendingCookie(l), int(pendingEnd/time.Second))
	to := at.config.AuthCodeURL(l.state, oidc.Nonce(l.nonce), oauth2.S256ChallengeOption(l.verifier))
	http.Redirect(w, r, to, http.StatusFound)
}

func noProvider() *respond.Error {
	return respond.Problem(http.StatusNotFound, "the console has no provider of OpenID Connect", "see \"login\" of api/session")
}

// ofProvider names all users of the provider for the cookie of a known browser: which one logs in
// is known after the provider was asked.
const ofProvider = "provider"

// serveOIDCCallback ends a login that the provider has answered.
func (a *Access) serveOIDCCallback(w http.ResponseWriter, r *http.Request) {
	if a.oidc == nil {
		noProvider().Write(w)
		return
	}
	list, q := r.CookiesNamed(a.loginCookie()), r.URL.Query()
	if len(list) != 1 {
		respond.Fail(w, http.StatusBadRequest, "this browser has not begun a login", "open the console and log in")
		return
	}
	over := respond.Problem(http.StatusBadRequest, "the login is over, or is not the one of this browser", "open the console and log in")
	l, ok := a.pendingIn(list[0].Value)
	if !ok {
		a.setLoginCookie(w, "", -1)
		over.Write(w)
		return
	}
	// The login of the cookie goes on: another tab has begun a login before it, or a page of
	// another site has led the browser here.
	if !hmac.Equal([]byte(q.Get("state")), []byte(l.state)) {
		over.Write(w)
		return
	}
	browser := a.browser(r, ofProvider)
	if !a.mayAsk(r, browser) {
		w.Header().Set("Retry-After", "10")
		respond.Fail(w, http.StatusTooManyRequests, "there are too many logins", "wait some seconds and load this page again")
		return // the cookie stays: the login goes on when the page is loaded again
	}
	a.setLoginCookie(w, "", -1)
	if q.Get("error") != "" || q.Get("code") == "" {
		respond.Fail(w, http.StatusUnauthorized, "the provider has refused the login", "ask the administrator of the provider")
		return
	}
	at, err := a.oidc.endpoints(r.Context())
	if err != nil {
		a.oidc.silent().Write(w)
		return
	}
	u, by, p := a.oidc.user(r.Context(), at, q.Get("code"), l)
	if p == nil && a.users != nil && a.users.has(u.Name) {
		p = respond.Problem(http.StatusForbidden, u.Name+" is the name of a user of the console, too", "ask an administrator to give that user another name")
	}
	if p == nil {
		p = a.oidc.spent.add(l, u.Name, over)
	}
	if p != nil {
		p.Write(w)
		return
	}
	a.begin(w, r, u, by)
	a.know(w, browser, ofProvider)
	// A redirect would belong to the navigation that began at the provider, and browsers leave out
	// strict cookies in one. A page that leads on begins another one.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write([]byte("<!doctype html><meta http-equiv=refresh content=\"0;url=../../\"><title>Anser</title><a href=\"../../\">Console</a>"))
}

// mayAsk reports whether the provider may be asked for a user. Each answer of a browser leads to a
// request, so that strangers could flood the provider through the console.
func (a *Access) mayAsk(r *http.Request, browser string) bool {
	if browser != "" {
		return a.logins.limiterOf(browser).Allow()
	}
	return a.logins.limiter(a.source(r)).Allow()
}
