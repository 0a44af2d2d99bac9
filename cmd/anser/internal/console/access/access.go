// Package access says which requests a console answers: it logs users in, knows their roles, and
// keeps pages of other sites out. [Access.Wrap] checks every request of a route in the same way.
package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

// Role says what a user may do. A role may do all that the ones before it may.
type Role uint8

// The roles.
const (
	Look       Role = iota + 1 // read everything but the users
	Operate                    // change instances, rules, canaries, faults and files, read files, and call methods
	Administer                 // see the users
)

// String returns "look", "operate" or "administer".
func (r Role) String() string {
	switch r {
	case Look:
		return "look"
	case Operate:
		return "operate"
	case Administer:
		return "administer"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// MarshalText writes the name of the role.
func (r Role) MarshalText() ([]byte, error) {
	if r < Look || r > Administer {
		return nil, fmt.Errorf("unknown %v: use look, operate or administer", r)
	}
	return []byte(r.String()), nil
}

// UnmarshalText parses the output of MarshalText.
func (r *Role) UnmarshalText(text []byte) error {
	for role := Look; role <= Administer; role++ {
		if string(text) == role.String() {
			*r = role
			return nil
		}
	}
	return fmt.Errorf("unknown role %q: use look, operate or administer", text)
}

// User is the author of a request.
type User struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
}

// Ways to log in.
const (
	None  = "none" // all users of this machine
	Local = "local"
	OIDC  = "oidc"
	Proxy = "proxy"
)

// Options configure an [Access]. Users and OIDC may both be set, and Proxy alone. Without any of
// them every request from this machine is that of an administrator.
type Options struct {
	Users string        // the file with the users
	OIDC  *OIDCOptions  // a provider that logs users in
	Proxy *ProxyOptions // a proxy in front that has logged users in
	// Trusted are the addresses of proxies in front that log no users in. Their X-Forwarded-For is
	// believed.
	Trusted []netip.Prefix
	Hosts   []string // names that browsers use for the console, besides addresses and localhost
	// Public says that other machines reach the console, which needs a login then.
	Public bool
	// ReadOnly says what to do so that users with the role may change something; empty means that
	// they may.
	ReadOnly string
	Secure   bool // browsers reach the console by HTTPS, itself or at a proxy
	Version  string
}

// Access checks requests. Its methods are safe for concurrent use.
type Access struct {
	o        Options
	users    *Users // nil without a file
	oidc     *provider
	sessions sessions
	logins   attempts
	open     open
	words    words         // of a proxy that logs users in
	logouts  *rate.Limiter // of a provider
	secret   [32]byte      // of the tokens against forged requests
	started  time.Time
}

// New returns an Access. ctx bounds the questions to a provider.
func New(ctx context.Context, o Options) (*Access, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	a := &Access{o: o, started: time.Now().UTC()}
	a.sessions.start()
	a.logins.start()
	a.logouts = rate.NewLimiter(logoutsPerSecond, logoutBurst)
	if _, err := rand.Read(a.secret[:]); err != nil {
		return nil, err
	}
	var err error
	if o.Users != "" {
		if a.users, err = OpenUsers(o.Users); err != nil {
			return nil, err
		}
		if len(a.users.List()) == 0 {
			return nil, fmt.Errorf("the console: %s has no users: add one with \"anser console user add NAME --role administer\"", o.Users)
		}
	}
	if o.OIDC != nil {
		a.oidc = newProvider(o.OIDC)
		// Users of the console log in without the provider, which is asked again later.
		if _, err := a.oidc.endpoints(ctx); err != nil && a.users == nil {
			return nil, err
		}
	}
	return a, nil
}

// ProviderTrouble returns why the provider of OpenID Connect has not described itself, or nil. It
// is asked again at each login.
func (a *Access) ProviderTrouble() error {
	if a.oidc == nil {
		return nil
	}
	a.oidc.mu.Lock()
	defer a.oidc.mu.Unlock()
	return a.oidc.failed
}

func (o *Options) check() error {
	own := o.Users != "" || o.OIDC != nil
	switch {
	case own && o.Proxy != nil:
		return errors.New("the console: a proxy logs users in, and the console does, too: use either the proxy, or a file of users and OpenID Connect")
	case len(o.Trusted) > 0 && !own:
		return errors.New("the console: a proxy in front needs a login: use a file of users or OpenID Connect, or let the proxy log users in")
	case o.Public && !own && o.Proxy == nil:
		return errors.New("the console: other machines reach the address, and there is no login: use a loopback address, or a file of users, OpenID Connect or a proxy")
	case o.OIDC != nil:
		return o.OIDC.check()
	case o.Proxy != nil:
		return o.Proxy.check()
	}
	return nil
}

// Login returns the way to log in: one of the constants. It is Local where users can log in at a
// provider, too.
func (a *Access) Login() string {
	switch {
	case a.users != nil:
		return Local
	case a.oidc != nil:
		return OIDC
	case a.o.Proxy != nil:
		return Proxy
	}
	return None
}

// Changes reports whether a user may change something.
func (a *Access) Changes(u User) bool {
	return u.Role >= Operate && a.o.ReadOnly == ""
}

type userKey struct{}

// From returns the user of a request that Wrap has let through.
func From(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}

// WithUser returns a context with a user, for code that acts on its own.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// Wrap returns a handler that lets the requests of users with the role through to next, unless they
// come from a page of another site. A request with a method that may change something must have the
// token of the session in the header X-CSRF-Token. The context of a request ends with the session
// that it uses, and after [ProxyBound] if a proxy logs users in.
func (a *Access) Wrap(next http.Handler, role Role) http.Handler { return a.wrap(next, role, false) }

// WrapLong is Wrap for requests that may take long. Behind a proxy that logs users in, each goes on
// while the same user makes other requests through the proxy, with the role that it needs: its
// context ends [WordBound] after the last one, and in any case after the time of a session, with
// the cause [ErrNoWord].
func (a *Access) WrapLong(next http.Handler, role Role) http.Handler {
	return a.wrap(next, role, true)
}

func (a *Access) wrap(next http.Handler, role Role, long bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Protect(w.Header())
		if p := a.foreign(r); p != nil {
			p.Write(w)
			return
		}
		who, p := a.identify(r)
		if p == nil {
			p = a.allowed(r, who, role)
		}
		if p != nil {
			p.Write(w)
			return
		}
		if safe(r.Method) && a.Login() != None {
			if !a.open.begin(who.user.Name) {
				respond.Fail(w, http.StatusTooManyRequests, fmt.Sprintf("%s has %d requests open", who.user.Name, maxOpen), "close some pages of the console")
				return
			}
			defer a.open.end(who.user.Name)
		}
		ctx := WithUser(r.Context(), who.user)
		if a.Login() == Proxy {
			var done func()
			if long {
				ctx, done = a.words.begin(ctx, who.user.Name, role)
			} else {
				ctx, done = context.WithTimeout(ctx, ProxyBound)
			}
			defer done()
		}
		if s := who.session; s != nil {
			var cancel context.CancelFunc
			ctx, cancel = s.use(context.WithValue(ctx, sessionKey{}, s))
			defer cancel()
			defer a.watch(s)()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

type sessionKey struct{}

// Over reports whether the session of a request that Wrap has let through has ended since, also
// because its user was removed or changed, or whether a proxy's word for its user counts no more.
// ctx is the context of the request.
func (a *Access) Over(ctx context.Context) bool {
	if a.Login() == Proxy {
		return ctx.Err() != nil
	}
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s != nil && (s.over(time.Now()) || !a.lasts(s))
}

// lasts reports whether the user of a session is still the one of its login.
func (a *Access) lasts(s *session) bool {
	switch {
	case a.users == nil:
		return true
	case s.stamp == "": // of the provider; the name may have been given to a user of the console since
		return !a.users.has(s.user.Name)
	}
	return a.users.still(s.user, s.stamp)
}

// watchEvery is the time between two looks for whether the user of an open request still exists.
const watchEvery = 10 * time.Second

// watch ends the session when its user is removed or changed while a request is open. The returned
// function ends the watch.
func (a *Access) watch(s *session) (end func()) {
	if a.users == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var look func()
	look = func() {
		switch {
		case ctx.Err() != nil:
		case a.lasts(s):
			time.AfterFunc(watchEvery, look)
		default:
			a.sessions.end(s)
		}
	}
	t := time.AfterFunc(watchEvery, look)
	return func() {
		t.Stop()
		cancel()
	}
}

// identity is the author of a request.
type identity struct {
	user    User
	session *session // nil without one
	csrf    string   // the token that its changes must have
}

// allowed returns why a user may not make a request.
func (a *Access) allowed(r *http.Request, who identity, role Role) *respond.Error {
	switch {
	case who.user.Role < role:
		return respond.Problem(http.StatusForbidden, fmt.Sprintf("%s may %s, and this needs the role %q", who.user.Name, who.user.Role, role), "ask an administrator for the role")
	case safe(r.Method):
		return nil
	case role >= Operate && !a.Changes(who.user):
		return respond.Problem(http.StatusForbidden, "the console is read-only", a.o.ReadOnly)
	case !hmac.Equal([]byte(r.Header.Get("X-CSRF-Token")), []byte(who.csrf)):
		return respond.Problem(http.StatusForbidden, "the request has no valid token in the header X-CSRF-Token", "use the token that api/session returns; after a login there is another one")
	}
	return nil
}

// safe reports whether requests with a method change nothing.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// token returns the token against forged requests of a session or user.
func (a *Access) token(of string) string {
	mac := hmac.New(sha256.New, a.secret[:])
	mac.Write([]byte(of))
	return hex.EncodeToString(mac.Sum(nil))
}
