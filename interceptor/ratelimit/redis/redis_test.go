package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/interceptor/ratelimit"
	"github.com/anser-rpc/anser/interceptor/ratelimit/redis"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

const (
	never = 1e-6 // so low that no test sees a token refilled
	bound = 2 * time.Minute
)

// server is a Redis server in a folder of its own.
type server struct {
	socket string
	cmd    *exec.Cmd
}

func start(t *testing.T) *server {
	t.Helper()
	s := &server{socket: filepath.Join(t.TempDir(), "redis.sock")}
	s.run(t)
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *server) run(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no", "--dir", filepath.Dir(s.socket))
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("%v: install redis-server (apt-get install redis-server)", err)
	}
	for end := time.Now().Add(bound); ; time.Sleep(5 * time.Millisecond) {
		nc, err := net.Dial("unix", s.socket)
		if err == nil {
			nc.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("redis-server does not listen after %v: %v", bound, err)
		}
	}
}

func (s *server) stop() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) option() rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{s.socket}, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		},
	}
}

func open(t *testing.T, s *server) *redis.Bank {
	t.Helper()
	b, err := redis.Open(s.option(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestWithdraw(t *testing.T) {
	b := open(t, start(t))
	ctx := context.Background()
	r := ratelimit.Rate{PerSecond: never, Burst: 10}
	for i, step := range []struct{ spent, want, given int }{
		{0, 4, 4},
		{0, 4, 4},
		{0, 4, 2}, // the rest
		{0, 4, 0},
		{3, 1, 0}, // a debt
	} {
		given, wait, err := b.Withdraw(ctx, "a", r, step.spent, step.want)
		if err != nil || given != step.given || (wait > time.Hour) != (given == 0) {
			t.Errorf("withdrawal %d: %d, %v, %v; want %d", i, given, wait, err, step.given)
		}
	}
	if given, _, err := b.Withdraw(ctx, "b", r, 0, 100); given != 10 || err != nil {
		t.Errorf("another bucket: %d, %v; want 10", given, err)
	}
	// The wait is the time until the missing tokens are refilled: three at first, and less later
	// on.
	slow := ratelimit.Rate{PerSecond: 0.001, Burst: 2}
	if given, _, err := b.Withdraw(ctx, "c", slow, 0, 2); given != 2 || err != nil {
		t.Fatal(given, err)
	}
	if given, wait, err := b.Withdraw(ctx, "c", slow, 2, 1); given != 0 || err != nil || wait <= 2900*time.Second || wait > 3000*time.Second {
		t.Errorf("%d, %v, %v; want to wait 2900 to 3000 s", given, wait, err)
	}
	// With a fast rate there is a token after the wait.
	fast := ratelimit.Rate{PerSecond: 20, Burst: 1}
	given, wait, err := b.Withdraw(ctx, "d", fast, 1, 1) // of a full bucket, so that none has been refilled yet
	if given != 0 || err != nil || wait != 50*time.Millisecond {
		t.Errorf("%d, %v, %v; want to wait 50 ms", given, wait, err)
	}
	time.Sleep(wait)
	if given, _, err := b.Withdraw(ctx, "d", fast, 0, 1); given != 1 || err != nil {
		t.Errorf("after the wait: %d, %v", given, err)
	}
}

// Concurrent withdrawals never return the same token twice.
func TestWithdrawAtOnce(t *testing.T) {
	s := start(t)
	var total atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		b := open(t, s)
		wg.Go(func() {
			for range 100 {
				given, _, err := b.Withdraw(context.Background(), "a", ratelimit.Rate{PerSecond: never, Burst: 1000}, 0, 3)
				if err != nil {
					t.Error(err)
					return
				}
				total.Add(int64(given))
			}
		})
	}
	wg.Wait()
	if n := total.Load(); n != 1000 {
		t.Errorf("%d tokens were given of 1000", n)
	}
}

// serve runs an instance with a limit in the bank, and returns a client without retries.
func serve(t *testing.T, b *redis.Bank, r ratelimit.Rate, instances int) (*ratelimit.Limiter, *anser.Client, *atomic.Int64) {
	t.Helper()
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	l, err := ratelimit.New(ratelimit.Server(r), ratelimit.Through(b), ratelimit.Instances(instances), ratelimit.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ran := new(atomic.Int64)
	s := anser.NewServer(silent, anser.HandshakeTimeout(time.Minute), anser.Observe(l.Observer()))
	anser.Handle(s, "A.Do", func(_ context.Context, in *[]byte) (*[]byte, error) {
		ran.Add(1)
		return in, nil
	})
	nl, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(nl) }()
	c, err := anser.Dial(nl.Addr().String(), silent, anser.WithFailMode(anser.Failfast), anser.Timeout(time.Minute), anser.HandshakeTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
		<-served
		l.Close()
	})
	return l, c, ran
}

// refused makes a call and returns its error if the limit refused it.
func refused(t *testing.T, c *anser.Client) *anser.Error {
	t.Helper()
	_, err := anser.Call[[]byte](context.Background(), c, "A.Do", new([]byte("x")))
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*anser.Error](err)
	if !ok || e.Code != anser.ResourceExhausted || e.Outcome != anser.Refused || e.RetryAfter <= 0 {
		t.Fatalf("%v: want ResourceExhausted, Refused, and when to retry", err)
	}
	return e
}

