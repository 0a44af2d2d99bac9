package anser_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// secret must appear in no log and no error.
const secret = "open-sesame-42"

// door accepts clients that present "secret:" and their subject, for the lifetime life.
type door struct {
	mu      sync.Mutex
	life    time.Duration // of identities; 0: no end
	revoked atomic.Bool
	asked   atomic.Int64
	groups  []string
}

func (d *door) Authenticate(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
	d.asked.Add(1)
	if l.Scheme != "test" {
		return nil, anser.ErrOtherScheme
	}
	word, subject, _ := strings.Cut(string(l.Data), ":")
	if word == "panic" {
		panic(secret)
	}
	if word != secret {
		return nil, errors.New("another word")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := &anser.Identity{Subject: subject, Groups: d.groups, Revoked: d.revoked.Load}
	if d.life != 0 {
		id.Expires = time.Now().Add(d.life)
	}
	return id, nil
}

// showing returns the option of a client that authenticates as subject.
func showing(subject string) anser.DialOption {
	return anser.Credentials(func(context.Context) (anser.Credential, error) {
		return anser.Credential{Scheme: "test", Data: []byte(secret + ":" + subject)}, nil
	})
}

// policy is an authorizer that allows the listed calls.
type policy struct {
	mu      sync.Mutex
	allowed map[string]bool // "subject method"
	version atomic.Uint64
	asked   atomic.Int64
	panics  atomic.Bool
}

func (p *policy) Version() uint64 { return p.version.Load() }

func (p *policy) Allows(id *anser.Identity, method string) bool {
	p.asked.Add(1)
	if p.panics.Load() {
		panic("policy")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allowed[id.Subject+" "+method]
}

func (p *policy) set(allowed ...string) {
	p.mu.Lock()
	p.allowed = make(map[string]bool)
	for _, a := range allowed {
		p.allowed[a] = true
	}
	p.mu.Unlock()
	p.version.Add(1)
}

// whoami answers with the subject of its caller.
func whoami(ctx context.Context, _ *[]byte) (*[]byte, error) {
	if id := anser.IdentityFrom(ctx); id != nil {
		return text(id.Subject), nil
	}
	return text("nobody"), nil
}

// A server knows the identity of its callers and rejects all other clients. All of them get the
// same message.
func TestAuthenticate(t *testing.T) {
	l := listen(t)
	s := serve(t, l, map[string]handler{"Who.AmI": whoami}, anser.Authenticate(new(door)))
	for _, subject := range []string{"ann", "bob"} {
		c := dial(t, l.Addr().String(), showing(subject))
		if out, err := call(context.Background(), c, "Who.AmI", ""); out != subject || err != nil {
			t.Errorf("%q, %v; want %q", out, err, subject)
		}
	}
	before := len(s.Stats().Unauthenticated)
	if before != 0 {
		t.Errorf("%+v", s.Stats().Unauthenticated)
	}
	for name, c := range map[string]struct {
		opts   []anser.DialOption
		reason string
		hint   string
	}{
		"nothing":      {nil, "nothing shown", "give the client anser.Credentials"},
		"other word":   {creds("test", "open-sesame-43:ann"), "not valid", "does not take the credential"},
		"shorter":      {creds("test", "x"), "not valid", "does not take the credential"},
		"other scheme": {creds("other", secret), "unknown scheme", "does not take the credential"},
		"panic":        {creds("test", "panic:x"), "not valid", "does not take the credential"},
		"no subject":   {creds("test", secret), "not valid", "does not take the credential"},
	} {
		t.Run(name, func(t *testing.T) {
			n := s.Stats().Unauthenticated[c.reason]
			client := dial(t, l.Addr().String(), append(c.opts, anser.Conns(1))...)
			_, err := call(context.Background(), client, "Who.AmI", "")
			e := wantFault(t, err, anser.Unauthenticated, anser.NotSent)
			if !strings.Contains(e.Message, "the other side closed the connection: unauthenticated (UNAUTHENTICATED)") || !strings.Contains(e.Message, c.hint) {
				t.Error(e.Message)
			}
			if got := s.Stats().Unauthenticated[c.reason]; got <= n {
				t.Errorf("%q was counted %d times, %d before: %+v", c.reason, got, n, s.Stats().Unauthenticated)
			}
		})
	}
	if n := s.Stats().Methods["Who.AmI"].Calls; n != 2 {
		t.Errorf("%d calls ran, want 2", n)
	}
}

func creds(scheme, data string) []anser.DialOption {
	return []anser.DialOption{anser.Credentials(func(context.Context) (anser.Credential, error) {
		return anser.Credential{Scheme: scheme, Data: []byte(data)}, nil
	})}
}

// A server without authentication ignores the credentials of clients.
func TestCredentialsNobodyAsksFor(t *testing.T) {
	l := listen(t)
	serve(t, l, map[string]handler{"Who.AmI": whoami})
	c := dial(t, l.Addr().String(), showing("ann"))
	if out, err := call(context.Background(), c, "Who.AmI", ""); out != "nobody" || err != nil {
		t.Error(out, err)
	}
}

// Clients with different credentials have separate connections; clients with the same ones share
// them.
func TestCredentialsKeepClientsApart(t *testing.T) {
	l := listen(t)
	s := serve(t, l, map[string]handler{"Who.AmI": whoami}, anser.Authenticate(new(door)))
	ann := showing("ann")
	for i, opt := range []anser.DialOption{ann, showing("bob"), ann} {
		c := dial(t, l.Addr().String(), opt, anser.Conns(1))
		if out, err := call(context.Background(), c, "Who.AmI", ""); err != nil || out != []string{"ann", "bob", "ann"}[i] {
			t.Fatal(out, err)
		}
	}
	if n := s.Stats().Conns; n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// A secret is not sent where others on the network can read it.
func TestCredentialsInTheClear(t *testing.T) {
	l := listen(t)
	a := transporttest.NewAuthority(t)
	s := serve(t, l, map[string]handler{"Who.AmI": whoami}, anser.Authenticate(new(door)))
	secured := listen(t)
	serve(t, secured, map[string]handler{"Who.AmI": whoami}, anser.Authenticate(new(door)), serverTLS(t, a, "example.org"))
	to := func(l net.Listener) anser.DialOption {
		return anser.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		})
	}
	c := dial(t, "example.org:1", showing("ann"), to(l)) // as through a proxy on this machine
	_, err := call(context.Background(), c, "Who.AmI", "")
	if e := wantFault(t, err, anser.Unauthenticated, anser.NotSent); !strings.Contains(e.Message, "give the client anser.TLS, or accept that others read it with anser.InsecureCredentials") {
		t.Error(e.Message)
	}
	if n := s.Stats().Unauthenticated; len(n) != 0 {
		t.Errorf("the server has seen something: %+v", n)
	}
	// TLS that ends elsewhere, perhaps at a proxy.
	c = dial(t, "example.org:1", showing("ann"), anser.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := tls.Dialer{Config: &tls.Config{RootCAs: a.Pool, ServerName: "example.org"}}
		return d.DialContext(ctx, "tcp", secured.Addr().String())
	}))
	_, err = call(context.Background(), c, "Who.AmI", "")
	wantFault(t, err, anser.Unauthenticated, anser.NotSent)
	for _, c := range []*anser.Client{
		dial(t, "example.org:1", showing("ann"), to(l), anser.InsecureCredentials()),
		dial(t, "example.org:1", showing("ann"), to(secured), anser.TLS(&tls.Config{RootCAs: a.Pool})),
	} {
		if out, err := call(context.Background(), c, "Who.AmI", ""); out != "ann" || err != nil {
			t.Error(out, err)
		}
	}
}

