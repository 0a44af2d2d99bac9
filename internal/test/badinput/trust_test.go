package badinput_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// The tokens and keys of the rows about authentication.
var (
	goodToken, endedToken = auth.NewToken(), auth.NewToken()
	goodSecret            = auth.NewSecret()
)

// guardedTarget is a server that requires authentication, and denies the bad methods to every
// caller.
func guardedTarget(t *testing.T, over transport, opts ...anser.ServerOption) *target {
	t.Helper()
	tokens, err := auth.NewTokens(
		auth.Grant{Subject: "good", SHA256: auth.Digest(goodToken)},
		auth.Grant{Subject: "late", SHA256: auth.Digest(endedToken), Expires: time.Now().Add(-time.Second)},
	)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := auth.NewSigned(auth.Key{ID: "good-1", Secret: goodSecret, Subject: "good"})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Subjects: []string{"good"}, Methods: []string{"Good.*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	over.dial = []anser.DialOption{auth.Token(goodToken), anser.InsecureCredentials()}
	return newTarget(t, over, append(opts, anser.Authenticate(tokens, signed), anser.Authorize(policy))...)
}

// introduced is a greeting with a credential, and a call that must not run.
func introduced(scheme string, credential []byte) []byte {
	settings := wire.DefaultSettings()
	settings.Features = wire.FeatureAuth
	b := wire.AppendAuth(wirepeer.Hello(settings), scheme, credential)
	b = wire.AppendMethod(b, 1, "Bad.Bytes")
	return append(b, bad(firstBadID)...)
}

// signature returns the credential of a client with the key.
func signature(t *testing.T) []byte {
	t.Helper()
	seen := make(chan []byte, 1)
	s := anser.NewServer(silent, anser.Authenticate(anser.AuthenticatorFunc(func(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
		seen <- bytes.Clone(l.Data)
		return nil, errors.New("seen")
	})))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(l) })
	defer wg.Wait()
	defer s.Close()
	c, err := anser.Dial(l.Addr().String(), silent, anser.NoSnapshot(), anser.Conns(1), auth.Sign("good-1", goodSecret))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	anser.Call[[]byte](context.Background(), c, "Good.Echo", new([]byte), anser.WithFailMode(anser.Failfast))
	return <-seen
}

// Rows 101 to 106, 117 and 75: a client without a valid credential is rejected in the handshake,
// always with the same text.
func TestNotAuthenticated(t *testing.T) {
	replayed := signature(t)
	forged := slices.Clone(replayed)
	forged[0] ^= 1
	settings := wire.DefaultSettings()
	settings.Features = wire.FeatureAuth
	hello := wirepeer.Hello(settings)
	compressed := wire.AppendMethod(slices.Clone(hello), 1, "Bad.Bytes")
	compressed = wire.AppendRequest(compressed, firstBadID, 0, &wire.Request{Method: 1, Codec: 1, Compression: 1, Priority: 2, Payload: []byte("bomb")})
	long := slices.Concat(hello, wire.AppendHeader(nil, wire.Header{Type: wire.TypeAuth, Length: 64<<10 + 6}), []byte("\x05token"), bytes.Repeat([]byte("x"), 64<<10))
	for name, row := range map[string]struct {
		number int
		bytes  []byte
		before []byte // used on an earlier, successful connection
		want   wire.Reason
		count  string
	}{
		"row101":  {101, greeting(), nil, wire.Unauthenticated, "nothing shown"},
		"row101b": {101, introduced("token", nil), nil, wire.Unauthenticated, "not valid"},
		"row102":  {102, introduced("token", []byte(auth.NewToken())), nil, wire.Unauthenticated, "not valid"},
		"row102b": {102, introduced("token", []byte(goodToken[1:])), nil, wire.Unauthenticated, "not valid"},
		"row102c": {102, introduced("token", []byte(goodToken+"x")), nil, wire.Unauthenticated, "not valid"},
		"row102d": {102, introduced("basic", []byte(goodToken)), nil, wire.Unauthenticated, "unknown scheme"},
		"row103":  {103, introduced("token", []byte(endedToken)), nil, wire.Unauthenticated, "not valid"},
		"row104":  {104, introduced(auth.SchemeSigned, forged), nil, wire.Unauthenticated, "not valid"},
		"row104b": {104, introduced("tls", nil), nil, wire.Unauthenticated, "nothing shown"},
		"row105":  {105, long, nil, wire.FrameTooLarge, "malformed"},
		"row105b": {105, introduced("token", bytes.Repeat([]byte("x"), 60<<10)), nil, wire.BadFrame, "malformed"},
		"row106":  {106, introduced(auth.SchemeSigned, replayed), introduced(auth.SchemeSigned, replayed), wire.Unauthenticated, "not valid"},
		"row117":  {117, slices.Concat(hello, wire.AppendMethod(nil, 1, "Bad.Bytes"), bad(firstBadID)), nil, wire.Unauthenticated, "nothing shown"},
		"row75":   {75, compressed, nil, wire.Unauthenticated, "nothing shown"},
	} {
		for _, over := range transports {
			t.Run(name+"/"+over.name, func(t *testing.T) {
				t.Parallel()
				held.note(t, row.number)
				g := guardedTarget(t, over)
				if row.before != nil {
					p := wirepeer.New(g.connect(t))
					p.Send(row.before)
					if _, err := p.ReadHello(); err != nil {
						t.Fatal(err)
					}
					p.Close()
				}
				for manner, write := range manners {
					t.Run(manner, func(t *testing.T) {
						before := g.Stats()
						nc := g.connect(t)
						defer nc.Close()
						wrote := make(chan struct{})
						go func() {
							defer close(wrote)
							write(nc, row.bytes) // the server may have closed already
						}()
						p := wirepeer.New(nc)
						if err := p.ReadPreface(); err != nil {
							t.Fatal(err)
						}
						f, err := p.Next()
						if err != nil || f.Type != wire.TypeClose {
							t.Fatalf("%s, %v: want CLOSE and nothing before it", f.Type, err)
						}
						reason, text, err := wire.ParseClose(f.Body)
						if reason != row.want || err != nil || reason == wire.Unauthenticated && text != "unauthenticated" {
							t.Errorf("%s: %q, %v; want %s", reason, text, err, row.want)
						}
						if strings.Contains(text, goodToken) {
							t.Error(text)
						}
						nc.Close()
						<-wrote
						g.turnedAway(t, before)
						if after := g.Stats(); after.Unauthenticated[row.count] != before.Unauthenticated[row.count]+1 || after.Closed[row.want.String()] != before.Closed[row.want.String()]+1 {
							t.Errorf("%+v, %+v before; want one more of %q", after.Unauthenticated, before.Unauthenticated, row.count)
						}
					})
				}
			})
		}
	}
}