// Three instances share one limit, although one of them gets all calls.
func TestOneLimitForAllInstances(t *testing.T) {
	s := start(t)
	total := int64(0)
	for range 3 {
		_, c, ran := serve(t, open(t, s), ratelimit.Rate{PerSecond: never, Burst: 300}, 3)
		for end := time.Now().Add(bound); ; {
			if e := refused(t, c); e != nil && e.RetryAfter > time.Minute {
				break
			}
			if time.Now().After(end) {
				t.Fatal("Redis is not asked, or what it says does not hold")
			}
		}
		total += ran.Load()
	}
	// Each may have used its share before the first answer of Redis.
	if total < 250 || total > 300+3*100 {
		t.Errorf("%d calls ran of 300", total)
	}
	t.Logf("%d calls ran of 300", total)
}

// While Redis is down each instance has its share; calls do not wait. When it is back, it counts
// again.
func TestRedisIsGone(t *testing.T) {
	s := start(t)
	s.stop()
	b := open(t, s)
	l, c, ran := serve(t, b, ratelimit.Rate{PerSecond: never, Burst: 30}, 3)
	for range 40 {
		refused(t, c)
	}
	if n := ran.Load(); n != 10 {
		t.Errorf("%d calls ran without Redis, want a third of 30", n)
	}
	until := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(bound); !f(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within %v: %s", bound, what)
			}
		}
	}
	until("the failure is counted", func() bool { return l.Stats().BankFailures > 0 })
	s.run(t)
	until("the tokens of Redis are used", func() bool { return refused(t, c) == nil })
	s.stop() // during the calls
	until("the failure is counted", func() bool { refused(t, c); return l.Stats().BankFailures > 1 })
	s.run(t) // without its data: the bucket is full again
	until("the tokens of Redis are used again", func() bool { return refused(t, c) == nil })
}

func TestOpenWithout(t *testing.T) {
	if _, err := redis.Open(rueidis.ClientOption{}, "a"); err == nil || !strings.Contains(err.Error(), "InitAddress") {
		t.Error(err)
	}
	if _, err := redis.Open(rueidis.ClientOption{InitAddress: []string{"a:1"}}, ""); err == nil || !strings.Contains(err.Error(), "prefix") {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	b := open(t, start(t))
	if _, _, err := b.Withdraw(context.Background(), "a", ratelimit.Rate{PerSecond: 1, Burst: 1}, 0, 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := b.Withdraw(context.Background(), "a", ratelimit.Rate{PerSecond: 1, Burst: 1}, 0, 1); err == nil {
		t.Error("a closed bank gives tokens")
	}
}

func Example() {
	bank, err := redis.Open(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}, "arith")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bank.Close()
	limits, err := ratelimit.New(ratelimit.Server(ratelimit.Rate{PerSecond: 10_000, Burst: 1000}), ratelimit.Through(bank), ratelimit.Instances(3))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limits.Close()
	s := anser.NewServer(anser.Observe(limits.Observer()))
	defer s.Close()
	// Output:
}
