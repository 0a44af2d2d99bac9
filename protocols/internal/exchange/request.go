package exchange

import (
	"context"
	"net/http"
)

type requestKey struct{}

// WithRequest returns a context with the values of the request's context, and the request.
func WithRequest(r *http.Request) context.Context {
	return context.WithValue(r.Context(), requestKey{}, r)
}

type hostKey struct{}

// WithHost returns a context with the host that a caller has asked for, for calls without a request
// of net/http.
func WithHost(ctx context.Context, host string) context.Context {
	return context.WithValue(ctx, hostKey{}, host)
}

// HostFrom returns the host of WithHost, or "".
func HostFrom(ctx context.Context) string {
	host, _ := ctx.Value(hostKey{}).(string)
	return host
}

// RequestFrom returns the request of a call, or nil.
func RequestFrom(ctx context.Context) *http.Request {
	if ctx == nil {
		return nil
	}
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	return r
}
