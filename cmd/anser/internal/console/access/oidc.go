package access

import (
	"cmp"
	"context"
	"crypto/hmac"
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

const (
	askProvider = 10 * time.Second // for an answer of the provider
	askAgain    = 5 * time.Second  // after it has not described itself
)

// provider is a provider of OpenID Connect.
type provider struct {
	o      *OIDCOptions
	client *http.Client
	spent  spent

	mu     sync.Mutex // guards the fields below
	found  *endpoints // nil until the provider has described itself
	asking bool
	asked  time.Time // when it was asked last
	failed error     // why it has not described itself
}

// endpoints are what the provider says about itself.
type endpoints struct {
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
	provider *oidc.Provider
	logout   *url.URL              // where browsers end their session; nil: nowhere
	ended    *oidc.IDTokenVerifier // of tokens that say that a session has ended
}

func newProvider(o *OIDCOptions) *provider {
	p := &provider{o: o, client: o.Client}
	if p.client == nil {
		p.client = &http.Client{Timeout: askProvider, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	return p
}

// endpoints returns what the provider says about itself, for which it is asked until it has
// answered once: by one request at a time, and not at once after it has failed.
func (p *provider) endpoints(ctx context.Context) (*endpoints, error) {
	p.mu.Lock()
	if p.found != nil || p.asking || p.failed != nil && time.Since(p.asked) < askAgain {
		defer p.mu.Unlock()
		if p.found == nil && p.failed == nil {
			return nil, errors.New("the provider is being asked")
		}
		return p.found, p.failed
	}
	p.asking = true
	p.mu.Unlock()
	found, err := p.discover(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking, p.asked = false, time.Now()
	p.found, p.failed = found, err
	return found, err
}

// discover asks the provider for its addresses.
func (p *provider) discover(ctx context.Context) (*endpoints, error) {
	// The answer is for all users: the first one may leave.
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), p.client), askProvider)
	defer cancel()
	found, err := oidc.NewProvider(ctx, p.o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("the console: the provider %s does not describe itself: %w", p.o.Issuer, err)
	}
	var says struct {
		Logout string `json:"end_session_endpoint"`
	}
	if err := found.Claims(&says); err != nil {
		return nil, fmt.Errorf("the console: what the provider %s says about itself cannot be read: %w", p.o.Issuer, err)
	}
	return &endpoints{
		config: oauth2.Config{
			ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: p.o.Redirect,
			Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
		},
		verifier: found.Verifier(&oidc.Config{ClientID: p.o.ClientID}), provider: found,
		logout: logoutAt(says.Logout, p.o.Issuer), ended: found.Verifier(&oidc.Config{ClientID: p.o.ClientID, SkipExpiryCheck: true}),
	}, nil
}

// user exchanges a code for the user, and what its session keeps of the login.
func (p *provider) user(ctx context.Context, at *endpoints, code string, l pending) (User, login, *respond.Error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), askProvider)
	defer cancel()
	refused := respond.Problem(http.StatusUnauthorized, "the provider has not confirmed the login", "log in again")
	token, err := at.config.Exchange(ctx, code, oauth2.VerifierOption(l.verifier))
	if err != nil {
		if _, answered := errors.AsType[*oauth2.RetrieveError](err); !answered {
			return User{}, login{}, p.silent()
		}
		return User{}, login{}, refused
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := at.verifier.Verify(ctx, raw)
	if err != nil || id.Subject == "" || !hmac.Equal([]byte(id.Nonce), []byte(l.nonce)) {
		return User{}, login{}, refused
	}
	var claims map[string]any
	if id.Claims(&claims) != nil {
		return User{}, login{}, refused
	}
	if err := p.complete(ctx, at, token, id.Subject, claims); err != nil {
		return User{}, login{}, respond.Problem(http.StatusBadGateway, fmt.Sprintf("the provider %s has confirmed the login, and does not say more about the user", p.o.Issuer), "log in again; if it stays so, ask the administrator of the provider")
	}
	u := User{Name: id.Subject, Role: p.o.role(claims)}
	// Users may choose any other name that a provider tells.
	if verified, _ := claims["email_verified"].(bool); verified {
		if email, _ := claims["email"].(string); checkName(email) == nil {
			u.Name = email
		}
	}
	if err := checkName(u.Name); err != nil {
		return User{}, login{}, respond.Problem(http.StatusUnauthorized, "the provider gives the user a name that the console does not take: "+err.Error(), "ask the administrator of the provider")
	}
	if u.Role == 0 {
		return User{}, login{}, respond.Problem(http.StatusForbidden, u.Name+" has no role in the console", "ask an administrator for a group with one")
	}
	sid, _ := claims["sid"].(string)
	return u, login{token: raw, subject: id.Subject, sid: sid}, nil
}

// complete adds the claims that a provider does not put into the token of a login: those about the
// address and the name of a user are at an endpoint of their own, as section 5.4 of OpenID Connect
// Core 1.0 says, and with some providers the groups are, too.
func (p *provider) complete(ctx context.Context, at *endpoints, token *oauth2.Token, subject string, claims map[string]any) error {
	_, groups := claims[p.o.claim()]
	_, email := claims["email"]
	if groups && email || at.provider.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := at.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return err
	}
	if info.Subject != subject {
		return errors.New("the claims are about another user")
	}
	var more map[string]any
	if err := info.Claims(&more); err != nil {
		return err
	}
	if !email { // the two belong together
		delete(claims, "email_verified")
	}
	for name, value := range more {
		if _, ok := claims[name]; !ok && (name != "email_verified" || !email) {
			claims[name] = value
		}
	}
	return nil
}

// silent is the problem of a provider that does not answer.
func (p *provider) silent() *respond.Error {
	return respond.Problem(http.StatusBadGateway, fmt.Sprintf("the provider %s does not answer", p.o.Issuer), "try again in some seconds, or log in with a name and a password if the console has users of its own")
}

// claim returns the name of the claim with the groups.
func (o *OIDCOptions) claim() string { return cmp.Or(o.Claim, "groups") }

// role returns the role for the groups in the claims.
func (o *OIDCOptions) role(claims map[string]any) Role {
	role := o.Role
	switch groups := claims[o.claim()].(type) {
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
