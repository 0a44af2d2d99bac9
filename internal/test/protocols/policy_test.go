package protocols_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/protocols"
)

// policies are tried with a client of each protocol, in a synctest bubble, so that times are exact.
var policies = map[string]func(*testing.T, *stay){
	"tokens and rules":             tokensAndRules,
	"rights that are withdrawn":    withdrawn,
	"certificates":                 certificates,
	"expiry of an identity":        expiry,
	"revocation of an identity":    revocation,
	"change of the policy":         changeOfPolicy,
	"limit of a caller":            limitOfCaller,
	"priority":                     priority,
	"access log":                   accessLog,
	"drain":                        drain,
	"identities of one connection": identities,
}

// cannot says what a protocol cannot carry. Calls have the priority Normal there, and a connection
// one identity.
var cannot = map[string][]string{
	"priority": {
		"gRPC", "gRPC-Web", "gRPC-Web, HTTP/2", "Connect", "Connect, HTTP/2", "JSON and lines", "JSON and events", "JSON and events, HTTP/2", "WebSocket",
		"WebSocket, token of a page", "JSON-RPC over HTTP", "JSON-RPC batch over HTTP", "JSON-RPC 1.0 over TCP", "JSON-RPC batch over TCP", "net/rpc",
	},
	"identities of one connection": {"Anser", "JSON-RPC 1.0 over TCP", "JSON-RPC batch over TCP", "net/rpc"},
	"streams":                      {"JSON-RPC over HTTP", "JSON-RPC batch over HTTP", "JSON-RPC 1.0 over TCP", "JSON-RPC batch over TCP", "net/rpc"},
	"unary calls":                  {"WebSocket", "WebSocket, token of a page"},
}

// Authentication, policies, limits, the log and the drain are the same over every protocol.
func TestPolicies(t *testing.T) {
	for name, visit := range visitors {
		lacks := make(map[string]bool)
		for what, names := range cannot {
			for _, n := range names {
				lacks[what] = lacks[what] || n == name
			}
		}
		t.Run(name, func(t *testing.T) {
			for what, run := range policies {
				t.Run(what, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						st := &stay{visit: visit, lacks: lacks[what], tokens: new(auth.Tokens), began: make(chan string, 10), ended: make(chan string, 10), leave: make(chan struct{})}
						run(t, st)
					})
				})
			}
		})
	}
}

// stay is a server in a bubble, and its clients.
type stay struct {
	*anser.Server
	visit   func(*testing.T, *door) *visitor
	lacks   bool // the protocol cannot carry what is tried
	network ansertest.Network
	dials   atomic.Int64

	tokens   *auth.Tokens
	policy   *auth.Policy
	ann, bob string // their tokens

	began, ended chan string   // names of methods that wait
	leave        chan struct{} // closed to let them return
}

const home = "127.0.0.1:1"

var rules = auth.Rules{Allow: []auth.Rule{
	{Methods: []string{"test.Doors.Open", "test.Doors.OpenStream"}, Subjects: []string{"*"}},
	{Methods: []string{"test.Doors.*"}, Subjects: []string{"ann"}},
}}

// begin starts the server, with tokens and rules unless the options say otherwise.
func (st *stay) begin(t *testing.T, opts ...anser.ServerOption) {
	t.Helper()
	st.ann, st.bob = auth.NewToken(), auth.NewToken()
	var err error
	if st.tokens, err = auth.NewTokens(st.grants()...); err != nil {
		t.Fatal(err)
	}
	if st.policy, err = auth.NewPolicy(rules); err != nil {
		t.Fatal(err)
	}
	st.beginWith(t, append(opts, anser.Authenticate(st.tokens), anser.Authorize(st.policy))...)
}

func (st *stay) grants() []auth.Grant {
	return []auth.Grant{{Subject: "ann", SHA256: auth.Digest(st.ann)}, {Subject: "bob", SHA256: auth.Digest(st.bob)}}
}