// Rows 107 and 118: a call denied by the policy fails alone, whether the method exists or not, and
// metadata is not an identity.
func TestNotAllowed(t *testing.T) {
	claims := pairs(wire.Pair{Key: "subject", Value: "root"}, wire.Pair{Key: "authorization", Value: "Bearer " + goodToken}, wire.Pair{Key: "identity", Value: "root"})
	for name, row := range map[string]struct {
		number int
		method string
		block  []byte
	}{
		"row107":  {107, "Bad.Bytes", nil},
		"row107b": {107, "Bad.NotThere", nil},
		"row118":  {118, "Bad.Bytes", claims},
	} {
		for _, over := range transports {
			t.Run(name+"/"+over.name, func(t *testing.T) {
				t.Parallel()
				held.note(t, row.number)
				g := guardedTarget(t, over)
				for manner, write := range manners {
					t.Run(manner, func(t *testing.T) {
						settings := wire.DefaultSettings()
						settings.Features = wire.FeatureAuth
						b := wire.AppendAuth(wirepeer.Hello(settings), "token", []byte(goodToken))
						b = wire.AppendMethod(wire.AppendMethod(b, 1, row.method), 2, "Good.Echo")
						b = wire.AppendRequest(b, firstBadID, 0, &wire.Request{Method: 1, Codec: 1, Priority: 2, Metadata: row.block, Payload: []byte("bad")})
						b = append(b, wirepeer.Request(goodID, 2, []byte("good"))...)
						before := g.Stats()
						nc := g.connect(t)
						defer nc.Close()
						if err := write(nc, b); err != nil {
							t.Fatal(err)
						}
						p := wirepeer.New(nc)
						if _, err := p.ReadHello(); err != nil {
							t.Fatal(err)
						}
						f, err := p.Next()
						if err != nil || f.Type != wire.TypeError || f.ID != firstBadID {
							t.Fatal(f, err)
						}
						if e, err := wire.ParseError(f.Flags, f.Body); err != nil || e.Code != wire.PermissionDenied || e.Outcome != wire.Refused || e.Message != "permission denied" || f.Flags != 0 {
							t.Errorf("%+v, %v", e, err)
						}
						if f, err := p.Next(); err != nil || f.Type != wire.TypeReply || f.ID != goodID {
							t.Error(f, err)
						}
						if after := g.Stats(); after.Denied != before.Denied+1 || after.Refused != before.Refused+1 {
							t.Errorf("%d denied, %d refused; before %d and %d", after.Denied, after.Refused, before.Denied, before.Refused)
						}
						if n := g.bad.Load(); n != 0 {
							t.Errorf("the handler ran %d times", n)
						}
						g.others(t)
					})
				}
			})
		}
	}
}

