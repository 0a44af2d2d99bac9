package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/fanout"
	"github.com/anser-rpc/anser/registry"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

var silent = anser.Logger(slog.New(slog.DiscardHandler))

type (
	query  struct{ Key string }
	answer struct{ Address string }
)

// cluster is three instances over real sockets, whose handlers fail as set by the test.
type cluster struct {
	addresses []string
	got       atomic.Int32
	mu        sync.Mutex // guards failing
	failing   map[string]error
}

func (k *cluster) fail(address string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failing[address] = err
}

func start(t *testing.T, n int) (*cluster, *anser.Client) {
	k := &cluster{failing: make(map[string]error)}
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		s := anser.NewServer(silent)
		anser.Handle(s, "Cache.Drop", func(_ context.Context, in *query) (*answer, error) {
			k.got.Add(1)
			k.mu.Lock()
			defer k.mu.Unlock()
			return &answer{address}, k.failing[address]
		})
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		t.Cleanup(func() {
			s.Close()
			if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
				t.Error(err)
			}
		})
		k.addresses = append(k.addresses, address)
	}
	c, err := anser.Dial("tcp://"+strings.Join(k.addresses, ","), silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return k, c
}

func TestBroadcast(t *testing.T) {
	for failing, good := range map[int]map[fanout.Need]bool{
		0: {fanout.All: true, fanout.AtLeast(1): true, fanout.AtLeast(3): true, fanout.AtLeast(4): false, fanout.AtLeast(-1): true},
		1: {fanout.All: false, fanout.AtLeast(2): true, fanout.AtLeast(3): false},
		3: {fanout.All: false, fanout.AtLeast(1): false},
	} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			k, c := start(t, 3)
			for _, address := range k.addresses[:failing] {
				k.fail(address, anser.Errorf(anser.Aborted, "on purpose"))
			}
			for need, want := range good {
				k.got.Store(0)
				results, err := fanout.Broadcast[answer](context.Background(), c, "Cache.Drop", &query{"x"}, need)
				if (err == nil) != want {
					t.Errorf("need %v: %v", need, err)
				}
				if need == fanout.AtLeast(4) {
					if len(results) != 0 || k.got.Load() != 0 {
						t.Errorf("sent to %d though it cannot succeed", k.got.Load())
					}
					continue
				}
				if err != nil && !errors.Is(err, anser.Aborted) {
					t.Errorf("%v does not tell of the calls", err)
				}
				if k.got.Load() != 3 {
					t.Errorf("%d instances were called", k.got.Load())
				}
				check(t, results, failing)
			}
		})
	}
}

// check checks that each result belongs to its instance.
func check(t *testing.T, results []fanout.Result[answer], failing int) {
	t.Helper()
	failed := 0
	for _, r := range results {
		switch {
		case r.Err != nil:
			failed++
			if e, ok := errors.AsType[*anser.Error](r.Err); !ok || e.Address != r.Instance.Address || r.Reply != nil {
				t.Errorf("%+v", r)
			}
		case r.Reply.Address != r.Instance.Address:
			t.Errorf("%s answered for %s", r.Reply.Address, r.Instance.Address)
		}
		if r.Duration <= 0 {
			t.Errorf("took %v", r.Duration)
		}
	}
	if len(results) != 3 || failed != failing {
		t.Errorf("%d results, %d failed", len(results), failed)
	}
}

func TestInform(t *testing.T) {
	k, c := start(t, 3)
	k.fail(k.addresses[1], anser.NotFound)
	results, err := fanout.Inform[answer](context.Background(), c, "Cache.Drop", &query{"x"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, results, 1)
}

// An unreachable instance is one failed result, and does not delay the others.
func TestInstanceThatIsDown(t *testing.T) {
	const gone = "127.0.0.1:1" // a port that was free a moment ago may belong to another test by now
	k, _ := start(t, 2)
	refuse := anser.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == gone {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	})
	c, err := anser.Dial("tcp://"+strings.Join(append(k.addresses, gone), ","), silent, refuse, anser.Timeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	results, err := fanout.Inform[answer](context.Background(), c, "Cache.Drop", &query{"x"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, results, 1)
	for _, r := range results {
		if r.Err != nil && (r.Instance.Address != gone || anser.OutcomeOf(r.Err) != anser.NotSent) {
			t.Errorf("%+v", r)
		}
	}
}

func TestSend(t *testing.T) {
	k, c := start(t, 3)
	results, err := fanout.Send(context.Background(), c, "Cache.Drop", &query{"x"})
	if err != nil || len(results) != 3 {
		t.Fatal(results, err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	for end := time.Now().Add(30 * time.Second); k.got.Load() != 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d messages arrived", k.got.Load())
		}
	}
	results, err = fanout.Send(context.Background(), c, "Cache.Drop", &query{"x"}, anser.WithFailMode(anser.Fork))
	if err != nil || anser.CodeOf(results[0].Err) != anser.InvalidArgument {
		t.Error(results, err)
	}
}

func TestNoInstances(t *testing.T) {
	m := registry.NewMemory()
	defer m.Close()
	c, err := anser.Dial("memory:///cache", silent, m.Scheme("memory"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fanout.Broadcast[answer](context.Background(), c, "Cache.Drop", &query{}, fanout.All); anser.CodeOf(err) != anser.Unavailable {
		t.Error(err)
	}
	if _, err := fanout.Inform[answer](context.Background(), c, "Cache.Drop", &query{}); anser.OutcomeOf(err) != anser.NotSent {
		t.Error(err)
	}
	if _, err := fanout.Send(context.Background(), c, "Cache.Drop", &query{}); anser.CodeOf(err) != anser.Unavailable {
		t.Error(err)
	}
	//lint:ignore SA1012 a nil context is the subject of this test
	if _, err := fanout.Inform[answer](nil, c, "Cache.Drop", &query{}); err == nil {
		t.Error("a nil context was taken")
	}
}
