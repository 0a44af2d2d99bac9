package anser_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
)

// book is a registrar that records its calls and, like a real one, respects the context.
type book struct {
	mu    sync.Mutex
	there map[string]registry.Instance
	fail  error // returned by Register
	tries int
}

func (b *book) Register(ctx context.Context, in registry.Instance) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if err := errors.Join(ctx.Err(), in.Validate(), b.fail); err != nil {
		return err
	}
	if b.there == nil {
		b.there = make(map[string]registry.Instance)
	}
	b.there[in.Key()] = in
	return nil
}

func (b *book) Deregister(ctx context.Context, in registry.Instance) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	delete(b.there, in.Key())
	return nil
}

func (b *book) instances() []registry.Instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []registry.Instance
	for _, in := range b.there {
		list = append(list, in)
	}
	registry.Sort(list)
	return list
}

func TestCloseTakesTheRegistrationBack(t *testing.T) {
	network, b := new(ansertest.Network), new(book)
	s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Announce(b, registry.Instance{Service: "echo"}))
	eventually(t, "registered", func() bool { return len(b.instances()) == 1 })
	s.Close()
	if list := b.instances(); len(list) != 0 {
		t.Errorf("still registered: %v", list)
	}
}

// Nothing stays registered, whether Serve or Shutdown comes first.
func TestShutdownWhileServeBegins(t *testing.T) {
	for range 300 {
		network, b := new(ansertest.Network), new(book)
		s := anser.NewServer(silent, anser.Announce(b, registry.Instance{Service: "echo"}))
		l := network.Listen("a:1")
		var wg sync.WaitGroup
		wg.Go(func() { s.Serve(l) })
		wg.Go(func() { s.Shutdown(context.Background()) })
		wg.Wait()
		if list := b.instances(); len(list) != 0 {
			t.Fatalf("still registered: %v", list)
		}
	}
}

func TestAnnounceMistakes(t *testing.T) {
	for want, opt := range map[string]anser.ServerOption{
		"anser.Announce: the registrar is nil":                   anser.Announce(nil, registry.Instance{Service: "echo"}),
		"anser.Announce: the service has no name: give one":      anser.Announce(new(book), registry.Instance{}),
		`anser.Announce: address "a" has no port: use host:port`: anser.Announce(new(book), registry.Instance{Service: "echo", Address: "a"}),
	} {
		s := anser.NewServer(silent, opt)
		l := new(ansertest.Network).Listen("a:1")
		if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
		s.Close()
	}
}

// A server announces itself at the address where it listens, with the given instance, as soon as
// the registry can be reached, and deregisters before it drains.
func TestAnnounce(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		first, second := new(book), &book{fail: errors.New("etcd is gone")}
		release := make(chan struct{})
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-release
			return in, nil
		}},
			anser.Announce(first, registry.Instance{Service: "echo", Zone: "north", Tags: map[string]string{"k": "v"}}),
			anser.Announce(first, registry.Instance{Service: "second", Address: "public.example.org:1"}),
			anser.Announce(second, registry.Instance{Service: "echo"}))
		synctest.Wait()
		list := first.instances()
		if len(list) != 2 || list[0].Address != "a:1" || list[0].Zone != "north" || list[0].Tags["k"] != "v" || list[1].Address != "public.example.org:1" {
			t.Errorf("%+v", list)
		}
		time.Sleep(time.Minute)
		second.mu.Lock()
		tries := second.tries
		second.fail = nil
		second.mu.Unlock()
		if tries < 20 || tries > 40 {
			t.Errorf("%d tries in a minute", tries)
		}
		time.Sleep(3 * time.Second)
		if len(second.instances()) != 1 {
			t.Error("not registered after the registry came back")
		}
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(0))
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Wait", text(""))
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(context.Background()) }()
		synctest.Wait()
		if len(first.instances())+len(second.instances()) != 0 {
			t.Error("still registered while it drains")
		}
		close(release)
		if _, err := reply.Wait(); err != nil {
			t.Error(err)
		}
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

// stuck is a registrar that does not return before its context ends.
type stuck struct{}

func (stuck) Register(ctx context.Context, _ registry.Instance) error {
	<-ctx.Done()
	return ctx.Err()
}

func (stuck) Deregister(ctx context.Context, _ registry.Instance) error {
	<-ctx.Done()
	return ctx.Err()
}

// A registry that does not answer delays neither the start of the service nor its end for long.
func TestAnnounceToARegistryThatDoesNotAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for name, test := range map[string]struct {
			end  func(s *anser.Server) error
			want time.Duration
		}{
			"shutdown": {func(s *anser.Server) error { return s.Shutdown(context.Background()) }, 3 * time.Second},
			"close":    {(*anser.Server).Close, 500 * time.Millisecond},
		} {
			s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Announce(stuck{}, registry.Instance{Service: "echo"}))
			c := dial(t, "a:1", anser.Dialer(network.Dial))
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := test.end(s); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d > test.want+10*time.Millisecond {
				t.Errorf("%s took %v, want %v", name, d, test.want)
			}
		}
	})
}

// A server that listens on all addresses announces one that other machines can dial.
func TestAnnounceOfAnUnspecifiedAddress(t *testing.T) {
	b := new(book)
	s := anser.NewServer(silent, anser.InsecurePublic(), anser.Announce(b, registry.Instance{Service: "echo"}))
	l, err := s.Listen("0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, l)
	eventually(t, "registered", func() bool { return len(b.instances()) == 1 })
	host, port, err := net.SplitHostPort(b.instances()[0].Address)
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsUnspecified() || port != fmt.Sprint(l.Addr().(*net.TCPAddr).Port) {
		t.Error(b.instances()[0].Address)
	}
}

// A registry that is away for a minute is two lines in the log, however often the server tries.
func TestAnnouncementIsLoggedOnChange(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		log, b := new(testlog.Buffer), &book{fail: errors.New("etcd is gone")}
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Logger(log.Logger()), anser.Announce(b, registry.Instance{Service: "echo"}))
		time.Sleep(time.Minute)
		b.mu.Lock()
		tries := b.tries
		b.fail = nil
		b.mu.Unlock()
		if text := log.Take(); tries < 20 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "cannot register") || !strings.Contains(text, "etcd is gone") {
			t.Errorf("the log of %d tries: %q", tries, text)
		}
		time.Sleep(time.Minute)
		if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "msg=registered") {
			t.Errorf("the log after the registry came back: %q", text)
		}
	})
}
