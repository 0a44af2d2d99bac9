package anser_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// cutBound is how long an open call may outlive its permission.
const cutBound = 2 * time.Second

// heldCalls has handlers that wait for the end of their context, and records its errors.
type heldCalls struct {
	began chan struct{}
	ended chan error
}

func newHeldCalls() *heldCalls { return &heldCalls{make(chan struct{}, 100), make(chan error, 100)} }

func (h *heldCalls) unary(ctx context.Context, _ *[]byte) (*[]byte, error) {
	h.began <- struct{}{}
	<-ctx.Done()
	h.ended <- ctx.Err()
	return text("done"), nil
}

func (h *heldCalls) stream(ctx context.Context, _ *anser.Stream[[]byte, []byte]) error {
	_, err := h.unary(ctx, nil)
	return err
}

// cutOff serves Held.Call and Held.Stream, which wait for the end of their contexts, and whoami.
func cutOff(t *testing.T, network *ansertest.Network, opts ...anser.ServerOption) (*anser.Server, *heldCalls) {
	t.Helper()
	h := newHeldCalls()
	s := anser.NewServer(append([]anser.ServerOption{silent}, opts...)...)
	anser.Handle(s, "Who.AmI", whoami)
	anser.Handle(s, "Held.Call", h.unary)
	anser.HandleStream(s, "Held.Stream", h.stream)
	run(t, s, network.Listen("a:1"))
	return s, h
}

// clientStream is a call and a stream that wait for the end of their contexts.
type clientStream struct {
	call   *result
	stream *anser.Stream[[]byte, []byte]
}

func (h *heldCalls) open(t *testing.T, c *anser.Client, opts ...anser.CallOption) clientStream {
	t.Helper()
	o := clientStream{call: apart(context.Background(), c, "Held.Call", text(""), append(opts, anser.Timeout(time.Hour))...)}
	<-h.began
	var err error
	if o.stream, err = anser.Open[[]byte, []byte](context.Background(), c, "Held.Stream"); err != nil {
		t.Fatal(err)
	}
	<-h.began
	return o
}

// isCut checks that both end within the bound, for the caller and for the handler.
func (o clientStream) isCut(t *testing.T, h *heldCalls, code anser.Code) {
	t.Helper()
	began := time.Now()
	_, err := o.stream.Recv()
	wantFault(t, err, code, anser.OutcomeUnknown)
	_, err = o.call.Wait()
	wantFault(t, err, code, anser.OutcomeUnknown)
	for range 2 {
		if err := <-h.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the context of a handler ended with %v", err)
		}
	}
	if d := time.Since(began); d > cutBound {
		t.Errorf("it took %v, want at most %v", d, cutBound)
	}
}

func inMemory(network *ansertest.Network, opts ...anser.DialOption) []anser.DialOption {
	return append(opts, anser.Dialer(network.Dial), anser.InsecureCredentials(), anser.Conns(1))
}

// renewing returns the option of a client that renews its credential about every five seconds.
func renewing(subject string) anser.DialOption {
	return anser.Credentials(func(context.Context) (anser.Credential, error) {
		return anser.Credential{Scheme: "test", Data: []byte(secret + ":" + subject), Expires: time.Now().Add(8 * time.Second)}, nil
	})
}

// byGroup returns a policy that allows whoami to all clients, and the other methods to the group
// "ops".
func byGroup() anser.Authorizer { return new(groupPolicy) }

type groupPolicy struct{ policy }

func (p *groupPolicy) Allows(id *anser.Identity, method string) bool {
	return id.In("ops") || method == "Who.AmI"
}

// A renewed identity that allows less ends open calls and streams at once.
func TestRenewalEndsWhatItDoesNotAllow(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		d := &door{groups: []string{"ops"}, life: 10 * time.Second}
		s, h := cutOff(t, network, anser.Authenticate(d), anser.Authorize(byGroup()))
		c := dial(t, "a:1", inMemory(network, renewing("ann"))...)
		o := h.open(t, c)
		time.Sleep(time.Minute) // which is several renewals
		synctest.Wait()
		if n := s.Stats().InFlight; n != 2 {
			t.Fatalf("%d in flight after renewals that allow as much, want 2", n)
		}
		d.mu.Lock()
		d.groups = nil
		d.mu.Unlock()
		asked := d.asked.Load()
		for d.asked.Load() == asked {
			time.Sleep(100 * time.Millisecond)
		}
		o.isCut(t, h, anser.PermissionDenied)
		if out, err := call(context.Background(), c, "Who.AmI", ""); out != "ann" || err != nil {
			t.Error(out, err)
		}
		if st := s.Stats(); st.CutOff != 2 || st.Denied != 2 || st.Accepted != 1 {
			t.Errorf("%d cut off, %d denied, %d connections; want 2, 2, 1", st.CutOff, st.Denied, st.Accepted)
		}
	})
}

