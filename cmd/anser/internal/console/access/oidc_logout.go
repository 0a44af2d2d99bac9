package access

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

// maxHint is the maximum size of an ID token that is put into a URL, in bytes: with a larger one
// browsers or the provider might refuse the URL, and without it the provider asks the user.
const maxHint = 4 << 10

// logoutAt returns the URL at which browsers end their session at a provider, or nil if it has none
// that can be trusted with a token.
func logoutAt(text, issuer string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !strings.HasPrefix(issuer, "http://")) {
		return nil
	}
	return u
}

// leaveProvider returns where a browser ends the session at the provider with which a session has
// begun, as OpenID Connect RP-Initiated Logout 1.0 says, or "".
func (a *Access) leaveProvider(s *session) string {
	if a.oidc == nil || s.token == "" {
		return ""
	}
	a.oidc.mu.Lock()
	at := a.oidc.found
	a.oidc.mu.Unlock()
	if at == nil || at.logout == nil {
		return ""
	}
	u := *at.logout
	q := u.Query()
	q.Set("client_id", a.oidc.o.ClientID)
	if len(s.token) <= maxHint {
		q.Set("id_token_hint", s.token)
	}
	if back, ok := strings.CutSuffix(a.oidc.o.Redirect, "api/oidc/callback"); ok {
		q.Set("post_logout_redirect_uri", back)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

const (
	maxLogout = 64 << 10 // bytes of the body of a provider's request
	// logoutWithin is how old a provider's word may be that a session has ended, or how far its
	// clock may be ahead.
	logoutWithin = 5 * time.Minute
	// Requests of the provider: it may end the sessions of many users at a time.
	logoutsPerSecond = 20
	logoutBurst      = 200

	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
)

// serveOIDCLogout ends sessions of which the provider says that they have ended, as OpenID Connect
// Back-Channel Logout 1.0 says. A token that comes again ends what has begun meanwhile, of the same
// user.
func (a *Access) serveOIDCLogout(w http.ResponseWriter, r *http.Request) {
	if a.oidc == nil {
		noProvider().Write(w)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLogout)
	raw := r.PostFormValue("logout_token")
	// Checking a token may need a request to the provider, for keys: strangers must not cause many.
	if !a.logouts.Allow() {
		w.Header().Set("Retry-After", "1")
		respond.Fail(w, http.StatusTooManyRequests, "there are too many logouts", "send it again")
		return
	}
	subject, sid, ok := a.oidc.loggedOut(r.Context(), raw)
	if !ok {
		respond.Fail(w, http.StatusBadRequest, "the request has no valid logout_token of the provider", "see OpenID Connect Back-Channel Logout 1.0")
		return
	}
	a.sessions.endOf(subject, sid)
	w.WriteHeader(http.StatusOK)
}

// loggedOut returns the user and the session at the provider that a token says has ended. One of
// them may be empty.
func (p *provider) loggedOut(ctx context.Context, raw string) (subject, sid string, ok bool) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), askProvider)
	defer cancel()
	at, err := p.endpoints(ctx)
	if err != nil {
		return "", "", false
	}
	token, err := at.ended.Verify(ctx, raw)
	if err != nil {
		return "", "", false
	}
	var claims struct {
		SID    string                    `json:"sid"`
		Nonce  *string                   `json:"nonce"`
		Events map[string]map[string]any `json:"events"`
	}
	if token.Claims(&claims) != nil || claims.Nonce != nil || claims.Events[logoutEvent] == nil {
		return "", "", false // such as the token of a login
	}
	now := time.Now()
	if age := now.Sub(token.IssuedAt); age > logoutWithin || age < -logoutWithin || !token.Expiry.IsZero() && now.After(token.Expiry) {
		return "", "", false
	}
	return token.Subject, claims.SID, token.Subject != "" || claims.SID != ""
}
