package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// Timeouts of one request, and of one that lists objects.
const (
	attemptTimeout = 3 * time.Second
	listTimeout    = 15 * time.Second
)

// trial is one request. client-go silently retries some failed requests, up to ten times, which
// would hide an outage for as long. So a failed connection ends the trial, and if a trial times
// out, the server's last answer is the reason.
type trial struct {
	cancel context.CancelCauseFunc
	answer atomic.Pointer[string]
}

type trialKey struct{}

// begin returns a context for the HTTP requests of a trial.
func begin(ctx context.Context) (context.Context, *trial) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := &trial{cancel: cancel}
	return context.WithValue(ctx, trialKey{}, t), t
}

// reporting reports the result of an HTTP request to its trial.
type reporting struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r reporting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if t, ok := req.Context().Value(trialKey{}).(*trial); ok {
		if err != nil {
			t.cancel(err)
		} else if resp.Header.Get("Retry-After") != "" {
			t.answer.Store(&resp.Status)
		}
	}
	if err == nil && resp.StatusCode >= 500 && req.Method != http.MethodGet {
		// The request may have been carried out: client-go, which retries answers with this
		// header, would receive a conflict with itself.
		resp.Header.Del("Retry-After")
	}
	return resp, err
}

// WrappedRoundTripper gives client-go access to the transport.
func (r reporting) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

// How often a request is repeated if the server rejects its credentials: the server may be
// starting, and a token may just have been replaced.
const (
	credentialTrials = 3
	credentialPause  = 500 * time.Millisecond
)

// attempt makes one request, or a few that belong together. A request that is denied is repeated
// before it counts as hopeless: a starting server denies everything until it has loaded its own
// roles.
func (c *client) attempt(ctx context.Context, limit time.Duration, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tried, t := begin(limited)
	defer t.cancel(nil)
	err := request(tried)
	for range credentialTrials - 1 {
		if !apierrors.IsUnauthorized(err) || !pause(tried, credentialPause) {
			break
		}
		err = request(tried)
	}
	if apierrors.IsForbidden(err) {
		if !c.isReady(tried) {
			return fmt.Errorf("kubernetes is not ready yet: %w", err)
		}
		err = request(tried)
	}
	if err == nil {
		return nil
	}
	return t.explain(ctx, tried, err)
}

// isReady asks the server whether it is ready. By default every user may.
func (c *client) isReady(ctx context.Context) bool {
	return c.maps.GetClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// explain returns the reason why a request failed in the context tried, which ends no later than
// ctx.
func (t *trial) explain(ctx, tried context.Context, err error) error {
	cause := context.Cause(tried)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case cause == nil:
		return explain(err)
	case !errors.Is(cause, context.DeadlineExceeded): // an error of the connection
		return fmt.Errorf("kubernetes: %w", cause)
	case t.answer.Load() != nil:
		return fmt.Errorf("kubernetes answered %q and asks to try again later", *t.answer.Load())
	}
	return errors.New("kubernetes has not answered in time") // not an error of the caller's own context
}

// explain adds advice to an error, and marks it as hopeless if a retry is pointless.
func explain(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return upkeep.Hopeless(fmt.Errorf("kubernetes: %w: see docs/registries.md for the role that is needed", err))
	case apierrors.IsUnauthorized(err):
		return upkeep.Hopeless(fmt.Errorf("kubernetes: %w: check the credentials in the kubeconfig or of the service account", err))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return upkeep.Hopeless(fmt.Errorf("kubernetes: %w", err))
	}
	return fmt.Errorf("kubernetes: %w", err)
}
