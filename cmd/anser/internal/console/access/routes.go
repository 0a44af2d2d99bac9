package access

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

// Routes returns the handlers of the session and the login by their patterns of http.ServeMux.
func (a *Access) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /api/session":       guarded(a.foreign, a.serveSession),
		"POST /api/login":        guarded(a.foreign, a.serveLogin),
		"POST /api/logout":       a.Wrap(http.HandlerFunc(a.serveLogout), Look),
		"GET /api/users":         a.Wrap(http.HandlerFunc(a.serveUsers), Administer),
		"GET /api/oidc/login":    guarded(a.foreignHost, a.serveOIDCLogin),
		"GET /api/oidc/callback": guarded(a.foreignHost, a.serveOIDCCallback),
		"POST /api/oidc/logout":  guarded(a.foreignHost, a.serveOIDCLogout),
	}
}

// guarded returns a handler for requests without a session, unless foreign says that they are
// another site's: [Access.foreign], or [Access.foreignHost] where other sites may lead to.
func guarded(foreign func(*http.Request) *respond.Error, f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Protect(w.Header())
		if p := foreign(r); p != nil {
			p.Write(w)
			return
		}
		f(w, r)
	})
}

// state is what the page knows about its viewer.
type state struct {
	User    string `json:"user"`
	Role    string `json:"role"`
	Login   string `json:"login"`
	CSRF    string `json:"csrf"`
	Changes bool   `json:"changes"`
	May     []Role `json:"may"` // the roles in which the viewer can act now
	// ReadOnly says why no user can change anything; empty means that users can.
	ReadOnly string   `json:"read_only,omitempty"`
	LogIn    *request `json:"log_in,omitempty"` // begins a session
	// Provider begins a session at the provider, if users can log in there as well.
	Provider *request  `json:"log_in_provider,omitempty"`
	LogOut   *request  `json:"log_out,omitempty"` // ends the session
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
}

// request is a request that the page may make. A GET is one for a browser to go to.
type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

// logIn returns how to log in, or nil if the page cannot do it.
func (a *Access) logIn() *request {
	switch a.Login() {
	case Local:
		return &request{http.MethodPost, "api/login"}
	case OIDC:
		return atProvider()
	}
	return nil
}

func atProvider() *request { return &request{http.MethodGet, "api/oidc/login"} }

// serveSession describes the viewer. Without a session the fields of the user are empty.
func (a *Access) serveSession(w http.ResponseWriter, r *http.Request) {
	who, p := a.identify(r)
	if p != nil && p.Status != http.StatusUnauthorized {
		p.Write(w)
		return
	}
	s := state{Login: a.Login(), LogIn: a.logIn(), May: []Role{}, ReadOnly: a.o.ReadOnly, Version: a.o.Version, Started: a.started}
	if p == nil {
		s.User, s.Role, s.CSRF, s.Changes = who.user.Name, who.user.Role.String(), who.csrf, a.Changes(who.user)
		for role := Look; role <= who.user.Role; role++ {
			if role != Operate || s.Changes {
				s.May = append(s.May, role)
			}
		}
	}
	if a.users != nil && a.oidc != nil {
		s.Provider = atProvider()
	}
	if who.session != nil {
		s.LogOut = &request{http.MethodPost, "api/logout"}
	}
	respond.JSON(w, http.StatusOK, s)
}

// maxLogin is the maximum size of the body of a login, in bytes.
const maxLogin = 4 << 10

// serveLogin begins a session. It needs the type JSON, which forms of other sites cannot send.
func (a *Access) serveLogin(w http.ResponseWriter, r *http.Request) {
	if a.users == nil {
		respond.Fail(w, http.StatusNotFound, "the console has no users of its own", "see \"login\" of api/session")
		return
	}
	var q struct{ User, Password string }
	body := http.MaxBytesReader(w, r.Body, maxLogin)
	if !IsJSON(r) || json.NewDecoder(body).Decode(&q) != nil {
		respond.Fail(w, http.StatusBadRequest, "the login cannot be read", `send {"user":"…","password":"…"} as application/json`)
		return
	}
	browser := a.browser(r, ofUser(q.User))
	done, ok := a.logins.begin(r.Context(), a.source(r), browser)
	if !ok {
		w.Header().Set("Retry-After", "10")
		respond.Fail(w, http.StatusTooManyRequests, "there are too many logins", "wait some seconds and log in again")
		return
	}
	account, ok := a.users.login(q.User, q.Password)
	done()
	if !ok {
		respond.Fail(w, http.StatusUnauthorized, "the name or the password is wrong", "an administrator sets a new password with \"anser console user add\"")
		return
	}
	a.begin(w, r, User{account.Name, account.Role}, login{stamp: account.stamp()})
	a.know(w, browser, ofUser(account.Name))
	w.WriteHeader(http.StatusNoContent)
}

// begin begins a session with a new id, and ends the one that the request has, if any: an id that
// was known before the login is of no use after it.
func (a *Access) begin(w http.ResponseWriter, r *http.Request, u User, by login) {
	if old := a.sessions.find(r, a.cookie()); old != nil {
		a.sessions.end(old)
	}
	a.set(w, a.cookie(), a.sessions.add(u, by), sessionEnd)
}

// cookie returns the name of the cookie. With the prefix __Host- no other host can set it.
func (a *Access) cookie() string {
	if a.o.Secure {
		return "__Host-anser-console"
	}
	return "anser-console"
}

// set sets a cookie for a time, or with a negative one removes it.
func (a *Access) set(w http.ResponseWriter, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, Secure: a.o.Secure, SameSite: http.SameSiteStrictMode,
	})
}

// leaving is the answer to a logout of a user that a provider has logged in.
type leaving struct {
	At string `json:"at"` // where a browser ends the session at the provider
}

// serveLogout ends the session of the console, and says where the one at the provider ends.
func (a *Access) serveLogout(w http.ResponseWriter, r *http.Request) {
	at := ""
	if s := a.sessions.find(r, a.cookie()); s != nil {
		a.sessions.end(s)
		at = a.leaveProvider(s)
	}
	a.set(w, a.cookie(), "", -time.Second)
	if at != "" {
		respond.JSON(w, http.StatusOK, leaving{at})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// listed is a user as administrators see it.
type listed struct {
	User
	Sessions int `json:"sessions"`
}

func (a *Access) serveUsers(w http.ResponseWriter, _ *http.Request) {
	list := []listed{}
	if a.users != nil {
		for _, u := range a.users.List() {
			list = append(list, listed{u, a.sessions.count(u.Name)})
		}
	}
	respond.JSON(w, http.StatusOK, list)
}
