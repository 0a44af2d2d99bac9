package anser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
)

// Names of methods that are not served use no memory, and a hint is looked for only a few times
// per connection.
func TestProtocolUnknownNames(t *testing.T) {
	s := foreignServer(t)
	anser.Handle(s, "Words.Say", func(_ context.Context, in *word) (*word, error) { return in, nil })
	f := openForeign(t, s, nil)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range 100 {
		name := fmt.Sprintf("%d", i) + strings.Repeat("x", 1<<20)
		if _, refused := f.Admit(&anser.ProtocolRequest{Method: name}); refused == nil || len(refused.Message) > 2000 {
			t.Fatalf("a name of 1 MiB is refused with %d bytes", len(refused.Message))
		}
	}
	if grown := heap() - before; grown > 10<<20 {
		t.Errorf("100 names of 1 MiB that are not served keep %d bytes", grown)
	}
	hints := 0
	for range 100 {
		if _, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Sai"}); strings.Contains(refused.Message, "did you mean") {
			hints++
		}
	}
	if hints > 16 {
		t.Errorf("a hint is looked for %d times", hints)
	}
	if _, _, err := f.call(anser.ProtocolRequest{Method: "Words.Say"}, word{}); err != nil {
		t.Error(err)
	}
}

// After End no call is admitted, and the hooks are no longer called.
func TestProtocolCallAfterEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer()
		defer s.Close()
		release := make(chan struct{})
		anser.Handle(s, "Words.Say", func(_ context.Context, in *word) (*word, error) {
			<-release
			return in, nil
		})
		f := openForeign(t, s, nil)
		_, replies, err := f.start(anser.ProtocolRequest{Method: "Words.Say"}, word{"a"})
		if err != nil {
			t.Fatal(err)
		}
		f.Drain(0)
		<-f.drains
		f.End(io.EOF)
		if _, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Say"}); refused == nil || refused.Code != anser.Unavailable {
			t.Errorf("a call of a connection that has ended: %v", refused)
		}
		close(release)
		<-replies
		synctest.Wait()
		if len(f.closes) > 0 {
			t.Error("Close is called after End")
		}
		if n := s.Stats().InFlight; n != 0 {
			t.Errorf("%d calls are in flight", n)
		}
	})
}

// A connection that an observer refuses once it has an identity runs no calls.
func TestProtocolRefusedByAnObserver(t *testing.T) {
	no := errors.New("not this one")
	var s *anser.Server
	var f *protocolClient
	s = foreignServer(t, anser.Authenticate(new(door)), anser.Observe(anser.Observer{ConnOpened: func(c anser.ConnInfo) error {
		if c.Peer.Identity == nil || c.Peer.Identity.Subject != "ann" {
			t.Errorf("the observer sees %v", c.Peer.Identity)
		}
		if _, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Say"}); refused == nil {
			t.Error("a call is admitted before the observer has answered")
		}
		return no
	}}))
	anser.Handle(s, "Words.Say", func(_ context.Context, in *word) (*word, error) { return in, nil })
	f = openForeign(t, s, nil)
	if err := f.Authenticate(t.Context(), "test", []byte(secret+":ann")); !errors.Is(err, no) {
		t.Errorf("%v, want %v", err, no)
	}
	if why := <-f.closes; !errors.Is(why, no) {
		t.Errorf("closed with %v", why)
	}
	if _, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Say"}); refused == nil || !f.NeedsLogin() {
		t.Error("a call of the refused connection is admitted")
	}
}

// Of several logins at the same time the first one counts, and the others must have its subject.
func TestProtocolLoginsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer(anser.Authenticate(slowDoor{}))
		defer s.Close()
		f := openForeign(t, s, nil)
		errs := make(chan error, 2)
		for _, who := range []string{"ann", "bob"} {
			go func() { errs <- f.Authenticate(context.Background(), "test", []byte(who)) }()
		}
		if a, b := <-errs, <-errs; (a == nil) == (b == nil) {
			t.Errorf("two logins at once: %v, %v", a, b)
		}
	})
}

// slowDoor accepts all clients after a second.
type slowDoor struct{}

func (slowDoor) Authenticate(_ context.Context, r *anser.AuthRequest) (*anser.Identity, error) {
	id := &anser.Identity{Subject: string(r.Data)}
	time.Sleep(time.Second)
	return id, nil
}

