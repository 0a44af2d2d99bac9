package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// Interface check.
var _ http.Handler = (*Server)(nil)

type sourceKey struct{}

// newHTTP returns the handler of the SDK. Each request is by itself, as in version 2026-07-28 of
// the protocol; the server remembers no sessions. Package protocols has checked the origin and the
// host of a request before.
func newHTTP(s *Server) *sdk.StreamableHTTPHandler {
	return sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		source, _ := r.Context().Value(sourceKey{}).(Source)
		if source == nil {
			return nil
		}
		return s.server(source)
	}, &sdk.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: int64(s.o.MaxArguments), PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, Logger: slog.New(slog.DiscardHandler),
	})
}

// ServeHTTP serves the protocol to the client of a request, for [protocols.Handler]: the methods
// are those of the server that serves the request, and calls have the identity of the request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := protocols.CallerOf(r)
	if err == nil {
		_, err = c.Methods() // also if the client needs a credential, and has none
	}
	if err != nil {
		protocols.WriteError(w, err)
		return
	}
	s.ServeSource(w, r, &onPort{c, &s.local, r.Context()})
}

// ServeSource serves the protocol to the client of a request, with the methods of a source. The
// caller of it has checked the identity of the client, and that the request does not come from a
// page of another origin. A browser that asks for the address gets a page with the tools.
func (s *Server) ServeSource(w http.ResponseWriter, r *http.Request, source Source) {
	if wantsPage(r) {
		s.servePage(w, r, source)
		return
	}
	s.http.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sourceKey{}, source)))
}

// local are the methods of the server on whose port it is. The schemas of methods do not depend on
// the caller.
type local struct {
	mu      sync.Mutex // guards the fields below
	of      *anser.Server
	version uint64
	methods map[string]*Method // nil for one that cannot be a tool
}

// method returns a method of the server. It is the same until the methods of the server change.
func (l *local) method(c *protocols.Caller, t *anser.MethodType) *Method {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := c.Server().MethodsVersion(); l.methods == nil || l.of != c.Server() || l.version != v {
		l.of, l.version, l.methods = c.Server(), v, make(map[string]*Method)
	}
	m, known := l.methods[t.Name]
	if known {
		return m
	}
	if schema := c.Schema(t); schema != nil {
		m = &Method{Contract: schema, Idempotent: t.Idempotent, ReadOnly: c.Safe(t)}
		var behind bool
		if m.Service, m.Name, behind = strings.Cut(t.Name, "/"); !behind {
			m.Service, m.Name = "", t.Name
		}
	}
	l.methods[t.Name] = m
	return m
}

// onPort is the source of the client of a request.
type onPort struct {
	caller *protocols.Caller
	local  *local
	client context.Context // of the request: it ends when the client goes away
}

// Methods implements [Source]. A gateway has each method with the service in front, and also
// without it, which depends on the other services: that is left out.
func (p *onPort) Methods(context.Context) ([]*Method, error) {
	types, err := p.caller.Methods()
	if err != nil {
		return nil, err
	}
	var list []*Method
	for i := range types {
		if m := p.local.method(p.caller, &types[i]); m != nil {
			list = append(list, m)
		}
	}
	behind := make(map[string]bool)
	for _, m := range list {
		if m.Service != "" {
			behind[m.Name] = true
		}
	}
	return slices.DeleteFunc(list, func(m *Method) bool { return m.Service == "" && behind[m.Name] }), nil
}

// Count implements [Counter].
func (p *onPort) Count() error { return p.caller.Count() }

// Call implements [Source].
func (p *onPort) Call(ctx context.Context, m *Method, message json.RawMessage, each func(json.RawMessage) error) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.client, cancel)()
	if each == nil {
		return p.caller.Call(ctx, m.FullName(), message)
	}
	return nil, p.caller.Stream(ctx, m.FullName(), message, func(data []byte) error { return each(data) })
}
