package protocols

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/connect"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/grpc"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/protocols/internal/host"
	"github.com/anser-rpc/anser/protocols/internal/jsonrpc"
	"github.com/anser-rpc/anser/protocols/internal/openapi"
	"github.com/anser-rpc/anser/protocols/internal/plain"
	"github.com/anser-rpc/anser/protocols/internal/standard"
	"github.com/anser-rpc/anser/wire"
)

// HTTP returns the protocols over HTTP/1.1 and HTTP/2, for [anser.Protocols]: gRPC, and what the
// options add. Without TLS, HTTP/2 needs prior knowledge, as gRPC clients have it.
func HTTP(opts ...Option) anser.Protocol {
	p := &httpProtocol{servers: make(map[*anser.Server]*site)}
	p.o.pings.PermitWithoutStream = true
	for _, o := range opts {
		if o == nil {
			p.o.errs = append(p.o.errs, errors.New("an option of protocols.HTTP is nil"))
			continue
		}
		o(&p.o)
	}
	return p
}

// Option configures [HTTP].
type Option func(*options)

type options struct {
	handler        http.Handler
	before         func(http.Handler) http.Handler
	origins, hosts []string
	allows         func(origin string) bool
	allowsHost     func(host string) bool
	info           Info
	noOpenAPI      bool
	ignoreUnknown  bool
	cache          exchange.Cacher
	pings          EnforcementPolicy
	errs           []error
}

// Handler serves requests that are not calls, such as a page or metrics. Without it they are
// answered with 404.
func Handler(h http.Handler) Option {
	return func(o *options) {
		if o.handler = h; h == nil {
			o.errs = append(o.errs, errors.New("protocols.Handler: the handler is nil: leave the option out"))
		}
	}
}

// IgnoreUnknown makes JSON over HTTP, WebSocket and JSON-RPC over HTTP ignore members of a message
// that its type does not have, for callers that are updated before the server. By default such a
// request is refused with InvalidArgument, and the error names the member that may have been
// meant. Connect and gRPC always ignore them, as their other implementations do.
func IgnoreUnknown() Option { return func(o *options) { o.ignoreUnknown = true } }

// Before puts a handler in front of all HTTP requests but gRPC calls, such as one that sends
// some of them to another server. It gets the handler behind it, and runs after the checks of
// origins and hosts. A call whose request it changes is the one of the changed request.
func Before(f func(next http.Handler) http.Handler) Option {
	return func(o *options) { o.before = f }
}

// RequestFrom returns the HTTP request of a call, for handlers of methods, or nil: gRPC calls
// over HTTP/2 have none. Its body belongs to the protocol.
func RequestFrom(ctx context.Context) *http.Request { return exchange.RequestFrom(ctx) }

// HostFrom returns the host that the caller of a call over HTTP or gRPC has asked for, with its
// port if it named one, or "".
func HostFrom(ctx context.Context) string {
	if r := exchange.RequestFrom(ctx); r != nil {
		return r.Host
	}
	return exchange.HostFrom(ctx)
}

const (
	maxHeader  = 80 << 10 // 64 KiB of metadata, and what every request has
	maxStreams = 10_000   // requests of a connection at once
	window     = 256 << 10
	connWindow = 1 << 20
)

// httpProtocol is the protocol with its state for each server.
type httpProtocol struct {
	o options

	mu      sync.Mutex // guards servers
	servers map[*anser.Server]*site
}

// site is what a server needs for all its connections.
type site struct {
	methods  *exchange.Directory
	browsers *browsers
	handler  http.Handler
}

