package netrpc

import (
	"context"
	"errors"
)

// A value that is nil or was not created by its constructor causes an error, never a panic, as in
// package anser. Functions without an error result log it.
var (
	errNoServer  = errors.New("rpc: the server is nil: use rpc.NewServer()")
	errNoClient  = errors.New("rpc: the client is nil or was not made by Dial or NewClient, or its codec is nil")
	errNoDialer  = errors.New("rpc: the dialer is nil: use new(rpc.Dialer)")
	errNoCodec   = errors.New("rpc: the codec is nil")
	errNoMux     = errors.New("rpc.HandleHTTPMux: the mux is nil: use HandleHTTP for http.DefaultServeMux")
	errNoContext = errors.New("rpc: the context is nil: pass context.Background()")
)

// usable returns an error for a client that was not created by this package, and for a nil
// context.
func (c *Client) usable(ctx context.Context) error {
	switch {
	case c == nil || c.ended == nil:
		return errNoClient
	case ctx == nil:
		return errNoContext
	}
	return nil
}

// usable returns an error for a nil dialer or context.
func (d *Dialer) usable(ctx context.Context) error {
	switch {
	case d == nil:
		return errNoDialer
	case ctx == nil:
		return errNoContext
	}
	return nil
}