// A changed policy ends the calls and streams that it no longer allows, and no others.
func TestPolicyEndsWhatItDoesNotAllow(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		p := new(policy)
		p.set("ann Held.Call", "ann Held.Stream", "bob Held.Call", "bob Held.Stream")
		_, h := cutOff(t, network, anser.Authenticate(new(door)), anser.Authorize(p))
		ann := h.open(t, dial(t, "a:1", inMemory(network, showing("ann"))...))
		bob := h.open(t, dial(t, "a:1", inMemory(network, showing("bob"))...))
		p.set("bob Held.Call", "bob Held.Stream")
		ann.isCut(t, h, anser.PermissionDenied)
		time.Sleep(time.Minute)
		select {
		case <-h.ended:
			t.Error("a call that is allowed was ended")
		default:
		}
		p.panics.Store(true)
		p.version.Add(1)
		bob.isCut(t, h, anser.PermissionDenied)
	})
}

// The end of an identity ends open calls and streams. Calls in flight may have run.
func TestExpiryEndsWhatIsOpen(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		d := &door{life: 10 * time.Second}
		s, h := cutOff(t, network, anser.Authenticate(d), anser.Deduplicate())
		c := dial(t, "a:1", inMemory(network, showing("ann"))...) // which never renews
		o := h.open(t, c, anser.IdempotencyKey("one"))
		time.Sleep(9900 * time.Millisecond)
		if n := s.Stats().InFlight; n != 2 {
			t.Fatalf("%d in flight before the end, want 2", n)
		}
		o.isCut(t, h, anser.Unauthenticated)
		_, err := call(context.Background(), c, "Who.AmI", "")
		wantFault(t, err, anser.Unauthenticated, anser.Refused)
		// The connection is closed when the identity is not renewed in time. The client makes
		// another one, and shows its current credential.
		time.Sleep(7 * time.Second)
		if n := s.Stats().Unauthenticated["expired"]; n != 1 {
			t.Errorf("%d connections were closed because their identity had ended, want 1", n)
		}
		if out, err := call(context.Background(), c, "Who.AmI", ""); out != "ann" || err != nil {
			t.Error(out, err)
		}
	})
}

// The revocation of an identity ends open calls and streams, and the connection.
func TestRevocationEndsWhatIsOpen(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		d := new(door)
		_, h := cutOff(t, network, anser.Authenticate(d), anser.Deduplicate())
		o := h.open(t, dial(t, "a:1", inMemory(network, showing("ann"))...), anser.IdempotencyKey("one"), anser.WithFailMode(anser.Failfast))
		d.revoked.Store(true)
		o.isCut(t, h, anser.Unauthenticated)
	})
}

// A call with a key runs on without its connection, but not without its identity.
func TestCallsWithoutAConnectionEndToo(t *testing.T) {
	for name, end := range map[string]func(d *door, p *policy){
		"revoked": func(d *door, _ *policy) { d.revoked.Store(true) },
		"expired": func(*door, *policy) {},
		"policy":  func(_ *door, p *policy) { p.set() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				d, p := new(door), new(policy)
				if name == "expired" {
					d.life = 10 * time.Second
				}
				p.set("ann Held.Call", "ann Who.AmI")
				s, h := cutOff(t, network, anser.Authenticate(d), anser.Authorize(p), anser.Deduplicate())
				c, err := anser.Dial("a:1", inMemory(network, showing("ann"), silent, anser.NoSnapshot())...)
				if err != nil {
					t.Fatal(err)
				}
				f := apart(context.Background(), c, "Held.Call", text(""), anser.IdempotencyKey("one"), anser.Timeout(time.Hour), anser.WithFailMode(anser.Failfast))
				<-h.began
				c.Close()
				f.Wait()
				time.Sleep(3 * time.Second)
				select {
				case <-h.ended:
					t.Fatal("it ended with its connection")
				default:
				}
				end(d, p)
				if name == "expired" {
					time.Sleep(7 * time.Second)
				}
				began := time.Now()
				<-h.ended
				if took := time.Since(began); took > cutBound {
					t.Errorf("it took %v", took)
				}
				if n := s.Stats().CutOff; n != 1 {
					t.Errorf("%d cut off, want 1", n)
				}
			})
		})
	}
}

