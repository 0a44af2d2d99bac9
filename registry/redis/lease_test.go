package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/redis"
)

// The view of an operator with redis-cli.
func TestRecordInRedis(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix))
	in := regtest.Instance("unix:///run/a.sock")
	in.Zone = "north"
	regtest.Register(t, r, in)
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
	r := shared.dial(t, redis.Prefix(prefix))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	regtest.Register(t, r, regtest.Instance("h2:1"))
	regtest.Back(t, regtest.BackWithin, "both instances", func() { shared.do(t, "HDEL", prefix+":{arith}:instances", "h1:1") },
		func() bool { return regtest.Addresses(t, r) == "h1:1 h2:1" })
	if got := shared.do(t, "HLEN", prefix+":{arith}:instances"); got != "2" {
		t.Errorf("%s records, want 2", got)
	}
}

// Redis without persistence comes back without its data.
func TestServerComesBackEmpty(t *testing.T) {
	s := newServer(t)
	s.start(t)
	announcer, client := s.dial(t), s.dial(t)
	for _, address := range []string{"h1:1", "h2:1", "h3:1"} {
		regtest.Register(t, announcer, regtest.Instance(address))
	}
	w := regtest.NewWatch(t, client)
	w.Await("h1:1 h2:1 h3:1")
	regtest.Back(t, regtest.BackWithin, "all instances", func() {
		s.Stop()
		w.AwaitTrouble("")
		s.start(t)
	}, func() bool { return regtest.Addresses(t, client) == "h1:1 h2:1 h3:1" })
	w.Await("h1:1 h2:1 h3:1")
	if got := s.do(t, "HLEN", "anser:{arith}:instances"); got != "3" {
		t.Errorf("%s records, want 3", got)
	}
}

// In an outage longer than the TTL all records expire, because they cannot be renewed. A watcher
// must keep them.
func TestLongOutageCostsNoInstance(t *testing.T) {
	s := newServer(t, "--appendonly", "yes")
	s.start(t)
	const ttl = 10 * time.Second // longer than a pause of the machine
	announcer, client := s.dial(t, redis.TTL(ttl)), s.dial(t)
	regtest.Register(t, announcer, regtest.Instance("h1:1"))
	regtest.Register(t, announcer, regtest.Instance("h2:1"))
	w := regtest.NewWatch(t, client)
	w.Await("h1:1 h2:1")
	s.Stop()
	w.ExpectTrouble("")
	time.Sleep(ttl) // the outage: all records were renewed before it
	s.start(t)
	w.Expect("h1:1 h2:1") // not an empty list
	regtest.Register(t, announcer, regtest.Instance("h3:1"))
	w.Expect("h1:1 h2:1 h3:1")
}

func TestInstancesOfADeadProcessGo(t *testing.T) {
	prefix := freshPrefix()
	c := dialRueidis(t, shared)
	dead, err := redis.New(c, redis.Prefix(prefix), redis.TTL(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dead.Close() })
	regtest.Register(t, dead, regtest.Instance("h1:1"))
	w := regtest.NewWatch(t, shared.dial(t, redis.Prefix(prefix)))
	w.Await("h1:1")
	c.Close() // from here on, the process sends nothing
	w.Await("")
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
	regtest.Register(t, r, regtest.Instance("h1:1"))
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

// A process whose key was taken over leaves it to the new owner, even if Redis loses both records
// and the old process notices first.
func TestKeyTakenOverIsNotFoughtFor(t *testing.T) {
	var logs testlog.Buffer
	prefix := freshPrefix()
	old := shared.dial(t, redis.Prefix(prefix), redis.TTL(time.Second), redis.Logger(logs.Logger()))
	regtest.Register(t, old, regtest.Instance("h1:1"))
	regtest.Register(t, old, regtest.Instance("h2:1"))
	fresh := shared.dial(t, redis.Prefix(prefix))
	taken := regtest.Instance("h1:1")
	taken.Version = "2"
	regtest.Register(t, fresh, taken)
	regtest.Eventually(t, regtest.Patience, "the old owner letting go", func() bool { return strings.Contains(logs.String(), "taken an instance over") })
	regtest.Back(t, regtest.BackWithin, "the record of the new owner", func() { forget(t, shared, prefix) }, func() bool {
		list, err := registry.List(t.Context(), old, "arith")
		return err == nil && len(list) == 2 && list[0].Equal(taken)
	})
}

// Changes that were not published are seen, too: publishing is lossy, and expiry is not published
// at all.
func TestUnpublishedChangesAreSeen(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	w := regtest.NewWatch(t, r)
	w.Await("h1:1")
	key := prefix + ":{arith}:"
	shared.do(t, "HSET", key+"instances", "h2:1", `{"service":"arith","address":"h2:1"}`)
	shared.do(t, "ZADD", key+"expiry", "9999999999999", "h2:1")
	shared.do(t, "INCR", key+"revision")
	w.Await("h1:1 h2:1")
	shared.do(t, "ZADD", key+"expiry", "1", "h2:1")
	shared.do(t, "INCR", key+"revision")
	w.Await("h1:1")
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
	w := regtest.NewWatch(t, r)
	w.ExpectTrouble(`{arith}:instances, field "junk"`)
	w.Expect("")
	regtest.Register(t, r, regtest.Instance("h1:1"))
	w.Await("h1:1")
	put("junk", `{"service":"arith","address":"h2:1"}`)
	w.ExpectTrouble("move it there, or delete it")
	w.Await("h1:1")
	shared.do(t, "HDEL", prefix+":{arith}:instances", "junk")
	shared.do(t, "INCR", prefix+":{arith}:revision")
	w.Expect("h1:1")
}

// Two servers, one after the other: Redis has lost a document, and its revision starts again.
func TestRevisionsGrowOverDataLoss(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix))
	ctx := regtest.Within(t)
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

// Redis rejects writes while it is out of memory. That is temporary, so Register waits, and its
// error names the cause if ctx ends first.
func TestRedisIsFull(t *testing.T) {
	s := newServer(t)
	s.start(t)
	r := s.dial(t, redis.TTL(2*regtest.Patience)) // no record can be renewed meanwhile
	regtest.Register(t, r, regtest.Instance("h1:1"))
	s.do(t, "CONFIG", "SET", "maxmemory", "1")
	regtest.TimesOut(t, "Register", "OOM", func(ctx context.Context) error { return r.Register(ctx, regtest.Instance("h2:1")) })
	if got := regtest.Addresses(t, r); got != "h1:1" {
		t.Errorf("list of a full server: %q", got)
	}
	s.do(t, "CONFIG", "SET", "maxmemory", "0")
	regtest.Register(t, r, regtest.Instance("h3:1"))
	if got := regtest.Addresses(t, r); got != "h1:1 h3:1" {
		t.Errorf("list after that: %q", got)
	}
}