func newSite(s *anser.Server, o *options) *site {
	standard.Add(s)
	at := &site{methods: exchange.NewDirectory(s)}
	at.methods.IgnoreUnknown = o.ignoreUnknown
	calls, posts, batches, rest := connect.New(at.methods), plain.New(at.methods), jsonrpc.New(at.methods), o.handler
	if rest == nil {
		rest = http.HandlerFunc(NotFound)
	}
	rest = withDirectory(at.methods, rest)
	calls.Cache, posts.Cache = o.cache, o.cache
	at.browsers = &browsers{origins: o.origins, hosts: o.hosts, also: o.allows, alsoHost: o.allowsHost}
	if !o.noOpenAPI {
		at.browsers.open = openapi.PagePath
	}
	described := openapi.New(at.methods, posts.Routes, o.info.document())
	var all http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case calls.Serves(r):
			calls.ServeHTTP(w, r)
		case posts.Serves(r):
			posts.ServeHTTP(w, r)
		case r.URL.EscapedPath() == jsonrpc.Path:
			batches.ServeHTTP(w, r)
		case posts.ServeRoute(w, r):
		case !o.noOpenAPI && described.Serves(r):
			described.ServeHTTP(w, r)
		default:
			rest.ServeHTTP(w, r)
		}
	})
	if o.before != nil {
		all = o.before(all)
	}
	at.handler = at.browsers.handler(all)
	return at
}

// CheckServer finds mistakes in the options, and in the annotations of methods; see
// [anser.ProtocolChecker].
func (p *httpProtocol) CheckServer(s *anser.Server) error {
	methods := exchange.NewDirectory(s)
	return errors.Join(append(p.o.errs, p.o.info.check(), checkCache(p.o.cache, methods), plain.NewRoutes(methods).Check())...)
}

func (p *httpProtocol) Name() string { return "HTTP" }

func (p *httpProtocol) NextProtos() []string { return []string{"h2", "http/1.1"} }

// beginnings are those of requests whose target is not a path: of HTTP/1.1, and the HTTP/2 preface.
var beginnings = [...]string{"OPTIONS *", "CONNECT ", h2.Preface[:16]}

// connectRPC is how net/rpc clients begin in DialHTTP, which is left to package netrpc.
const connectRPC = "CONNECT /_goRPC_ HTTP/1.0\n\n"

// maxMethod is the length of an HTTP method.
const maxMethod = 20

// schemes begin the targets of requests to a proxy, which servers must serve too (RFC 9112, section
// 3.2.2).
var schemes = [...]string{"http://", "https://"}

// Begins takes a method in capital letters, of which google.api.http can have others than the usual
// ones, with a path or an absolute address behind it.
func (p *httpProtocol) Begins(begin []byte) (is, may bool) {
	text := string(begin)
	if n := min(len(text), len(connectRPC)); text[:n] == connectRPC[:n] {
		return false, n < len(connectRPC)
	}
	for _, b := range beginnings {
		if strings.HasPrefix(text, b) {
			return true, true
		}
		may = may || strings.HasPrefix(b, text)
	}
	method, target, complete := strings.Cut(text, " ")
	if method == "" || len(method) > maxMethod || strings.ContainsFunc(method, notOfMethod) {
		return false, may
	}
	if !complete || target == "" {
		return false, true
	}
	for _, scheme := range schemes {
		n := min(len(target), len(scheme))
		if strings.EqualFold(target[:n], scheme[:n]) {
			is = is || n == len(scheme)
			may = true
		}
	}
	return is || target[0] == '/', may || target[0] == '/'
}

