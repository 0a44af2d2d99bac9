// Package access says which requests a console answers: it logs users in, knows their roles, and
// keeps pages of other sites out. [Access.Wrap] checks every request of a route in the same way.
package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
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
	None  = "none" // everybody on this machine
	Local = "local"
	OIDC  = "oidc"
	Proxy = "proxy"
)

// Options configure an [Access]. At most one of Users, OIDC and Proxy is set. Without any of them
// every request from this machine is that of an administrator.
type Options struct {
	Users string        // the file with the users
	OIDC  *OIDCOptions  // a provider that logs users in
	Proxy *ProxyOptions // a proxy in front that has logged users in
	Hosts []string      // names that browsers use for the console, besides addresses and localhost
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
	secret   [32]byte // of the tokens against forged requests
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
		if a.oidc, err = discover(ctx, o.OIDC); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (o *Options) check() error {
	ways := 0
	for _, is := range []bool{o.Users != "", o.OIDC != nil, o.Proxy != nil} {
		if is {
			ways++
		}
	}
	switch {
	case ways > 1:
		return errors.New("the console: there is more than one way to log in: use one of a file of users, OpenID Connect and a proxy")
	case o.Public && ways == 0:
		return errors.New("the console: other machines reach the address, and there is no login: use a loopback address, or a file of users, OpenID Connect or a proxy")
	case o.OIDC != nil:
		return o.OIDC.check()
	case o.Proxy != nil:
		return o.Proxy.check()
	}
	return nil
}

// Login returns the way to log in: one of the constants.
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
// token of the session in the header X-CSRF-Token. A request ends with the session that it uses.
func (a *Access) Wrap(next http.Handler, role Role) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Protect(w.Header())
		if p := a.foreign(r); p != nil {
			p.write(w)
			return
		}
		who, p := a.identify(r)
		if p == nil {
			p = a.allowed(r, who, role)
		}
		if p != nil {
			p.write(w)
			return
		}
		if safe(r.Method) && a.Login() != None {
			if !a.open.begin(who.user.Name) {
				Fail(w, http.StatusTooManyRequests, fmt.Sprintf("%s has %d requests open", who.user.Name, maxOpen), "close some pages of the console")
				return
			}
			defer a.open.end(who.user.Name)
		}
		ctx := WithUser(r.Context(), who.user)
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
// because its user was removed or changed.
func (a *Access) Over(ctx context.Context) bool {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s != nil && (s.over(time.Now()) || a.users != nil && !a.users.still(s.user, s.stamp))
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
		case a.users.still(s.user, s.stamp):
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
func (a *Access) allowed(r *http.Request, who identity, role Role) *problem {
	switch {
	case who.user.Role < role:
		return &problem{http.StatusForbidden, fmt.Sprintf("%s may %s, and this needs the role %q", who.user.Name, who.user.Role, role), "ask an administrator for the role"}
	case safe(r.Method):
		return nil
	case role >= Operate && !a.Changes(who.user):
		return &problem{http.StatusForbidden, "the console is read-only", a.o.ReadOnly}
	case !hmac.Equal([]byte(r.Header.Get("X-CSRF-Token")), []byte(who.csrf)):
		return &problem{http.StatusForbidden, "the request has no valid token in the header X-CSRF-Token", "use the token that api/session returns; after a login there is another one"}
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

// problem is why a request is refused.
type problem struct {
	status       int
	text, advice string
}

// Fail answers with an error of the form that all routes of the console have.
func Fail(w http.ResponseWriter, status int, text, advice string) {
	(&problem{status, text, advice}).write(w)
}

func (p *problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	json.NewEncoder(w).Encode(struct {
		Error  string `json:"error"`
		Advice string `json:"advice,omitempty"`
	}{p.text, p.advice})
}
