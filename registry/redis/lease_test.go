package redis_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/redis"
)

// backWithin is how long an instance may be away that the registry forgot while its process lives. Tests
// wait longer, since the machine may be busy, and log how long it took.
const (
	backWithin = 5 * time.Second
	patience   = 30 * time.Second
)

func instance(address string) registry.Instance {
	return registry.Instance{Service: "arith", Address: address}
}

func register(t *testing.T, r registry.Registrar, in registry.Instance) {
	t.Helper()
	if err := r.Register(within(t, patience), in); err != nil {
		t.Fatal(err)
	}
}

// eventually polls until ok, and fails the test after its patience.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// addresses returns what the registry lists for the service arith, or the error.
func addresses(t *testing.T, r registry.Resolver) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	list, err := registry.List(ctx, r, "arith")
	if err != nil {
		return err.Error()
	}
	return join(list)
}

func join(list []registry.Instance) string {
	texts := make([]string, len(list))
	for i, in := range list {
		texts[i] = in.Address
	}
	return strings.Join(texts, " ")
}

// What an operator sees with redis-cli.
func TestRecordInRedis(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix))
	in := instance("unix:///run/a.sock")
	in.Zone = "north"
	register(t, r, in)
	want := "unix:///run/a.sock\n" + `{"service":"arith","address":"unix:///run/a.sock","zone":"north"}`
	if got := shared.do(t, "HGETALL", prefix+":{arith}:instances"); got != want {
		t.Errorf("redis has %q, want %q", got, want)
	}
	for _, what := range []string{"instances", "expiry", "owners", "revision"} {
		if got := shared.do(t, "TTL", prefix+":{arith}:"+what); got == "-1" || got == "-2" {
			t.Errorf("key %s has the time to live %s: it would stay when everybody has died", what, got)
		}
	}
}

func TestDeletedRecordComesBack(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix), redis.TTL(time.Second))
	register(t, r, instance("h1:1"))
	register(t, r, instance("h2:1"))
	shared.do(t, "HDEL", prefix+":{arith}:instances", "h1:1")
	eventually(t, "both instances", func() bool { return addresses(t, r) == "h1:1 h2:1" })
	if got := shared.do(t, "HLEN", prefix+":{arith}:instances"); got != "2" {
		t.Errorf("%s records, want 2", got)
	}
}

// Redis without persistence comes back with nothing.
func TestServerComesBackEmpty(t *testing.T) {
	s := ownServer(t, &server{})
	announcer, client := s.dial(t), s.dial(t)
	for _, address := range []string{"h1:1", "h2:1", "h3:1"} {
		register(t, announcer, instance(address))
	}
	w := watchAddresses(t, client)
	w.await(t, "h1:1 h2:1 h3:1")
	s.stop()
	w.awaitTrouble(t)
	restart(t, s)
	since := time.Now()
	eventually(t, "all instances", func() bool { return addresses(t, client) == "h1:1 h2:1 h3:1" })
	t.Logf("announced again after %v, want %v", time.Since(since), backWithin)
	w.await(t, "h1:1 h2:1 h3:1")
	if got := s.do(t, "HLEN", "anser:{arith}:instances"); got != "3" {
		t.Errorf("%s records, want 3", got)
	}
}

// An outage longer than the time to live expires everything, and nobody can renew meanwhile. A watcher does
// not take that for news.
func TestLongOutageCostsNoInstance(t *testing.T) {
	s := ownServer(t, &server{args: []string{"--appendonly", "yes"}})
	announcer, client := s.dial(t, redis.TTL(time.Second)), s.dial(t)
	register(t, announcer, instance("h1:1"))
	register(t, announcer, instance("h2:1"))
	w := watchAddresses(t, client)
	w.await(t, "h1:1 h2:1")
	s.stop()
	w.awaitTrouble(t)
	time.Sleep(1500 * time.Millisecond) // the outage
	restart(t, s)
	w.expect(t, "h1:1 h2:1") // and not an empty list
	register(t, announcer, instance("h3:1"))
	w.expect(t, "h1:1 h2:1 h3:1")
}

func TestInstancesOfADeadProcessGo(t *testing.T) {
	prefix := freshPrefix()
	c := dialRueidis(t, shared)
	dead, err := redis.New(c, redis.Prefix(prefix), redis.TTL(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dead.Close() })
	register(t, dead, instance("h1:1"))
	w := watchAddresses(t, shared.dial(t, redis.Prefix(prefix)))
	w.await(t, "h1:1")
	c.Close() // nothing leaves the process any more
	w.await(t, "")
}

