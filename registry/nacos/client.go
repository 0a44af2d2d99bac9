package nacos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

const (
	// attemptTimeout bounds one request, so that the next attempt may use another server.
	attemptTimeout = 3 * time.Second
	// creationTimeout is for a request that may create a service. Version 0.8 of Nacos then waits
	// for five seconds if it misses a signal, as on a busy machine, and then executes the request,
	// even if the client has given it up and has written newer data.
	creationTimeout = 8 * time.Second
	// maxAnswer is the largest answer in bytes: a list of ten thousand instances with full
	// metadata.
	maxAnswer = 512 << 20
)

// client makes requests of the HTTP API.
type client struct {
	http           *http.Client
	bases          []string     // "http://host:port/nacos"
	current        atomic.Int64 // index of the server that answered last
	user, password string

	loggingIn sync.Mutex // held during a login

	mu    sync.Mutex // guards token
	token string
}

func newClient(addresses []string, cfg config) *client {
	c := &client{user: cfg.user, password: cfg.password}
	scheme := "http://"
	if cfg.tls != nil {
		scheme = "https://"
	}
	for _, address := range addresses {
		c.bases = append(c.bases, scheme+address+cfg.contextPath)
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.tls, MaxIdleConnsPerHost: parallel, IdleConnTimeout: 30 * time.Second,
		},
		// A redirect could carry the token to any host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// statusError is an answer with an error status.
type statusError struct {
	server string
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("nacos at %s answered %d: %s%s", e.server, e.status, e.text, e.advice())
}

func (e *statusError) advice() string {
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ": use the option nacos.User with a name that has permission"
	case http.StatusNotFound:
		return ": is it Nacos? The option nacos.ContextPath says where its API begins"
	}
	return ""
}

// do makes one request, repeats it after a new login if the token was missing or has expired, and
// returns the body of the answer. Parameters go into the query of a GET or DELETE, and into the
// body of other requests. The answer must arrive within timeout.
func (c *client) do(ctx context.Context, timeout time.Duration, method, path string, params url.Values) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	index := c.current.Load()
	base := c.bases[int(index)%len(c.bases)]
	body, err := c.authorized(limited, base, method, path, params)
	switch {
	case err == nil:
		return body, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	status, answered := errors.AsType[*statusError](err)
	if !answered || status.status >= 500 {
		c.current.CompareAndSwap(index, index+1) // the next request uses the next server
	}
	if !answered && limited.Err() != nil { // not the caller's own context
		return nil, fmt.Errorf("nacos at %s has not answered within %v", host(base), timeout)
	}
	if answered && status.status >= 400 && status.status < 500 && status.status != http.StatusTooManyRequests {
		return nil, upkeep.Hopeless(err)
	}
	return nil, err
}

func (c *client) authorized(ctx context.Context, base, method, path string, params url.Values) ([]byte, error) {
	token := c.currentToken()
	body, err := c.roundTrip(ctx, base, method, path, params, token)
	status, answered := errors.AsType[*statusError](err)
	if c.user == "" || !answered || status.status != http.StatusForbidden && status.status != http.StatusUnauthorized {
		return body, err
	}
	if token, err = c.login(ctx, base, token); err != nil {
		return nil, err
	}
	return c.roundTrip(ctx, base, method, path, params, token)
}

func (c *client) currentToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// login returns a token other than the refused one: a hundred watches that lose theirs at the same
// time log in once.
func (c *client) login(ctx context.Context, base, refused string) (string, error) {
	c.loggingIn.Lock()
	defer c.loggingIn.Unlock()
	if token := c.currentToken(); token != refused {
		return token, nil
	}
	body, err := c.roundTrip(ctx, base, http.MethodPost, "/v1/auth/login", url.Values{"username": {c.user}, "password": {c.password}}, "")
	if err != nil {
		return "", fmt.Errorf("log in as %q: %w", c.user, err)
	}
	var answer struct {
		AccessToken string `json:"accessToken"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.AccessToken == "" {
		return "", fmt.Errorf("log in as %q: nacos at %s gave no access token", c.user, host(base))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = answer.AccessToken
	return c.token, nil
}

func (c *client) roundTrip(ctx context.Context, base, method, path string, params url.Values, token string) ([]byte, error) {
	where, payload := base+path, io.Reader(nil)
	inBody := method == http.MethodPost || method == http.MethodPut
	query := url.Values{}
	if token != "" {
		query.Set("accessToken", token)
	}
	if inBody {
		payload = strings.NewReader(params.Encode())
	} else {
		for name, values := range params {
			query[name] = values
		}
	}
	if len(query) > 0 {
		where += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, where, payload)
	if err != nil {
		return nil, withoutURL(base, err)
	}
	if inBody {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
	}
	req.Header.Set("User-Agent", "anser")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, withoutURL(base, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, withoutURL(base, err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("nacos at %s answered with more than %d bytes", host(base), maxAnswer)
	}
	if resp.StatusCode != http.StatusOK {
		text := bytes.ToValidUTF8(body[:min(len(body), 200)], nil)
		return nil, &statusError{host(base), resp.StatusCode, strings.TrimSpace(string(text))}
	}
	return body, nil
}

// withoutURL removes the URL from an error of net/http: it contains the token.
func withoutURL(base string, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("nacos at %s: %w", host(base), err)
}

func host(base string) string {
	_, rest, _ := strings.Cut(base, "://")
	address, _, _ := strings.Cut(rest, "/")
	return address
}