// A source that fails, panics or returns nonsense fails the connection, and the next attempt
// calls it again.
func TestCredentialSourceFails(t *testing.T) {
	l := listen(t)
	serve(t, l, map[string]handler{"Who.AmI": whoami}, anser.Authenticate(new(door)))
	for want, bad := range map[string]func() (anser.Credential, error){
		"no token today":                 func() (anser.Credential, error) { return anser.Credential{}, errors.New("no token today") },
		"the source panicked with a":     func() (anser.Credential, error) { panic(secret) },
		"want a scheme of 1 to 32 bytes": func() (anser.Credential, error) { return anser.Credential{Data: []byte(secret)}, nil },
		"0 bytes of data cannot be sent": func() (anser.Credential, error) { return anser.Credential{Scheme: "tls"}, nil },
		"16385 bytes of data": func() (anser.Credential, error) {
			return anser.Credential{Scheme: "test", Data: make([]byte, 16385)}, nil
		},
		"a credential that has expired on": func() (anser.Credential, error) {
			return anser.Credential{Scheme: "test", Expires: time.Now().Add(-time.Hour)}, nil
		},
	} {
		var healed atomic.Bool
		c := dial(t, l.Addr().String(), anser.Credentials(func(context.Context) (anser.Credential, error) {
			if healed.Load() {
				return anser.Credential{Scheme: "test", Data: []byte(secret + ":ann")}, nil
			}
			return bad()
		}))
		_, err := call(context.Background(), c, "Who.AmI", "", anser.WithFailMode(anser.Failfast))
		if e := wantFault(t, err, anser.Unavailable, anser.NotSent); !strings.Contains(e.Message, want) || strings.Contains(e.Message, secret) {
			t.Errorf("%s: want %q", e.Message, want)
		}
		healed.Store(true)
		if out, err := call(context.Background(), c, "Who.AmI", ""); out != "ann" || err != nil {
			t.Error(out, err)
		}
	}
}