// Only the first call of Run or Refuse counts, and nothing is released twice.
func TestProtocolCallEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer(anser.MaxMemory(16 << 20))
		defer s.Close()
		ran := new(atomic.Int64)
		anser.Handle(s, "Words.Say", func(_ context.Context, in *word) (*word, error) {
			ran.Add(1)
			return in, nil
		})
		f := openForeign(t, s, nil)
		answered := new(atomic.Int64)
		respond := func(anser.ProtocolReply) error {
			answered.Add(1)
			return nil
		}
		admit := func() *anser.ProtocolCall {
			k, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Say", Size: 1 << 20})
			if refused != nil {
				t.Fatal(refused)
			}
			return k
		}
		why := anser.Refuse(anser.InvalidArgument, "it is not decodable")
		k := admit()
		k.Run(new(word), respond)
		k.Run(new(word), respond)
		k.Refuse(why)
		k = admit()
		k.Refuse(why)
		k.Refuse(nil)
		k.Run(new(word), respond)
		admit().Refuse(nil)
		admit().Run(new(word), nil)
		synctest.Wait()
		if ran.Load() != 2 || answered.Load() != 1 || s.Stats().InFlight != 0 || s.Stats().Refused != 2 {
			t.Errorf("%d ran, %d answered, %d in flight, %d refused", ran.Load(), answered.Load(), s.Stats().InFlight, s.Stats().Refused)
		}
		block := 0
		for ; block < 100; block++ {
			if _, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Say", Size: 4 << 20}); refused != nil {
				break
			}
		}
		if block != 4 {
			t.Errorf("%d requests of 4 MiB fit into 16 MiB", block)
		}
	})
}

// A nil argument is an error and does not panic.
func TestProtocolNil(t *testing.T) {
	s := foreignServer(t, anser.Authenticate(new(door)))
	f := openForeign(t, s, nil)
	if _, refused := f.Admit(nil); refused == nil || refused.Code != anser.InvalidArgument {
		t.Errorf("a nil request: %v", refused)
	}
	//lint:ignore SA1012 a nil context is the subject of this test
	if err := f.Authenticate(nil, "test", []byte(secret+":ann")); err == nil {
		t.Error("a nil context is taken")
	}
}

// A panic of an observer, from which a caller such as net/http recovers, leaves nothing of the
// connection.
func TestProtocolObserverPanics(t *testing.T) {
	for name, options := range map[string][]anser.ServerOption{
		"opened":         {anser.Observe(anser.Observer{ConnOpened: func(anser.ConnInfo) error { panic("opened") }})},
		"opened, failed": {anser.Observe(anser.Observer{ConnOpened: func(anser.ConnInfo) error { panic("opened") }, ConnFailed: func(anser.ConnInfo, error) { panic("failed") }})},
	} {
		t.Run(name, func(t *testing.T) {
			s := foreignServer(t, options...)
			for range 3 {
				func() {
					defer func() {
						if recover() == nil {
							t.Error("the panic does not reach the caller")
						}
					}()
					newForeign(s, anser.Peer{Addr: loopback(1), Local: loopback(2)})
				}()
			}
			if n := s.Stats().Conns; n != 0 {
				t.Errorf("%d connections are left", n)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A login whose observer panicked was not accepted: the next one asks the observers again.
func TestProtocolLoginPanics(t *testing.T) {
	asked := 0
	s := anser.NewServer(silent, anser.Authenticate(new(door)), anser.Observe(anser.Observer{ConnOpened: func(anser.ConnInfo) error {
		if asked++; asked == 1 {
			panic("opened")
		}
		return errors.New("not this one")
	}}))
	defer s.Close()
	f := openForeign(t, s, nil)
	func() {
		defer func() { recover() }()
		f.Authenticate(t.Context(), "test", []byte(secret+":ann"))
	}()
	if err := f.Authenticate(t.Context(), "test", []byte(secret+":ann")); err == nil || f.Identity() != nil {
		t.Errorf("the second login: %v, %v", err, f.Identity())
	}
}

// The encoder of a reply may end its goroutine. The call is over all the same, and its place is
// free.
func TestProtocolReplyExits(t *testing.T) {
	s := foreignServer(t, anser.MaxInFlight(1))
	same := func(_ context.Context, in *word) (*word, error) { return in, nil }
	for name, options := range map[string][]anser.HandleOption{"Words.Say": nil, "Words.Limited": {anser.AdaptiveLimit(1, 1)}} {
		if err := anser.Handle(s, name, same, options...); err != nil {
			t.Fatal(err)
		}
	}
	f := openForeign(t, s, nil)
	for _, method := range []string{"Words.Say", "Words.Limited"} {
		for range 3 {
			k, refused := f.Admit(&anser.ProtocolRequest{Method: method, Priority: anser.Normal})
			if refused != nil {
				t.Fatalf("%s: %v", method, refused)
			}
			done := make(chan struct{})
			k.Run(k.NewRequest(), func(anser.ProtocolReply) error {
				defer close(done)
				runtime.Goexit()
				return nil
			})
			<-done
			eventually(t, "the call is over", func() bool { return s.Stats().InFlight == 0 })
		}
	}
	f.End(nil)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