func notOfMethod(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' && r != '_' }

// Farewell answers a request of HTTP/1.1 that is on its way when its connection is closed because
// nothing has come; see [anser.ProtocolFarewell]. Clients keep connections for requests to come,
// some of which have had none yet, and drop the status 408 if there is no request.
func (p *httpProtocol) Farewell() []byte { return farewellAnswer }

var farewellAnswer = exchange.Final(http.StatusRequestTimeout,
	anser.Refuse(anser.Unavailable, "the connection was closed because no request had come: send it again"))

func (p *httpProtocol) site(s *anser.Server) *site {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.servers[s]
	if at == nil {
		at = newSite(s, &p.o)
		p.servers[s] = at
	}
	return at
}

func (p *httpProtocol) Serve(s *anser.Server, in anser.Incoming) error {
	if strings.HasPrefix(string(in.Begin), h2.Preface[:4]) {
		return p.serveHTTP2(s, in)
	}
	return p.serveHTTP1(s, in)
}

// errPanicked ends the streams of a connection that a panic has ended; otherwise they have ended.
var errPanicked = errors.New("a panic has ended the connection")

// serveHTTP2 serves an HTTP/2 connection.
func (p *httpProtocol) serveHTTP2(s *anser.Server, in anser.Incoming) (err error) {
	at := p.site(s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var calls *grpc.Conn
	var h *host.Conn
	web := &h2.Site{Handler: at.handler, TLS: in.Peer.TLS}
	config := &h2.Config{
		MaxStreams: maxStreams, MaxHeader: maxHeader, Window: window, ConnWindow: connWindow,
		Request: func(st *h2.Stream, r *h2.Request, end bool) h2.Receiver {
			if grpc.Is(r.ContentType) && r.Origin == "" { // no page sends it without one
				return calls.Request(st, r, end)
			}
			return web.Serve(st, r, end)
		},
		Hold:    func(n int) bool { return h.Hold(n) },
		Release: func(n int) { h.Release(n) },
		Drained: func() { h.Drained() },
	}
	p.o.setTimes(config, s.ConnTimes())
	conn := h2.New(in.Conn, in.Begin, config)
	h, err = host.Open(s, "HTTP/2", in.Peer, conn.GoAway, func(why error) {
		switch {
		case why == nil:
			go conn.Finish()
		case errors.Is(why, anser.ErrServerClosed):
			go conn.Close(why)
		default:
			go conn.Dismiss(why)
		}
	})
	if err != nil {
		return err
	}
	web.Context = host.NewContext(ctx, h)
	calls = grpc.NewConn(h, at.methods)
	defer func() { // also if it panics
		conn.Close(errPanicked)
		h.End(err)
	}()
	return broken(conn.Serve())
}

// broken returns a fault of a client in the form in which the server counts it.
func broken(err error) error {
	if errors.Is(err, h2.ErrSilent) {
		return wire.Errorf(wire.Timeout, "%v", err)
	}
	fault, ok := errors.AsType[*h2.ConnError](err)
	if !ok {
		return err
	}
	reason := wire.BadFrame
	switch fault.Code {
	case h2.EnhanceYourCalm:
		reason = wire.Flood
	case h2.FlowControlError:
		reason = wire.FlowControl
	case h2.FrameSizeError:
		reason = wire.FrameTooLarge
	}
	return wire.Errorf(reason, "%v", fault)
}

// farewell is how long the answers to a client that must not go on may take.
const farewell = time.Second

// serveHTTP1 serves an HTTP/1.1 connection.
func (p *httpProtocol) serveHTTP1(s *anser.Server, in anser.Incoming) error {
	at := p.site(s)
	l := newOneConn(in)
	server := &http.Server{
		Handler: l.conn.handler(l.conn.head.handler(at.handler)), MaxHeaderBytes: maxHeader, ReadHeaderTimeout: frameTime(s.ConnTimes()),
		ErrorLog:  discard,
		ConnState: func(_ net.Conn, state http.ConnState) { l.conn.changed(state) },
	}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	cut := func() {
		server.Close()
		l.conn.Close()
	}
	h, err := host.Open(s, "HTTP/1.1", in.Peer, l.conn.drain, func(why error) {
		if errors.Is(why, anser.ErrServerClosed) {
			go cut()
			return
		}
		go server.SetKeepAlivesEnabled(false) // the answer of the last call may not be written yet
		if why != nil {
			time.AfterFunc(farewell, cut)
		}
	})
	if err != nil {
		if errors.Is(err, anser.ErrServerClosed) {
			return refuseHTTP1(l, errEnding)
		}
		if fault, ok := errors.AsType[*anser.Error](err); ok { // a limit, which another server may not be at
			return refuseHTTP1(l, anser.Refuse(anser.Unavailable, "%s", fault.Message))
		}
		return err
	}
	server.BaseContext = func(net.Listener) context.Context { return host.NewContext(context.Background(), h) }
	err = server.Serve(l)
	h.End(nil)
	if errors.Is(err, io.EOF) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

var errEnding = anser.Refuse(anser.Unavailable, "the server shuts down: call another one")

// refuseHTTP1 answers the request of a client whose connection is not accepted, which cannot know
// otherwise that it did not run.
func refuseHTTP1(l *oneConn, why *anser.Error) error {
	server := &http.Server{MaxHeaderBytes: maxHeader, ReadTimeout: farewell, WriteTimeout: farewell, ErrorLog: discard}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteError(w, why)
	})
	server.SetKeepAlivesEnabled(false)
	if err := server.Serve(l); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
