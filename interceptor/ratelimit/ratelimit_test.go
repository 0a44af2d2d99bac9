package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/interceptor/ratelimit"
	"github.com/anser-rpc/anser/registry"
)

// never is a rate so low that no test sees a token refilled.
const never = 1e-6

// limiter returns a limiter that is closed when the test ends.
func limiter(t testing.TB, opts ...ratelimit.Option) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.New(append(opts, ratelimit.Logger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serve runs a server with the methods A.Do and B.Do, which count their calls, and returns a
// client without retries.
func serve(t testing.TB, l *ratelimit.Limiter) (c *anser.Client, ran *atomic.Int64, s *anser.Server) {
	t.Helper()
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, nl)
}

// serveOn is like serve, on a given listener, for a client with further options.
func serveOn(t testing.TB, l *ratelimit.Limiter, nl net.Listener, opts ...anser.DialOption) (c *anser.Client, ran *atomic.Int64, s *anser.Server) {
	t.Helper()
	ran = new(atomic.Int64)
	s = anser.NewServer(silent, anser.HandshakeTimeout(time.Minute), anser.Observe(l.Observer()))
	do := func(_ context.Context, in *[]byte) (*[]byte, error) {
		ran.Add(1)
		return in, nil
	}
	anser.Handle(s, "A.Do", do)
	anser.Handle(s, "B.Do", do, anser.Alias("B.Also"))
	served := make(chan error, 1)
	go func() { served <- s.Serve(nl) }()
	c, err := anser.Dial(nl.Addr().String(), append(opts, silent, anser.WithFailMode(anser.Failfast), anser.Timeout(time.Minute), anser.HandshakeTimeout(time.Minute))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
		<-served
	})
	return c, ran, s
}

// try makes a call, and returns nil if it ran and its error if a limit refused it.
func try(t testing.TB, ctx context.Context, c *anser.Client, method string) *anser.Error {
	t.Helper()
	_, err := anser.Call[[]byte](ctx, c, method, new([]byte("x")))
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*anser.Error](err)
	if !ok || e.Code != anser.ResourceExhausted || e.Outcome != anser.Refused {
		t.Fatalf("%v: want ResourceExhausted, Refused", err)
	}
	return e
}

// taken returns how many of n calls ran before the first refused one, and its error.
func taken(t testing.TB, ctx context.Context, c *anser.Client, method string, n int) (int, *anser.Error) {
	t.Helper()
	for i := range n {
		if e := try(t, ctx, c, method); e != nil {
			return i, e
		}
	}
	return n, nil
}

func TestServer(t *testing.T) {
	l := limiter(t, ratelimit.Server(ratelimit.Rate{PerSecond: never, Burst: 5}))
	c, ran, s := serve(t, l)
	ctx := context.Background()
	n, e := taken(t, ctx, c, "A.Do", 10)
	if n != 5 {
		t.Fatalf("%d calls ran, want 5", n)
	}
	if want := "over the limit of 1e-06 calls per second with bursts of 5 for the server (ratelimit.Server)"; e.Message != want {
		t.Errorf("%q, want %q", e.Message, want)
	}
	if e.RetryAfter < time.Hour {
		t.Errorf("retry after %v, want about 1e6 s", e.RetryAfter)
	}
	if try(t, ctx, c, "B.Do") == nil {
		t.Error("a call of another method has a limit of its own")
	}
	if ran.Load() != 5 {
		t.Errorf("%d handlers ran, want 5", ran.Load())
	}
	if got := l.Stats().Refused["server"]; got != 2 {
		t.Errorf("%d are counted as refused, want 2", got)
	}
	if st := s.Stats(); st.Refused != 2 || st.Methods["A.Do"].Refused != 1 || st.Methods["A.Do"].Calls != 5 {
		t.Errorf("the server counts %+v", st)
	}
}

func TestTokensComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // over a socket a call would take as long as a token, and never find the bucket empty
		l := limiter(t, ratelimit.Server(ratelimit.Rate{PerSecond: 50, Burst: 1}))
		network := new(ansertest.Network)
		c, _, _ := serveOn(t, l, network.Listen("a:1"), anser.Dialer(network.Dial))
		ctx := context.Background()
		if e := try(t, ctx, c, "A.Do"); e != nil {
			t.Fatal(e)
		}
		for range 3 {
			e := try(t, ctx, c, "A.Do")
			if e == nil {
				t.Fatal("a second call at the same moment runs")
			}
			if e.RetryAfter != 20*time.Millisecond {
				t.Errorf("retry after %v, want 20 ms", e.RetryAfter)
			}
			time.Sleep(e.RetryAfter)
			if e := try(t, ctx, c, "A.Do"); e != nil {
				t.Errorf("after the time that the server said: %v", e)
			}
		}
		// The client's own retry waits for that long, too.
		if _, err := anser.Call[[]byte](ctx, c, "A.Do", new([]byte("x")), anser.WithFailMode(anser.Failover), anser.Attempts(5)); err != nil {
			t.Error(err)
		}
	})
}

func TestMethod(t *testing.T) {
	l := limiter(t, ratelimit.Method("B.Do", ratelimit.Rate{PerSecond: never, Burst: 2}))
	c, _, _ := serve(t, l)
	ctx := context.Background()
	if n, _ := taken(t, ctx, c, "A.Do", 20); n != 20 {
		t.Errorf("%d calls of the method without a limit ran, want 20", n)
	}
	if e := try(t, ctx, c, "B.Also"); e != nil { // an alias counts for its method
		t.Error(e)
	}
	if n, e := taken(t, ctx, c, "B.Do", 5); n != 1 || !strings.Contains(e.Message, "for the method B.Do (ratelimit.Method)") {
		t.Errorf("%d calls ran, %v", n, e)
	}
}

func as(who string) context.Context {
	return anser.WithMetadata(context.Background(), anser.Metadata{"tenant": who})
}

func TestCallers(t *testing.T) {
	l := limiter(t,
		ratelimit.Caller(ratelimit.ByMetadata("Tenant"), ratelimit.Rate{PerSecond: never, Burst: 3}),
		ratelimit.Server(ratelimit.Rate{PerSecond: never, Burst: 7}))
	c, _, _ := serve(t, l)
	for _, who := range []string{"a", "b"} {
		if n, e := taken(t, as(who), c, "A.Do", 100); n != 3 || !strings.Contains(e.Message, "for a caller (ratelimit.Caller)") {
			t.Errorf("caller %s: %d calls ran, %v", who, n, e)
		}
	}
	// Calls refused by the callers' limits took no tokens from the server's.
	if n, e := taken(t, as("c"), c, "A.Do", 100); n != 1 || !strings.Contains(e.Message, "ratelimit.Server") {
		t.Errorf("%d calls ran, %v", n, e)
	}
	if st := l.Stats(); st.Callers != 3 || st.Refused["caller"] != 2 || st.Refused["server"] != 1 {
		t.Errorf("%+v", st)
	}
}

// Callers that invent names do not get more, and the table does not grow.
func TestMaxCallers(t *testing.T) {
	l := limiter(t, ratelimit.Caller(ratelimit.ByMetadata("tenant"), ratelimit.Rate{PerSecond: never, Burst: 2}), ratelimit.MaxCallers(2))
	c, ran, _ := serve(t, l)
	for i := range 50 {
		try(t, as(fmt.Sprint(i)), c, "A.Do")
	}
	if got := ran.Load(); got != 4 { // one each of 0 and 1, and two of the others together
		t.Errorf("%d calls ran, want 4", got)
	}
	if n := l.Stats().Callers; n != 2 {
		t.Errorf("%d callers in the table, want 2", n)
	}
	if n, _ := taken(t, as("0"), c, "A.Do", 5); n != 1 {
		t.Errorf("a caller in the table has %d calls left, want 1", n)
	}
}

func TestCallersThatAreGoneMakeRoom(t *testing.T) {
	l := limiter(t, ratelimit.Caller(ratelimit.ByMetadata("tenant"), ratelimit.Rate{PerSecond: 1000, Burst: 1}), ratelimit.MaxCallers(1))
	c, _, _ := serve(t, l)
	for i := range 20 {
		time.Sleep(2 * time.Millisecond) // longer than it takes to refill a bucket
		if e := try(t, as(fmt.Sprint(i)), c, "A.Do"); e != nil {
			t.Errorf("caller %d: %v", i, e)
		}
	}
	if n := l.Stats().Callers; n != 1 {
		t.Errorf("%d callers in the table, want 1", n)
	}
}