// Row 108: a token that expires ends the streams and calls of its connection, makes it reject
// further ones, and protects its client from data of the server.
func TestTokenExpiresMidStream(t *testing.T) {
	for _, over := range transports {
		t.Run("row108/"+over.name, func(t *testing.T) {
			t.Parallel()
			held.note(t, 108)
			over.dial = []anser.DialOption{auth.Token(goodToken), anser.InsecureCredentials()}
			var lasts atomic.Int64
			g := newTarget(t, over, anser.Authenticate(anser.AuthenticatorFunc(func(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
				id := &anser.Identity{Subject: "good"}
				if string(l.Data) != goodToken {
					id.Expires = time.Now().Add(time.Duration(lasts.Load()))
				}
				return id, nil
			})))
			// If a token expires before the machine has opened the stream, one that lasts longer
			// is tried.
			for d := 2 * impatience; ; d *= 4 {
				lasts.Store(int64(d))
				if g.outlivesToken(t) {
					break
				}
				if d > bound {
					t.Fatalf("a stream is refused with a token that lasts %v", d)
				}
			}
			for end := time.Now().Add(bound); g.Stats().InFlight != 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the handlers still run")
				}
			}
			if n := g.Stats().CutOff; n < 2 {
				t.Errorf("%d calls and streams are counted as cut off, want at least 2", n)
			}
			if n := g.bad.Load(); n != 0 {
				t.Errorf("the handler ran %d times", n)
			}
			g.others(t)
		})
	}
}

// outlivesToken opens a stream and a call with a token that is about to expire. When it has
// expired, it makes calls in both directions. It reports whether both were open by then.
func (g *target) outlivesToken(t *testing.T) bool {
	t.Helper()
	settings := wire.DefaultSettings()
	settings.Features, settings.Session = wire.FeatureAuth, uint64(time.Now().UnixNano())
	b := wire.AppendAuth(wirepeer.Hello(settings), "token", []byte("short"))
	b = wire.AppendMethod(wire.AppendMethod(wire.AppendMethod(b, 1, "Good.Hold"), 2, "Bad.Bytes"), 3, "Good.Wait")
	b = wire.AppendRequest(b, 1, wire.FlagStream, &wire.Request{Method: 1, Codec: 1, Priority: 2})
	b = append(b, wirepeer.Request(2, 3, []byte("good"))...)
	nc := g.connect(t)
	nc.SetDeadline(time.Now().Add(5 * bound)) // the longest token lasts less than 4 × bound
	p := wirepeer.New(nc)
	defer p.Close()
	if err := p.Send(b); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ReadHello(); err != nil { // it may have expired before the end of the handshake
		t.Log(err)
		return false
	}
	answered := make(map[uint64]bool)
	outcome := func(ids ...uint64) wire.Outcome {
		t.Helper()
		f, err := p.NextOf(wire.TypeError, wire.TypeReply, wire.TypeClose, wire.TypeRequest)
		if err != nil || f.Type != wire.TypeError || !slices.Contains(ids, f.ID) || answered[f.ID] {
			t.Fatal(f, err)
		}
		answered[f.ID] = true
		e, err := wire.ParseError(f.Flags, f.Body)
		if err != nil || e.Code != wire.UnauthenticatedCall || e.Message != "unauthenticated" {
			t.Errorf("%+v, %v", e, err)
		}
		return e.Outcome
	}
	for range 2 {
		switch o := outcome(1, 2); o {
		case wire.Refused:
			return false
		case wire.OutcomeUnknown:
		default:
			t.Errorf("the stream or call ends with the outcome %v, want that it is unknown", o)
		}
	}
	sent, failed := g.Broadcast(context.Background(), "Client.News", new([]byte), nil)
	if sent != 0 || !slices.ContainsFunc(failed, func(u anser.BroadcastError) bool { return anser.CodeOf(u.Err) == anser.Unauthenticated }) {
		t.Errorf("the client is sent %d messages, %v", sent, failed)
	}
	if err := p.Send(wirepeer.Request(3, 2, []byte("bad"))); err != nil {
		t.Fatal(err)
	}
	if o := outcome(3); o != wire.Refused {
		t.Errorf("the call ends with the outcome %v, want that it is refused", o)
	}
	return true
}