func (st *stay) beginWith(t *testing.T, opts ...anser.ServerOption) {
	t.Helper()
	st.Server = anser.NewServer(append(opts, silent, anser.NoSignals(), protocols.All())...)
	type text = wrapperspb.StringValue
	for _, name := range []string{"Open", "Locked"} {
		anser.Handle(st.Server, "test.Doors."+name, func(ctx context.Context, _ *text) (*text, error) { return wrapperspb.String(subject(ctx)), nil }, anser.Alias("test.Doors.Old"+name))
		anser.ServerStreamMethod[text, text]("test.Doors."+name+"Stream").Handle(st.Server, func(ctx context.Context, _ *text, out anser.Sender[text]) error {
			return out.Send(wrapperspb.String(subject(ctx)))
		})
	}
	wait := func(ctx context.Context, name string) error {
		st.began <- name
		defer func() { st.ended <- name }()
		select {
		case <-st.leave:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	anser.Handle(st.Server, "test.Doors.Wait", func(ctx context.Context, _ *text) (*text, error) {
		return wrapperspb.String(subject(ctx)), wait(ctx, "Wait")
	})
	anser.ServerStreamMethod[text, text]("test.Doors.WaitStream").Handle(st.Server, func(ctx context.Context, _ *text, out anser.Sender[text]) error {
		if err := out.Send(wrapperspb.String(subject(ctx))); err != nil {
			return err
		}
		return wait(ctx, "WaitStream")
	})
	served := make(chan error, 1)
	l := st.network.Listen(home)
	go func() { served <- st.Serve(l) }()
	t.Cleanup(func() {
		st.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
}

func subject(ctx context.Context) string {
	if id := anser.IdentityFrom(ctx); id != nil {
		return id.Subject
	}
	return "nobody"
}

// enter makes a client with a token.
func (st *stay) enter(t *testing.T, token string) *visitor { return st.enterBy(t, &door{token: token}) }

func (st *stay) enterBy(t *testing.T, d *door) *visitor {
	t.Helper()
	d.address, d.dial = home, func(ctx context.Context, network, address string) (net.Conn, error) {
		st.dials.Add(1)
		return st.network.Dial(ctx, network, address)
	}
	v := st.visit(t, d)
	t.Cleanup(v.end)
	return v
}

// result is what a caller gets.
type result struct {
	how, subject string
	code         anser.Code
}

// try calls a method and its stream, as far as the protocol has both.
func (v *visitor) try(t *testing.T, method string) (list []result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if v.call != nil {
		subject, code := v.call(ctx, method)
		list = append(list, result{"a call", subject, code})
	}
	if v.watch != nil {
		r := result{how: "a stream"}
		r.code = v.watch(ctx, method+"Stream", func(s string) { r.subject = s })
		list = append(list, r)
	}
	return list
}

// want is try with the result that each must have.
func (v *visitor) want(t *testing.T, method, subject string, code anser.Code) {
	t.Helper()
	for _, r := range v.try(t, method) {
		if r.subject != subject || r.code != code {
			t.Errorf("%s of %s gets %q, %v, want %q, %v", r.how, method, r.subject, r.code, subject, code)
		}
	}
}

// stays opens a call and a stream that wait, and returns how each of them ends, and when.
func (st *stay) stays(t *testing.T, v *visitor) <-chan result {
	t.Helper()
	ends := make(chan result, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	n := 0
	if v.call != nil {
		n++
		go func() {
			subject, code := v.call(ctx, "Wait")
			ends <- result{"a call", subject, code}
		}()
		<-st.began
	}
	if v.watch != nil {
		n++
		go func() {
			r := result{how: "a stream"}
			r.code = v.watch(ctx, "WaitStream", func(s string) { r.subject = s })
			ends <- r
		}()
		<-st.began
	}
	out := make(chan result)
	go func() {
		for range n {
			out <- <-ends
		}
		close(out)
	}()
	return out
}

// mustEnd checks that what is open ends with a code and its handlers end, within a time.
func (st *stay) mustEnd(t *testing.T, ends <-chan result, code anser.Code, within time.Duration) {
	t.Helper()
	began := time.Now()
	for r := range ends {
		if r.code != code {
			t.Errorf("%s ends with %v, want %v", r.how, r.code, code)
		}
		<-st.ended
	}
	if after := time.Since(began); after > within {
		t.Errorf("they end after %v, want %v at most", after, within)
	}
}
