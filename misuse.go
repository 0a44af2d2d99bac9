package anser

import (
	"context"
	"errors"
)

// What is not usable is an error, wherever a method has one to return, and never a panic: see the package's comment.
var (
	errNoServer = errors.New("the server is nil or was not made by anser.NewServer")
	errNilServe = errors.New("serve: the listener is nil")
	errNilEnd   = errors.New("shutdown: the context is nil: pass context.Background()")
)

// usable returns an error for a server that is nil or the zero value.
func (s *Server) usable() error {
	if s == nil || s.listeners == nil {
		return errNoServer
	}
	return nil
}

// exists reports whether the client was made by Dial, or for a session.
func (c *Client) exists() bool { return c != nil && c.cluster != nil }

// usable returns an error for a client that is nil or the zero value, and for a context that is nil.
//
//go:noinline
func (c *Client) usable(ctx context.Context, method string) error {
	var fault *Error
	switch {
	case !c.exists():
		fault = failure(InvalidArgument, NotSent, PhaseNone, nil, "the client is nil or was not made by anser.Dial")
	case ctx == nil:
		fault = failure(InvalidArgument, NotSent, PhaseNone, nil, "the context is nil: pass context.Background()")
	default:
		return nil
	}
	fault.Method = method
	return fault
}