func TestTrustMistakes(t *testing.T) {
	for want, opts := range map[string][]anser.ServerOption{
		"anser.Authorize needs anser.Authenticate": {anser.Authorize(new(policy))},
		"an authenticator is nil":                  {anser.Authenticate(nil)},
		"the authorizer is nil":                    {anser.Authorize(nil)},
		"anser.Authorize is given twice":           {anser.Authenticate(new(door)), anser.Authorize(new(policy)), anser.Authorize(new(policy))},
		"anser.AllowFrom without a prefix":         {anser.AllowFrom()},
		"anser.DenyFrom: a prefix is not valid":    {anser.DenyFrom(netip.Prefix{})},
	} {
		if err := anser.NewServer(opts...).Serve(listen(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	for want, opts := range map[string][]anser.DialOption{
		"the source is nil":                {anser.Credentials(nil)},
		"anser.Credentials is given twice": {showing("ann"), showing("ann")},
	} {
		if _, err := anser.Dial("127.0.0.1:1", opts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

// All methods that are not allowed are refused in the same way, whether they exist or not, and
// under whatever name.
func TestAuthorize(t *testing.T) {
	l, p := listen(t), new(policy)
	p.set("ann Who.AmI", "ann Anser.Methods", "bob Anser.Methods", "ann Gone.Away")
	s := anser.NewServer(silent, anser.Authenticate(new(door)), anser.Authorize(p))
	anser.Handle(s, "Who.AmI", whoami, anser.Alias("Open.Door"))
	anser.Handle(s, "Deep.Secret", whoami, anser.Alias("Who.Else"), anser.Idempotent())
	run(t, s, l)
	ann, bob := dial(t, l.Addr().String(), showing("ann")), dial(t, l.Addr().String(), showing("bob"))
	for _, method := range []string{"Who.AmI", "Open.Door"} {
		if out, err := call(context.Background(), ann, method, ""); out != "ann" || err != nil {
			t.Errorf("%s: %q, %v", method, out, err)
		}
	}
	for _, method := range []string{"Deep.Secret", "Who.Else", "No.Such", "Who.AmJ"} {
		_, err := call(context.Background(), ann, method, "")
		e := wantFault(t, err, anser.PermissionDenied, anser.Refused)
		if e.Message != "permission denied" || e.RetryAfter != 0 || e.Details != nil || len(e.Attempts) > 1 {
			t.Errorf("%s: %+v", method, e)
		}
	}
	_, err := call(context.Background(), ann, "Gone.Away", "") // allowed, but not served
	if e := wantFault(t, err, anser.Unimplemented, anser.Refused); e.Message != "the method is not served here" {
		t.Error(e.Message)
	}
	for c, want := range map[*anser.Client]int{ann: 1, bob: 0} {
		list, err := anser.Call[anser.MethodList](context.Background(), c, anser.MethodsName, new(anser.None))
		if err != nil || len(list.Methods) != want || list.Methods == nil {
			t.Errorf("%+v, %v: want %d methods", list, err, want)
		}
	}
	if st := s.Stats(); st.Denied != 4 || st.Methods["Deep.Secret"].Calls != 0 {
		t.Errorf("%d denied, %+v", st.Denied, st.Methods["Deep.Secret"])
	}
	// The policy decides once per connection and method.
	asked := p.asked.Load()
	for range 100 {
		call(context.Background(), ann, "Deep.Secret", "")
	}
	if n := p.asked.Load() - asked; n > 2 {
		t.Errorf("the policy was asked %d times for 100 calls", n)
	}
	p.panics.Store(true)
	p.version.Add(1)
	_, err = call(context.Background(), ann, "Who.AmI", "")
	wantFault(t, err, anser.PermissionDenied, anser.Refused)
	if s.Stats().Panics == 0 {
		t.Error("the panic is not counted")
	}
}

// Existing connections notice a change of the policy: their next calls, and their streams.
func TestPolicyChanges(t *testing.T) {
	l, p := listen(t), new(policy)
	p.set("ann Who.AmI", "ann Chat.Hold", "ann Chat.Other")
	s := anser.NewServer(silent, anser.Authenticate(new(door)), anser.Authorize(p))
	anser.Handle(s, "Who.AmI", whoami)
	hold := func(ctx context.Context, _ *anser.Stream[[]byte, []byte]) error {
		<-ctx.Done()
		return ctx.Err()
	}
	anser.HandleStream(s, "Chat.Hold", hold)
	anser.HandleStream(s, "Chat.Other", hold)
	run(t, s, l)
	c := dial(t, l.Addr().String(), showing("ann"), anser.Conns(1))
	if _, err := call(context.Background(), c, "Who.AmI", ""); err != nil {
		t.Fatal(err)
	}
	open := func(method string) *anser.Stream[[]byte, []byte] {
		st, err := anser.Open[[]byte, []byte](context.Background(), c, method)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	held, other := open("Chat.Hold"), open("Chat.Other")
	eventually(t, "both streams run", func() bool { return s.Stats().Streams == 2 })
	p.set("ann Chat.Other")
	_, err := call(context.Background(), c, "Who.AmI", "")
	wantFault(t, err, anser.PermissionDenied, anser.Refused)
	_, err = held.Recv()
	wantFault(t, err, anser.PermissionDenied, anser.OutcomeUnknown)
	eventually(t, "one stream is left", func() bool { return s.Stats().Streams == 1 })
	p.set("ann Who.AmI", "ann Chat.Other")
	if out, err := call(context.Background(), c, "Who.AmI", ""); out != "ann" || err != nil {
		t.Error(out, err)
	}
	if n := s.Stats().Accepted; n != 1 {
		t.Errorf("%d connections were made", n)
	}
	other.Close()
}

// A client sends its credential with the first bytes of a connection, so that it costs no round
// trip.
func TestCredentialInFirstWrite(t *testing.T) {
	l := listen(t)
	first := make(chan []byte, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		b := make([]byte, 4096)
		n, _ := io.ReadAtLeast(nc, b, wire.PrefaceSize+2*wire.HeaderSize+10)
		first <- b[:n]
	}()
	c := dial(t, l.Addr().String(), showing("ann"))
	call(context.Background(), c, "Who.AmI", "", anser.WithFailMode(anser.Failfast))
	settings := wire.DefaultSettings()
	settings.MaxStreams, settings.Features = 0, wire.FeatureAuth|wire.FeatureCRC|wire.FeatureParts
	want := append(wirepeer.Hello(settings), auth("ann")...)
	if got := <-first; !bytes.Equal(got, want) {
		t.Errorf("the first bytes are\n% X, want\n% X", got, want)
	}
}

// A certificate that TLS has verified is an identity if an authenticator accepts it; a credential
// takes precedence.
func TestCertificateAsIdentity(t *testing.T) {
	a := transporttest.NewAuthority(t)
	l := listen(t)
	byName := anser.AuthenticatorFunc(func(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
		if l.Scheme != anser.SchemeTLS {
			return nil, anser.ErrOtherScheme
		}
		return &anser.Identity{Subject: l.Peer.TLS.VerifiedChains[0][0].DNSNames[0]}, nil
	})
	server := &tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}, ClientCAs: a.Pool, ClientAuth: tls.VerifyClientCertIfGiven}
	serve(t, l, map[string]handler{"Who.AmI": whoami}, anser.TLS(server), anser.Authenticate(byName, new(door)))
	client := anser.TLS(&tls.Config{RootCAs: a.Pool, Certificates: []tls.Certificate{a.Issue(t, time.Hour, "gateway.example.org")}})
	for want, opts := range map[string][]anser.DialOption{
		"gateway.example.org": {client},
		"ann":                 {client, showing("ann")},
		"bob":                 {anser.TLS(&tls.Config{RootCAs: a.Pool}), showing("bob")},
	} {
		c := dial(t, l.Addr().String(), opts...)
		if out, err := call(context.Background(), c, "Who.AmI", ""); out != want || err != nil {
			t.Errorf("%q, %v: want %q", out, err, want)
		}
	}
	c := dial(t, l.Addr().String(), client, creds("test", "wrong")[0])
	_, err := call(context.Background(), c, "Who.AmI", "")
	wantFault(t, err, anser.Unauthenticated, anser.NotSent)
	c = dial(t, l.Addr().String(), client, creds("other", "x")[0])
	_, err = call(context.Background(), c, "Who.AmI", "")
	wantFault(t, err, anser.Unauthenticated, anser.NotSent)
}

// Idempotency keys and sessions belong to a subject.
func TestIdempotencyKeysOfSubjects(t *testing.T) {
	l := listen(t)
	s := serve(t, l, map[string]handler{"Who.AmI": whoami}, anser.Authenticate(new(door)), anser.Deduplicate())
	for _, subject := range []string{"ann", "bob"} {
		c := dial(t, l.Addr().String(), showing(subject))
		for range 2 {
			if out, err := call(context.Background(), c, "Who.AmI", "", anser.IdempotencyKey("one")); out != subject || err != nil {
				t.Errorf("%q, %v: want %q", out, err, subject)
			}
		}
	}
	if st := s.Stats(); st.Replayed != 2 || st.Methods["Who.AmI"].Calls != 2 {
		t.Errorf("%d replayed, %d ran", st.Replayed, st.Methods["Who.AmI"].Calls)
	}
}

// Neither logs nor errors nor printed values contain a secret.
func TestSecretsAreHidden(t *testing.T) {
	var mu sync.Mutex
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logged.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	cred := anser.Credential{Scheme: "test", Data: []byte(secret)}
	login := anser.AuthRequest{Scheme: "test", Data: []byte(secret)}
	var shown strings.Builder
	for _, v := range []any{cred, &cred, login, &login, []any{cred, login}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
		j, _ := json.Marshal(v)
		shown.Write(j)
		log.Info("value", "value", v)
	}
	l := listen(t)
	s := serve(t, l, map[string]handler{"Who.AmI": whoami}, anser.Logger(log), anser.Authenticate(new(door)))
	for _, data := range []string{secret, secret + ":ann", "panic:" + secret, "wrong:" + secret} {
		c := dial(t, l.Addr().String(), anser.Logger(log), creds("test", data)[0])
		_, err := call(context.Background(), c, "Who.AmI", "")
		fmt.Fprintf(&shown, "%v %+v\n", err, c.Status())
	}
	p := rawLogin(t, l.Addr().String(), "ann")
	p.Send(wire.AppendAuth(nil, "test", []byte("wrong:"+secret)))
	p.NextOf(wire.TypeDrain)
	p.Send(append(wire.AppendHeader(nil, wire.Header{Type: wire.TypeAuth, Length: uint32(1 + len(secret))}), append([]byte{99}, secret...)...))
	_, text, _ := p.ReadClose()
	shown.WriteString(text)
	s.Close()
	mu.Lock()
	defer mu.Unlock()
	all := shown.String() + logged.String()
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprint([]byte(secret)), "b3Blbi1zZXNhbWUtNDI"} {
		if i := strings.Index(all, form); i >= 0 {
			t.Errorf("the secret is shown: …%s", all[max(0, i-200):i])
		}
	}
	if !strings.Contains(logged.String(), "another word") {
		t.Error("the log does not say why a client was refused")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
