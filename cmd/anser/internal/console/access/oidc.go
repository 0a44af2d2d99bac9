package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

// OIDCOptions describe a provider of OpenID Connect.
type OIDCOptions struct {
	Issuer       string // URL
	ClientID     string
	ClientSecret string
	Redirect     string          // URL of api/oidc/callback as browsers reach it
	Claim        string          // that holds the groups of a user; "groups" if it is empty
	Roles        map[string]Role // of users in a group; the highest one counts
	Role         Role            // of other users; 0 means that they are refused
	Client       *http.Client    // asks the provider; nil means a client of the console
}

func (o *OIDCOptions) check() error {
	u, err := url.Parse(o.Redirect)
	switch {
	case o.ClientID == "":
		return errors.New("the console: the client id for OpenID Connect is missing: the provider gives one to an application")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("the console: %q is no URL to return to from the provider: use for example https://console.example.org/api/oidc/callback", o.Redirect)
	case o.Role == 0 && len(o.Roles) == 0:
		return errors.New("the console: users of the provider have no role: give one to all of them, or to groups")
	}
	return nil
}

// Limits of logins at a provider.
const (
	maxPending  = 1000
	pendingEnd  = 10 * time.Minute
	askProvider = 10 * time.Second
)

// provider is a provider of OpenID Connect.
type provider struct {
	o        *OIDCOptions
	client   *http.Client
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier

	mu      sync.Mutex // guards the field below
	pending map[string]pending
}

// pending is a login that is under way, by the hash of the browser's cookie.
type pending struct {
	state, nonce, verifier string
	began                  time.Time
}

// discover asks the provider for its addresses and keys.
func discover(ctx context.Context, o *OIDCOptions) (*provider, error) {
	p := &provider{o: o, client: o.Client, pending: make(map[string]pending)}
	if p.client == nil {
		p.client = &http.Client{Timeout: askProvider, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("the console: the provider %s does not describe itself: %w", o.Issuer, err)
	}
	p.config = oauth2.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: o.Redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}
	p.verifier = found.Verifier(&oidc.Config{ClientID: o.ClientID})
	return p, nil
}

// begin notes a login and returns the value for the browser's cookie.
func (p *provider) begin() (cookie string, l pending) {
	cookie, l = random(), pending{state: random(), nonce: random(), verifier: oauth2.GenerateVerifier(), began: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := ""
	for key, o := range p.pending {
		if time.Since(o.began) > pendingEnd {
			delete(p.pending, key)
		} else if oldest == "" || o.began.Before(p.pending[oldest].began) {
			oldest = key
		}
	}
	if len(p.pending) >= maxPending {
		delete(p.pending, oldest)
	}
	p.pending[hashed(cookie)] = l
	return cookie, l
}

// take returns the login of a cookie, once.
func (p *provider) take(cookie string) (pending, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := hashed(cookie)
	l, ok := p.pending[key]
	delete(p.pending, key)
	return l, ok && time.Since(l.began) <= pendingEnd
}

func (a *Access) loginCookie() string { return a.cookie() + "-login" }

// setLoginCookie sets the cookie of a login. It is lax: the provider leads the browser back here.
func (a *Access) setLoginCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: a.loginCookie(), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: a.o.Secure, SameSite: http.SameSiteLaxMode,
	})
}

func (a *Access) serveOIDCLogin(w http.ResponseWriter, r *http.Request) {
	if a.oidc == nil {
		noProvider().Write(w)
		return
	}
	if !a.logins.limiter(source(r)).Allow() {
		w.Header().Set("Retry-After", "10")
		respond.Fail(w, http.StatusTooManyRequests, "there are too many logins", "wait some seconds and log in again")
		return
	}
	cookie, l := a.oidc.begin()
	a.setLoginCookie(w, cookie, int(pendingEnd/time.Second))
	to := a.oidc.config.AuthCodeURL(l.state, oidc.Nonce(l.nonce), oauth2.S256ChallengeOption(l.verifier))
	http.Redirect(w, r, to, http.StatusFound)
}

func noProvider() *respond.Error {
	return respond.Problem(http.StatusNotFound, "the console has no provider of OpenID Connect", "see \"login\" of api/session")
}

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
	a.setLoginCookie(w, "", -1)
	l, ok := a.oidc.take(list[0].Value)
	if !ok || q.Get("state") != l.state {
		respond.Fail(w, http.StatusBadRequest, "the login is over, or is not the one of this browser", "open the console and log in")
		return
	}
	if q.Get("error") != "" || q.Get("code") == "" {
		respond.Fail(w, http.StatusUnauthorized, "the provider has refused the login", "ask the administrator of the provider")
		return
	}
	u, p := a.oidc.user(r.Context(), q.Get("code"), l)
	if p != nil {
		p.Write(w)
		return
	}
	a.begin(w, r, u, "")
	// A redirect would belong to the navigation that began at the provider, and browsers leave out
	// strict cookies in one. A page that leads on begins another one.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write([]byte("<!doctype html><meta http-equiv=refresh content=\"0;url=../../\"><title>Anser</title><a href=\"../../\">Console</a>"))
}

// user exchanges a code for the user.
func (p *provider) user(ctx context.Context, code string, l pending) (User, *respond.Error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), askProvider)
	defer cancel()
	refused := respond.Problem(http.StatusUnauthorized, "the provider has not confirmed the login", "log in again")
	token, err := p.config.Exchange(ctx, code, oauth2.VerifierOption(l.verifier))
	if err != nil {
		return User{}, refused
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := p.verifier.Verify(ctx, raw)
	if err != nil || id.Nonce != l.nonce {
		return User{}, refused
	}
	var claims map[string]any
	if id.Claims(&claims) != nil {
		return User{}, refused
	}
	u := User{Name: id.Subject, Role: p.o.role(claims)}
	// Users may choose any other name that a provider tells.
	if verified, _ := claims["email_verified"].(bool); verified {
		if email, _ := claims["email"].(string); checkName(email) == nil {
			u.Name = email
		}
	}
	if checkName(u.Name) != nil {
		return User{}, refused
	}
	if u.Role == 0 {
		return User{}, respond.Problem(http.StatusForbidden, u.Name+" has no role in the console", "ask an administrator for a group with one")
	}
	return u, nil
}

// role returns the role for the groups in the claims.
func (o *OIDCOptions) role(claims map[string]any) Role {
	name := o.Claim
	if name == "" {
		name = "groups"
	}
	role := o.Role
	switch groups := claims[name].(type) {
	case string:
		role = max(role, o.Roles[groups])
	case []any:
		for _, g := range groups {
			if g, ok := g.(string); ok {
				role = max(role, o.Roles[g])
			}
		}
	}
	return role
}
