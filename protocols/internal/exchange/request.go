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

// RequestFrom returns the request of a call, or nil.
func RequestFrom(ctx context.Context) *http.Request {
	if ctx == nil {
		return nil
	}
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	return r
}