func TestByAddress(t *testing.T) {
	l := limiter(t, ratelimit.Caller(ratelimit.ByAddress, ratelimit.Rate{PerSecond: never, Burst: 2}))
	c, _, s := serve(t, l)
	ctx := context.Background()
	if n, _ := taken(t, ctx, c, "A.Do", 5); n != 2 {
		t.Errorf("%d calls ran, want 2", n)
	}
	// Another port is not another address.
	other, err := anser.Dial(s.Addrs()[0].String(), silent, anser.WithFailMode(anser.Failfast), anser.HandshakeTimeout(time.Minute), anser.Dialer(new(net.Dialer).DialContext))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if try(t, ctx, other, "A.Do") == nil {
		t.Error("a second connection of the same address has a bucket of its own")
	}
}

func TestShare(t *testing.T) {
	m := registry.NewMemory()
	defer m.Close()
	at := func(port int, state registry.State) registry.Instance {
		return registry.Instance{Service: "arith", Address: fmt.Sprintf("127.0.0.1:%d", port), State: state}
	}
	l := limiter(t, ratelimit.Server(ratelimit.Rate{PerSecond: never, Burst: 12}), ratelimit.Share(m, "arith"), ratelimit.Instances(4))
	instances := func(n int) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); l.Stats().Instances != n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after 30 s %d instances are known, want %d", l.Stats().Instances, n)
			}
		}
	}
	ctx := context.Background()
	instances(4) // of the option: the registry has none
	for i := range 3 {
		if err := m.Register(ctx, at(i+1, registry.Up)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Register(ctx, at(9, registry.Draining)); err != nil {
		t.Fatal(err)
	}
	instances(3)
	c, _, _ := serve(t, l)
	if n, _ := taken(t, ctx, c, "A.Do", 20); n > 4 {
		t.Errorf("%d calls ran, want a third of 12 at most", n)
	}
	if err := m.Deregister(ctx, at(1, registry.Up)); err != nil {
		t.Fatal(err)
	}
	instances(2)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if try(t, ctx, c, "A.Do") == nil {
		t.Error("a closed limiter takes what it refused before")
	}
}

// bank is an in-memory bank, which can be made to fail or to hang.
type bank struct {
	mu     sync.Mutex
	tokens map[string]int
	asked  int
	fails  bool
	hangs  chan struct{} // nil: it does not hang
}

func (b *bank) Withdraw(ctx context.Context, bucket string, r ratelimit.Rate, spent, want int) (int, time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	if b.hangs != nil {
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		return 0, 0, ctx.Err()
	}
	if b.fails {
		return 0, 0, errors.New("the bank is closed")
	}
	left, ok := b.tokens[bucket]
	if !ok {
		left = r.Burst
	}
	left -= spent
	given := max(0, min(left, want))
	b.tokens[bucket] = left - given
	return given, time.Hour, nil
}

// Two instances that share a bank together admit no more than the limit, except for calls before
// the bank's first answer.
func TestBank(t *testing.T) {
	shared := &bank{tokens: make(map[string]int)}
	var all atomic.Int64
	for range 2 {
		l := limiter(t, ratelimit.Server(ratelimit.Rate{PerSecond: never, Burst: 100}), ratelimit.Through(shared), ratelimit.Instances(2))
		c, ran, _ := serve(t, l)
		for end := time.Now().Add(30 * time.Second); ; {
			e := try(t, context.Background(), c, "A.Do")
			if e != nil && e.RetryAfter > time.Minute {
				break // the bank has refused
			}
			if time.Now().After(end) {
				t.Fatal("the bank is not asked, or what it says does not hold")
			}
		}
		all.Add(ran.Load())
	}
	// All debts are settled while the bank has tokens: an instance uses its share before the bank
	// has answered for the first time, which may be more than is left.
	gone := func() int {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		return 100 - shared.tokens["server"]
	}
	n := int(all.Load())
	for end := time.Now().Add(30 * time.Second); min(n, 100) > gone(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d calls ran and the bank knows of %d", n, gone())
		}
	}
	if n < 50 || n > 100+50 {
		t.Errorf("%d calls ran, want 50 to 150", n)
	}
}