// A waiting call whose client is no longer allowed to make it does not run.
func TestWaitingCallsDoNotRun(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		p := new(policy)
		p.set("ann Gated.Call", "ann Who.AmI")
		s := anser.NewServer(silent, anser.Authenticate(new(door)), anser.Authorize(p))
		var ran atomic.Int64
		finish := make(chan struct{})
		anser.Handle(s, "Gated.Call", func(_ context.Context, in *[]byte) (*[]byte, error) {
			ran.Add(1)
			<-finish // whatever its context says
			return in, nil
		}, anser.AdaptiveLimit(1, 1), anser.MaxQueueTime(time.Minute))
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", inMemory(network, showing("ann"))...)
		var calls []*result
		for range 2 {
			calls = append(calls, apart(context.Background(), c, "Gated.Call", text(""), anser.Timeout(time.Hour)))
			synctest.Wait()
		}
		if n := s.Stats().InFlight; n != 2 || ran.Load() != 1 {
			t.Fatalf("%d in flight of which %d run, want 2 and 1", n, ran.Load())
		}
		p.set()
		for _, f := range calls {
			_, err := f.Wait()
			wantFault(t, err, anser.PermissionDenied, anser.OutcomeUnknown)
		}
		close(finish)
		synctest.Wait()
		if n := ran.Load(); n != 1 {
			t.Errorf("%d calls ran, want 1", n)
		}
		if n := s.Stats().InFlight; n != 0 {
			t.Errorf("%d calls are in flight", n)
		}
	})
}

// A client whose identity has ended is sent nothing until it renews.
func TestExpiredClientsAreSentNothing(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		d := &door{life: 10 * time.Second}
		began := make(chan *anser.Session, 1)
		s := anser.NewServer(silent, anser.Authenticate(d), anser.OnSession(func(sess *anser.Session) { began <- sess }))
		run(t, s, network.Listen("a:1"))
		h, held := anser.NewServer(silent), newHeldCalls()
		var pushes atomic.Int64
		anser.Handle(h, "Client.Push", func(_ context.Context, in *[]byte) (*[]byte, error) {
			pushes.Add(1)
			return in, nil
		})
		anser.Handle(h, "Client.Hold", held.unary)
		t.Cleanup(func() { h.Close() })
		dial(t, "a:1", inMemory(network, showing("ann"), anser.Handlers(h))...) // which never renews
		sess := <-began
		ctx, c := context.Background(), sess.Client()
		if out, err := call(ctx, c, "Client.Push", "news"); out != "news" || err != nil {
			t.Fatal(out, err)
		}
		if sent, failed := s.Broadcast(ctx, "Client.Push", text("news"), nil); sent != 1 {
			t.Fatal(failed)
		}
		f := apart(ctx, c, "Client.Hold", text(""), anser.Timeout(time.Hour))
		<-held.began
		time.Sleep(9500 * time.Millisecond)
		before := pushes.Load()
		time.Sleep(500 * time.Millisecond) // the identity ends now
		_, err := call(ctx, c, "Client.Push", "secret news", anser.Idempotent())
		wantFault(t, err, anser.Unauthenticated, anser.NotSent)
		if sent, failed := s.Broadcast(ctx, "Client.Push", text("secret news"), nil); sent != 0 || anser.CodeOf(failed[0].Err) != anser.Unauthenticated {
			t.Error(sent, failed)
		}
		if _, err := anser.Go[[]byte](ctx, c, "Client.Push", text("secret news")).Wait(); anser.CodeOf(err) != anser.Unauthenticated {
			t.Error(err)
		}
		_, err = f.Wait()
		wantFault(t, err, anser.Unauthenticated, anser.OutcomeUnknown)
		if err := <-held.ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := pushes.Load(); n != before {
			t.Errorf("the client was sent %d messages after its identity had ended", n-before)
		}
		// The connection is closed; the client authenticates on another one, and the session goes
		// on.
		time.Sleep(8 * time.Second)
		if out, err := call(ctx, c, "Client.Push", "news"); out != "news" || err != nil {
			t.Error(out, err)
		}
		if st := s.Stats(); st.Accepted != 2 || len(s.Sessions()) != 1 {
			t.Errorf("%d connections, %d sessions", st.Accepted, len(s.Sessions()))
		}
	})
}

