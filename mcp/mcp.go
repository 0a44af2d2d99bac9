// Package mcp offers methods as tools over the Model Context Protocol, so that agents call them. A
// server serves it on its port, with the identity, the policies and the limits of all its callers:
//
//	mux.Handle("/mcp", mcp.New(mcp.Options{Allow: []string{"orders.v1.Orders.Get*"}}))
//	s := anser.NewServer(protocols.All(protocols.Handler(mux)))
//
// No method is a tool unless a pattern allows it. docs/agents.md is the guide.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser/internal/namepattern"
)

// Options say which methods are tools, and how. The zero value offers none.
type Options struct {
	// Allow are patterns for the names of the methods that are tools, such as
	// "orders.v1.Orders.Get*": * takes the place of any characters. A pattern that begins with !
	// takes methods away. A method that no pattern allows is neither shown nor called.
	Allow []string
	// Compact offers three tools, to search, describe and call methods, in place of one for each.
	Compact bool
	// Name and Version are those of the server, for its clients. Without them they are "anser" and
	// "0".
	Name, Version string
	// Instructions tell agents what the services are for.
	Instructions string
	// Timeout bounds each call; 0 means 1 minute.
	Timeout time.Duration
	// MaxResult is the size of the results of a call in bytes; 0 means 1 MiB. The messages of a
	// stream end with it.
	MaxResult int
	// MaxArguments is the size of a request in bytes; 0 means 1 MiB.
	MaxArguments int
	// MaxMessages is the number of messages of a stream that are collected; 0 means 1000.
	MaxMessages int
	// Resources offers what can be read without a call: the services, and the counts of this
	// server of tools.
	Resources bool
	// Logger gets methods that cannot be tools; nil means slog.Default().
	Logger *slog.Logger
}

// Server offers the methods of a [Source] as tools. Its methods are safe for concurrent use.
type Server struct {
	o        Options
	patterns []string
	counts   counts
	http     *sdk.StreamableHTTPHandler // see ServeHTTP
	local    local                      // the methods of the server on whose port it is
}

// New returns a server of tools. Serve and ServeHTTP use it.
func New(o Options) *Server {
	o.Name, o.Version = cmp.Or(o.Name, "anser"), cmp.Or(o.Version, "0")
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.MaxResult, o.MaxArguments, o.MaxMessages = cmp.Or(o.MaxResult, 1<<20), cmp.Or(o.MaxArguments, 1<<20), cmp.Or(o.MaxMessages, 1000)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	s := &Server{o: o, patterns: o.Allow}
	s.http = newHTTP(s)
	return s
}

// counts are the counters of Stats.
type counts struct{ lists, calls, failed, unknown, invalid atomic.Int64 }

// Stats are counts since the server was made.
type Stats struct {
	Lists   int64 `json:"lists"`   // times that the tools were listed
	Calls   int64 `json:"calls"`   // calls that went on to methods
	Failed  int64 `json:"failed"`  // of them, calls that ended with an error
	Unknown int64 `json:"unknown"` // calls of tools that do not exist, or not for this caller
	Invalid int64 `json:"invalid"` // calls whose arguments did not fit the schema; nothing was forwarded
}

// Stats returns the counts.
func (s *Server) Stats() Stats {
	c := &s.counts
	return Stats{c.lists.Load(), c.calls.Load(), c.failed.Load(), c.unknown.Load(), c.invalid.Load()}
}

// Serve offers the methods of the source to one client, such as over the standard input and output,
// until the client ends or ctx does. Each message is a line of JSON.
func (s *Server) Serve(ctx context.Context, source Source, in io.ReadCloser, out io.WriteCloser) error {
	err := s.server(source).Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: s.o.MaxArguments})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil //nits:ignore nilerr this is how a client or ctx ends it
	}
	return err
}

// server returns a server of the SDK for one caller. Tools are looked up when they are listed or
// called: methods come and go, and so do rights.
func (s *Server) server(source Source) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: s.o.Name, Version: s.o.Version}, &sdk.ServerOptions{
		Instructions: s.o.Instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: s.resourceCapability()},
		Logger:       slog.New(slog.DiscardHandler),
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	})
	at := &session{server: s, source: source}
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if !s.offers(method) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%q is not offered", method)}
			}
			switch q := r.(type) {
			case *sdk.ListToolsRequest:
				return at.list(ctx, q)
			case *sdk.CallToolRequest:
				tool, err := at.find(ctx, q.Params.Name)
				if err != nil {
					return nil, err
				}
				server.AddTool(&sdk.Tool{Name: q.Params.Name, InputSchema: anyObject}, tool)
			}
			return next(ctx, method, r)
		}
	})
	if s.o.Resources {
		at.addResources(server)
	}
	return server
}

// offers reports whether a method of the protocol belongs to what the server has declared. The SDK
// answers others with empty lists.
func (s *Server) offers(method string) bool {
	for _, prefix := range []string{"prompts/", "completion/", "logging/"} {
		if strings.HasPrefix(method, prefix) {
			return false
		}
	}
	return s.o.Resources || !strings.HasPrefix(method, "resources/")
}

// anyObject is a schema of the SDK's own table of tools, which checks no arguments and is not
// listed.
var anyObject = json.RawMessage(`{"type":"object"}`)

func (s *Server) resourceCapability() *sdk.ResourceCapabilities {
	if !s.o.Resources {
		return nil
	}
	return &sdk.ResourceCapabilities{}
}

// Allows reports whether a pattern allows the method with this name to be a tool.
func (s *Server) Allows(name string) bool { return namepattern.Allows(s.patterns, name) }

// CheckPattern returns what is wrong with a pattern of [Options].Allow, or nil.
func CheckPattern(p string) error { return namepattern.Check(p) }
