package netrpc_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// policy allows one subject until it is withdrawn.
type policy struct {
	subject   string
	withdrawn atomic.Bool
}

func (p *policy) Allows(id *anser.Identity, method string) bool {
	return id.Subject == p.subject && method != "Arith.Panic" && !p.withdrawn.Load()
}

func (p *policy) Version() uint64 {
	if p.withdrawn.Load() {
		return 2
	}
	return 1
}

// shared returns a net/rpc server whose calls are run by an Anser server.
func shared(t *testing.T, services []any, opts ...anser.ServerOption) *netrpc.Server {
	t.Helper()
	s := quiet()
	s.Anser = anser.NewServer(append([]anser.ServerOption{anser.Logger(s.Logger)}, opts...)...)
	t.Cleanup(func() { s.Anser.Close() })
	for _, service := range services {
		if err := s.Register(service); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// The options of Anser's server apply to net/rpc calls: none of the checks is bypassed.
func TestCallsPassTheChecksOfAnser(t *testing.T) {
	keys, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest("ann's")}, auth.Grant{Subject: "bob", SHA256: auth.Digest("bob's")})
	if err != nil {
		t.Fatal(err)
	}
	login := func(token string) func(*netrpc.Client) error {
		return func(c *netrpc.Client) error {
			var ok bool
			return c.Call(netrpc.LoginMethod, token, &ok)
		}
	}
	refuse := errors.New("not here")
	for name, c := range map[string]struct {
		options []anser.ServerOption
		before  func(*netrpc.Client) error
		method  string
		in      any
		want    string // in the error; "" for none
	}{
		"nothing":      {in: Args{1, 2}},
		"no such":      {method: "Arith.Ad", in: Args{1, 2}, want: `did you mean "Arith.Add"`},
		"interceptors": {options: []anser.ServerOption{anser.Intercept(refusing(refuse))}, in: Args{1, 2}, want: "not here"},
		"observers": {options: []anser.ServerOption{anser.Observe(anser.Observer{Request: func(context.Context, anser.MessageInfo) error {
			return refuse
		}})}, in: Args{1, 2}, want: "not here"},
		"addresses":    {options: []anser.ServerOption{anser.DenyFrom(netip.MustParsePrefix("127.0.0.0/8"))}, in: Args{1, 2}, want: "EOF"},
		"MaxMessage":   {options: []anser.ServerOption{anser.MaxMessage(1000)}, method: "Text.Len", in: strings.Repeat("x", 1001), want: "over the server's limit of 1000"},
		"no login":     {options: []anser.ServerOption{anser.Authenticate(keys)}, in: Args{1, 2}, want: "unauthenticated"},
		"wrong login":  {options: []anser.ServerOption{anser.Authenticate(keys)}, before: login("eve's"), in: Args{1, 2}, want: "unauthenticated"},
		"login":        {options: []anser.ServerOption{anser.Authenticate(keys)}, before: login("ann's"), in: Args{1, 2}},
		"policy":       {options: []anser.ServerOption{anser.Authenticate(keys), anser.Authorize(&policy{subject: "ann"})}, before: login("bob's"), in: Args{1, 2}, want: "permission denied"},
		"method":       {options: []anser.ServerOption{anser.Authenticate(keys), anser.Authorize(&policy{subject: "ann"})}, before: login("ann's"), method: "Arith.Panic", in: Args{1, 2}, want: "permission denied"},
		"unknown, too": {options: []anser.ServerOption{anser.Authenticate(keys), anser.Authorize(&policy{subject: "ann"})}, before: login("bob's"), method: "Arith.No", in: Args{1, 2}, want: "permission denied"},
	} {
		for codec, wire := range map[string]struct {
			serve func(*netrpc.Server) string
			dial  func(network, address string) (*netrpc.Client, error)
		}{
			"gob":  {func(s *netrpc.Server) string { return serve(t, s, nil) }, netrpc.Dial},
			"JSON": {func(s *netrpc.Server) string { return serve(t, s, jsonrpc.NewServerCodec) }, jsonrpc.Dial2},
		} {
			t.Run(name+"/"+codec, func(t *testing.T) {
				s := shared(t, []any{new(Arith), Text{}}, c.options...)
				conn, err := wire.dial("tcp", wire.serve(s))
				client(t, conn, err)
				if c.before != nil {
					if err := c.before(conn); err != nil && c.want == "" {
						t.Fatal(err)
					} else if err != nil && strings.Contains(err.Error(), c.want) {
						return
					}
				}
				method := c.method
				if method == "" {
					method = "Arith.Add"
				}
				err = conn.Call(method, c.in, new(Reply))
				if c.want == "" {
					if err != nil {
						t.Error(err)
					}
				} else if name == "addresses" && (errors.Is(err, netrpc.ErrShutdown) || err != nil && strings.Contains(err.Error(), "reset by peer")) {
					return // it was closed before the call, or while the call was written
				} else if name == "MaxMessage" && codec == "JSON" && errors.Is(err, io.ErrUnexpectedEOF) {
					return // it cannot be skipped
				} else if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		}
	}
}

func refusing(err error) anser.Interceptor {
	return func(anser.Func) anser.Func {
		return func(context.Context, *anser.Invocation) error { return err }
	}
}

// Text is a service.
type Text struct{}

// Len returns the length of a text.
func (Text) Len(in string, out *Reply) error {
	out.C = len(in)
	return nil
}

// A policy change ends open calls, as over Anser's own protocol.
func TestOpenCallsAreCutOff(t *testing.T) {
	keys, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest("ann's")})
	if err != nil {
		t.Fatal(err)
	}
	p := &policy{subject: "ann"}
	w := newWaits()
	s := shared(t, []any{w}, anser.Authenticate(keys), anser.Authorize(p))
	c := dial(t, serve(t, s, nil))
	var ok bool
	if err := c.Call(netrpc.LoginMethod, "ann's", &ok); err != nil {
		t.Fatal(err)
	}
	call := c.Go("Waits.Here", &Args{}, new(Reply), nil)
	ctx := <-w.entered
	if id, _ := netrpc.IdentityFrom(ctx).(*anser.Identity); id == nil || id.Subject != "ann" {
		t.Errorf("the identity is %v", netrpc.IdentityFrom(ctx))
	}
	p.withdrawn.Store(true)
	if err := (<-call.Done).Error; err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the open call gets %v", err)
	}
	<-ctx.Done()
	if err := c.Call("Waits.Here", &Args{}, new(Reply)); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a further call gets %v", err)
	}
}