// After a late renewal the server sends to the client again, on the same connection.
func TestLateRenewalOfASession(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		d := &door{life: 10 * time.Second}
		began := make(chan *anser.Session, 1)
		s := anser.NewServer(silent, anser.Authenticate(d), anser.OnSession(func(sess *anser.Session) { began <- sess }))
		run(t, s, network.Listen("a:1"))
		h := anser.NewServer(silent)
		anser.Handle(h, "Client.Push", echo)
		t.Cleanup(func() { h.Close() })
		var shown atomic.Int64
		late := anser.Credentials(func(context.Context) (anser.Credential, error) { // renewed after 12 s
			if shown.Add(1) == 2 {
				d.mu.Lock()
				d.groups, d.life = []string{"renewed"}, time.Hour
				d.mu.Unlock()
			}
			return anser.Credential{Scheme: "test", Data: []byte(secret + ":ann"), Expires: time.Now().Add(15 * time.Second)}, nil
		})
		dial(t, "a:1", inMemory(network, late, anser.Handlers(h))...)
		sess := <-began
		c := sess.Client()
		push := func() error { _, err := call(context.Background(), c, "Client.Push", "news"); return err }
		time.Sleep(11 * time.Second)
		wantFault(t, push(), anser.Unauthenticated, anser.NotSent)
		time.Sleep(3 * time.Second)
		if err := push(); err != nil {
			t.Error(err)
		}
		if id := sess.Peer().Identity; !id.In("renewed") {
			t.Errorf("the session has the identity %+v", id)
		}
		if n := s.Stats().Accepted; n != 1 {
			t.Errorf("%d connections were made", n)
		}
	})
}

// A revoked identity is rejected at once, whatever its authenticator returns, and not only from
// the next check on.
func TestRevokedIdentityDoesNotLogIn(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		d := new(door)
		d.revoked.Store(true)
		var ran atomic.Int64
		s := serve(t, network.Listen("a:1"), map[string]handler{"A.Echo": func(_ context.Context, in *[]byte) (*[]byte, error) {
			ran.Add(1)
			return in, nil
		}}, anser.Authenticate(d))
		c := dial(t, "a:1", inMemory(network, showing("ann"))...)
		_, err := call(context.Background(), c, "A.Echo", "x", anser.WithFailMode(anser.Failfast))
		wantFault(t, err, anser.Unauthenticated, anser.NotSent)
		if n := ran.Load(); n != 0 {
			t.Errorf("the handler ran %d times", n)
		}
		if s.Stats().Unauthenticated["revoked"] == 0 {
			t.Errorf("counted as %v, want revoked", s.Stats().Unauthenticated)
		}
	})
}

// onceRevoked accepts all clients, and later revokes the second identity, as for a token whose
// groups were changed: the credential is still valid.
type onceRevoked struct {
	asked   atomic.Int64
	revoked atomic.Bool
}

func (f *onceRevoked) Authenticate(context.Context, *anser.AuthRequest) (*anser.Identity, error) {
	second := f.asked.Add(1) == 2
	return &anser.Identity{Subject: "ann", Revoked: func() bool { return second && f.revoked.Load() }}, nil
}

// A server that closes a connection because its identity has ended has not refused the credential:
// calls wait for the next connection, also if the first one was young.
func TestCallsGoOnAfterARevokedConnection(t *testing.T) {
	for age := time.Duration(0); age < 1200*time.Millisecond; age += 50 * time.Millisecond {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			f, p := new(onceRevoked), new(policy)
			p.set("ann A.Echo")
			serve(t, network.Listen("a:1"), map[string]handler{"A.Echo": func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil }}, anser.Authenticate(f), anser.Authorize(p))
			before := dial(t, "a:1", inMemory(network, showing("ann"))...)
			if _, err := call(context.Background(), before, "A.Echo", "x"); err != nil { // from now on the server compares its policy once a second
				t.Fatal(err)
			}
			before.Close()
			time.Sleep(age)
			c := dial(t, "a:1", inMemory(network, showing("ann"))...)
			for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(1700 * time.Microsecond) {
				_, err := call(context.Background(), c, "A.Echo", "x")
				if e, ok := errors.AsType[*anser.Error](err); err != nil && (!ok || e.Outcome != anser.OutcomeUnknown) {
					t.Fatalf("a call after %v: %v", time.Since(began), err) // and none was open when the connection was closed
				}
				if !f.revoked.Swap(true) {
					p.set("ann A.Echo") // all connections are examined within a second
				}
			}
			if n := f.asked.Load(); n != 3 {
				t.Errorf("%d logins, want 3", n)
			}
		})
	}
}