func dialRueidis(t *testing.T, s *server) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.address}, ForceSingleClient: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNewLeavesTheClientOpen(t *testing.T) {
	c, prefix := dialRueidis(t, shared), freshPrefix()
	r, err := redis.New(c, redis.Prefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	register(t, r, instance("h1:1"))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Do(t.Context(), c.B().Hlen().Key(prefix+":{arith}:instances").Build()).AsInt64(); err != nil || n != 0 {
		t.Errorf("after Close the client says %d, %v: want 0 records, and that it is open", n, err)
	}
	if _, err := redis.New(nil); err == nil {
		t.Error("New took a client that is nil")
	}
}

// A process whose key was taken over leaves it to the new owner, also when Redis forgets both and the old one
// is the first to notice.
func TestKeyTakenOverIsNotFoughtFor(t *testing.T) {
	var logs lockedBuffer
	prefix := freshPrefix()
	old := shared.dial(t, redis.Prefix(prefix), redis.TTL(time.Second), redis.Logger(slog.New(slog.NewTextHandler(&logs, nil))))
	register(t, old, instance("h1:1"))
	register(t, old, instance("h2:1"))
	fresh := shared.dial(t, redis.Prefix(prefix))
	taken := instance("h1:1")
	taken.Version = "2"
	register(t, fresh, taken)
	eventually(t, "the old owner letting go", func() bool { return strings.Contains(logs.String(), "taken an instance over") })
	forget(t, shared, prefix)
	eventually(t, "the record of the new owner", func() bool {
		list, err := registry.List(t.Context(), old, "arith")
		return err == nil && len(list) == 2 && list[0].Equal(taken)
	})
}

// What nobody published is seen all the same: publishing is lossy, and expiry is not published at all.
func TestUnpublishedChangesAreSeen(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix))
	register(t, r, instance("h1:1"))
	w := watchAddresses(t, r)
	w.await(t, "h1:1")
	key := prefix + ":{arith}:"
	shared.do(t, "HSET", key+"instances", "h2:1", `{"service":"arith","address":"h2:1"}`)
	shared.do(t, "ZADD", key+"expiry", "9999999999999", "h2:1")
	shared.do(t, "INCR", key+"revision")
	w.await(t, "h1:1 h2:1")
	shared.do(t, "ZADD", key+"expiry", "1", "h2:1")
	shared.do(t, "INCR", key+"revision")
	w.await(t, "h1:1")
}

func TestBrokenRecordsAreLeftOut(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix))
	put := func(field, record string) {
		t.Helper()
		shared.do(t, "HSET", prefix+":{arith}:instances", field, record)
		shared.do(t, "ZADD", prefix+":{arith}:expiry", "9999999999999", field)
		shared.do(t, "INCR", prefix+":{arith}:revision")
	}
	put("junk", "{")
	w := watchAddresses(t, r)
	if err := w.awaitTrouble(t); !strings.Contains(err.Error(), `{arith}:instances, field "junk"`) {
		t.Errorf("trouble %v, want the hash and the field", err)
	}
	w.expect(t, "")
	register(t, r, instance("h1:1"))
	w.await(t, "h1:1")
	put("junk", `{"service":"arith","address":"h2:1"}`)
	if err := w.awaitTrouble(t); !strings.Contains(err.Error(), "move it there, or delete it") {
		t.Errorf("trouble %v, want what to do with a record under a foreign key", err)
	}
	w.await(t, "h1:1")
	shared.do(t, "HDEL", prefix+":{arith}:instances", "junk")
	shared.do(t, "INCR", prefix+":{arith}:revision")
	w.expect(t, "h1:1")
}

// Two servers say that Redis has lost a document, and where it starts again.
func TestRevisionsGrowOverDataLoss(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix))
	ctx := within(t, patience)
	first, err := r.Save(ctx, registry.Document{Name: "rules/arith", Data: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	forget(t, shared, prefix)
	second, err := r.Save(ctx, registry.Document{Name: "rules/arith", Data: []byte("2")})
	if err != nil || second <= first {
		t.Errorf("after the loss of revision %d: %d, %v, want a larger one", first, second, err)
	}
	shared.do(t, "HSET", prefix+":document:rules/arith", "revision", "x")
	if _, err := r.Load(ctx, "rules/arith"); err == nil || !strings.Contains(err.Error(), "delete it") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Load of a broken document = %v, want at once what to do", err)
	}
}

type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// watched is what a watcher of the service arith was told, in order.
type watched struct {
	updates  chan string // addresses
	troubles chan error
}

func watchAddresses(t *testing.T, r registry.Resolver) *watched {
	w := &watched{make(chan string, 1000), make(chan error, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Watch(ctx, "arith", func(list []registry.Instance) { w.updates <- join(list) }, func(err error) { w.troubles <- err })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// await waits for an update with these addresses, past others.
func (w *watched) await(t *testing.T, want string) {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case got := <-w.updates:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("no update with %q", want)
		}
	}
}

// expect makes sure that the next update is this one.
func (w *watched) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-w.updates:
		if got != want {
			t.Fatalf("update with %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("no update, want %q", want)
	}
}

func (w *watched) awaitTrouble(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.troubles:
		return err
	case <-time.After(patience):
		t.Fatal("no trouble")
		return nil
	}
}

// Out of memory, Redis refuses to write. That passes, so Register waits, and says why when it may not wait any
// longer.
func TestRedisIsFull(t *testing.T) {
	s := ownServer(t, &server{})
	r := s.dial(t)
	register(t, r, instance("h1:1"))
	s.do(t, "CONFIG", "SET", "maxmemory", "1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := r.Register(ctx, instance("h2:1"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("Register = %v, want the context's error and that memory has run out", err)
	}
	if got := addresses(t, r); got != "h1:1" {
		t.Errorf("list of a full server: %q", got)
	}
	s.do(t, "CONFIG", "SET", "maxmemory", "0")
	register(t, r, instance("h3:1"))
	if got := addresses(t, r); got != "h1:1 h3:1" {
		t.Errorf("list after that: %q", got)
	}
}