// The limits of Anser's server count calls of both protocols together, and a shutdown drains both.
func TestLimitsCountAllProtocols(t *testing.T) {
	w := newWaits()
	s := shared(t, []any{w}, anser.MaxInFlight(1))
	l := listen(t)
	go s.Anser.Serve(l)
	c := dial(t, serve(t, s, nil))
	other, err := anser.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ended, end := context.WithCancel(t.Context())
	first := anser.Go[Reply](ended, other, "Waits.Here", &Args{})
	ctx := <-w.entered
	for s.Anser.Stats().InFlight == 0 { // it waits, and is moved off the reader goroutine
		time.Sleep(time.Millisecond)
	}
	if err := c.Call("Waits.Here", &Args{}, new(Reply)); err == nil || !strings.Contains(err.Error(), "limit of 1 calls") {
		t.Errorf("a call beyond the limit gets %v", err)
	}
	if st := s.Anser.Stats(); st.InFlight != 1 || st.Conns != 2 || st.LimitsHit["MaxInFlight"] != 1 {
		t.Errorf("%d calls, %d connections, %v", st.InFlight, st.Conns, st.LimitsHit)
	}
	end()
	<-ctx.Done()
	first.Wait()
	for s.Anser.Stats().InFlight > 0 {
		time.Sleep(time.Millisecond)
	}
	call := c.Go("Waits.Here", &Args{}, new(Reply), nil)
	<-w.entered
	bound, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shut := make(chan error, 1)
	go func() { shut <- s.Anser.Shutdown(bound) }()
	for {
		err := c.Call("Waits.Here", &Args{}, new(Reply))
		if err != nil && strings.Contains(err.Error(), "shutting down") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(w.release)
	if err := (<-call.Done).Error; err != nil {
		t.Errorf("the open call gets %v", err)
	}
	if err := <-shut; err != nil {
		t.Error(err)
	}
}

// net/rpc clients can call methods registered at Anser's server.
func TestMethodsOfAnser(t *testing.T) {
	s := shared(t, nil)
	anser.Handle(s.Anser, "Arith.Mul", func(_ context.Context, in *Args) (*Reply, error) { return &Reply{in.A * in.B}, nil })
	c := dial(t, serve(t, s, nil))
	var reply Reply
	if err := c.Call("Arith.Mul", &Args{6, 7}, &reply); err != nil || reply.C != 42 {
		t.Errorf("%v, %v", reply, err)
	}
}

// Fields decided by Anser's server must not be set together with it.
func TestFieldsBesideAnser(t *testing.T) {
	keys, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest("ann's")})
	if err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]*netrpc.Server{
		"anser.MaxMessage":     {MaxMessage: 1},
		"anser.MaxInFlight":    {MaxInFlight: 1},
		"anser.MaxConns":       {MaxConns: 1},
		"anser.Intercept":      {Interceptors: []anser.Interceptor{refusing(nil)}},
		"anser.InsecurePublic": {InsecurePublic: true},
	} {
		s.Anser = anser.NewServer(anser.Authenticate(keys))
		if err := s.Serve(listen(t), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What is registered before Server.Anser is set is served all the same.
func TestAnserSetLater(t *testing.T) {
	s := quiet(new(Arith))
	s.Anser = anser.NewServer()
	t.Cleanup(func() { s.Anser.Close() })
	mustAdd(t, dial(t, serve(t, s, nil)))
}

// The page of methods is not shown to everybody if clients must authenticate themselves.
func TestDebugPageOfAServerWithAuthentication(t *testing.T) {
	keys, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest("ann's")})
	if err != nil {
		t.Fatal(err)
	}
	for want, opts := range map[int][]anser.ServerOption{http.StatusForbidden: {anser.Authenticate(keys)}, http.StatusOK: nil} {
		s, mux := shared(t, []any{new(Arith)}, opts...), http.NewServeMux()
		s.HandleHTTPMux(mux, "/rpc", "/debug")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug", nil))
		if w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
	}
}

// An observer may panic, from which net/http recovers: the connection is closed and not counted.
func TestObserverPanicsUnderHTTP(t *testing.T) {
	s := shared(t, []any{new(Arith)}, anser.Observe(anser.Observer{ConnOpened: func(anser.ConnInfo) error { panic("opened") }}))
	web := httptest.NewUnstartedServer(s)
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.Start()
	defer web.Close()
	c, err := netrpc.DialHTTP("tcp", web.Listener.Addr().String())
	if err == nil {
		err = c.Call("Arith.Add", &Args{1, 2}, new(Reply))
		c.Close()
	}
	if err == nil {
		t.Error("a call runs on a connection that no observer has accepted")
	}
	if err := s.Anser.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := s.Anser.Stats().Conns; n != 0 {
		t.Errorf("%d connections are left", n)
	}
}