// A bank that fails or hangs fails no call: the share of the instance applies.
func TestBankThatIsGone(t *testing.T) {
	for name, gone := range map[string]*bank{"fails": {fails: true}, "hangs": {hangs: make(chan struct{})}} {
		t.Run(name, func(t *testing.T) {
			l := limiter(t, ratelimit.Server(ratelimit.Rate{PerSecond: never, Burst: 12}), ratelimit.Through(gone), ratelimit.Instances(3))
			c, _, _ := serve(t, l)
			if n, e := taken(t, context.Background(), c, "A.Do", 20); n != 4 || e.RetryAfter < time.Hour {
				t.Errorf("%d calls ran, %v; want a third of 12", n, e)
			}
			for end := time.Now().Add(30 * time.Second); l.Stats().BankFailures == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the failure is not counted")
				}
			}
		})
	}
}

func TestBankThatComesBack(t *testing.T) {
	b := &bank{fails: true, tokens: make(map[string]int)}
	l := limiter(t, ratelimit.Server(ratelimit.Rate{PerSecond: never, Burst: 10}), ratelimit.Through(b))
	c, _, _ := serve(t, l)
	ctx := context.Background()
	if n, _ := taken(t, ctx, c, "A.Do", 20); n != 10 {
		t.Errorf("%d calls ran alone, want 10", n)
	}
	b.mu.Lock()
	b.fails = false
	b.mu.Unlock()
	for end := time.Now().Add(30 * time.Second); try(t, ctx, c, "A.Do") != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the tokens of the bank are not used although it answers again")
		}
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	one := ratelimit.Rate{PerSecond: 1, Burst: 1}
	for want, opts := range map[string][]ratelimit.Option{
		"there is no limit":                       nil,
		"an option is nil":                        {nil},
		"ratelimit.Server: 0 calls per second":    {ratelimit.Server(ratelimit.Rate{Burst: 1})},
		"bursts of at least 1":                    {ratelimit.Method("A.B", ratelimit.Rate{PerSecond: 1})},
		"named twice":                             {ratelimit.Method("A.B", one), ratelimit.Method("A.B", one)},
		"ratelimit.Method:":                       {ratelimit.Method("", one)},
		"the key is nil":                          {ratelimit.Caller(nil, one)},
		"ratelimit.MaxCallers(0)":                 {ratelimit.Server(one), ratelimit.MaxCallers(0)},
		"the registry is nil":                     {ratelimit.Server(one), ratelimit.Share(nil, "a")},
		"the service has no name":                 {ratelimit.Server(one), ratelimit.Share(registry.NewMemory(), "")},
		"ratelimit.Instances(0): want at least 1": {ratelimit.Server(one), ratelimit.Instances(0)},
		"the bank is nil":                         {ratelimit.Server(one), ratelimit.Through(nil)},
		"the logger is nil: leave the option out": {ratelimit.Server(one), ratelimit.Logger(nil)},
	} {
		if l, err := ratelimit.New(opts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %s", l, err, want)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	l := limiter(b, ratelimit.Server(ratelimit.Rate{PerSecond: 1e12, Burst: 1e9}))
	ask := l.Observer().Request
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := ask(ctx, anser.MessageInfo{Server: true, Method: "A.Do"}); err != nil {
			b.Fatal(err)
		}
	}
}

// A caller has one bucket, over any number of connections.
func TestByIdentity(t *testing.T) {
	l := limiter(t, ratelimit.Caller(ratelimit.ByIdentity, ratelimit.Rate{PerSecond: never, Burst: 2}))
	s := anser.NewServer(silent, anser.HandshakeTimeout(time.Minute), anser.Observe(l.Observer()), anser.Authenticate(anser.AuthenticatorFunc(
		func(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
			return &anser.Identity{Subject: string(l.Data)}, nil
		})))
	anser.Handle(s, "A.Do", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	defer func() { s.Close(); <-served }()
	for _, want := range []struct {
		who string
		ran int
	}{{"ann", 2}, {"ann", 0}, {"bob", 2}} {
		c, err := anser.Dial(lis.Addr().String(), silent, anser.NoSnapshot(), anser.WithFailMode(anser.Failfast), anser.HandshakeTimeout(time.Minute), anser.Credentials(
			func(context.Context) (anser.Credential, error) {
				return anser.Credential{Scheme: "test", Data: []byte(want.who)}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if n, _ := taken(t, t.Context(), c, "A.Do", 5); n != want.ran {
			t.Errorf("%d calls of %s ran, want %d", n, want.who, want.ran)
		}
	}
}
