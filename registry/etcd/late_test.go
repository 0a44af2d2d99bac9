package etcd_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

// lateness is a process whose transactions can be delayed.
type lateness struct {
	*etcd.Registry
	lose    atomic.Bool            // the next transaction fails, and can be executed later
	lost    chan *pb.TxnRequest    // holds it
	intrude atomic.Pointer[func()] // is called before each transaction is executed
}

func newLateness(t *testing.T, prefix string) *lateness {
	t.Helper()
	l := &lateness{lost: make(chan *pb.TxnRequest, 1)}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{shared.url()}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(l.intercept)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if l.Registry, err = etcd.New(c, etcd.Prefix(prefix), etcd.TTL(testTTL)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (l *lateness) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if txn, ok := req.(*pb.TxnRequest); ok {
		if l.lose.CompareAndSwap(true, false) {
			l.lost <- txn
			return status.Error(codes.Unavailable, "the answer is lost")
		}
		if f := l.intrude.Load(); f != nil {
			(*f)()
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// execute executes the delayed transaction.
func (l *lateness) execute(t *testing.T, raw *clientv3.Client) error {
	t.Helper()
	ctx := regtest.Within(t)
	select {
	case txn := <-l.lost:
		_, err := pb.NewKVClient(raw.ActiveConnection()).Txn(ctx, txn)
		return rpctypes.Error(err)
	case <-ctx.Done():
		t.Fatal("no transaction was delayed")
	}
	return nil
}

// numbered returns an instance with the tag n.
func numbered(address, n string) registry.Instance {
	in := regtest.Instance(address)
	in.Tags = map[string]string{"n": n}
	return in
}

// tagged returns the tags n of the instances.
func tagged(list []registry.Instance) string {
	var tags []string
	for _, in := range list {
		tags = append(tags, in.Tags["n"])
	}
	return strings.Join(tags, " ")
}

// A transaction without an answer is repeated, and etcd may execute the first one later, after
// newer ones. It changes nothing then. Each test writes the record "last" in the end.
func TestLateWrite(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, l *lateness, other registry.Registry, raw *clientv3.Client, key string){
		"first record": func(t *testing.T, l *lateness, _ registry.Registry, _ *clientv3.Client, _ string) {
			l.lose.Store(true)
			regtest.Register(t, l, numbered("h1:1", "1"))
			regtest.Register(t, l, numbered("h1:1", "last"))
		},
		"changed record": func(t *testing.T, l *lateness, _ registry.Registry, _ *clientv3.Client, _ string) {
			regtest.Register(t, l, numbered("h1:1", "1"))
			l.lose.Store(true)
			regtest.Register(t, l, numbered("h1:1", "2"))
			regtest.Register(t, l, numbered("h1:1", "last"))
		},
		"record that another process has deleted": func(t *testing.T, l *lateness, _ registry.Registry, raw *clientv3.Client, key string) {
			regtest.Register(t, l, numbered("h1:1", "1"))
			l.lose.Store(true)
			if _, err := raw.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			regtest.Eventually(t, regtest.Patience, "the record", func() bool { return len(keys(t, raw, key)) == 1 })
			regtest.Register(t, l, numbered("h1:1", "last"))
		},
		"removal": func(t *testing.T, l *lateness, _ registry.Registry, _ *clientv3.Client, _ string) {
			regtest.Register(t, l, numbered("h1:1", "1"))
			l.lose.Store(true)
			if err := l.Deregister(regtest.Within(t), numbered("h1:1", "1")); err != nil {
				t.Fatal(err)
			}
			regtest.Register(t, l, numbered("h1:1", "last"))
		},
		"record of another process": func(t *testing.T, l *lateness, other registry.Registry, _ *clientv3.Client, _ string) {
			l.lose.Store(true)
			regtest.Register(t, l, numbered("h1:1", "1"))
			regtest.Register(t, other, numbered("h1:1", "last"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			prefix, raw := freshPrefix(), shared.use(t)
			l, other := newLateness(t, prefix), shared.dial(t, etcd.Prefix(prefix), etcd.TTL(testTTL))
			w := regtest.NewWatchOf(t, other, tagged)
			key := prefix + "/arith/h1:1"
			run(t, l, other, raw, key)
			w.Await("last")
			before := modRevision(t, raw, key)
			if err := l.execute(t, raw); err != nil {
				t.Fatal(err)
			}
			if value := keys(t, raw, key)[key]; !strings.Contains(value, `"last"`) {
				t.Errorf("etcd has %s, want the last record", value)
			}
			if now := modRevision(t, raw, key); now != before {
				t.Errorf("the late transaction has written the key, in revision %d after %d", now, before)
			}
			regtest.Register(t, other, numbered("h2:1", "end"))
			w.Expect("last end")
		})
	}
}

// etcd cannot tell a key that is absent again from one that was never written. The next renewal
// removes what a late transaction has brought back.
func TestLateWriteOfRemovedRecord(t *testing.T) {
	t.Parallel()
	prefix, raw := freshPrefix(), shared.use(t)
	l := newLateness(t, prefix)
	l.lose.Store(true)
	regtest.Register(t, l, regtest.Instance("h1:1"))
	if err := l.Deregister(regtest.Within(t), regtest.Instance("h1:1")); err != nil {
		t.Fatal(err)
	}
	if err := l.execute(t, raw); err != nil {
		t.Fatal(err)
	}
	regtest.Eventually(t, regtest.Patience, "the removal of the record", func() bool { return len(keys(t, raw, prefix+"/")) == 0 })
}

func TestLateWriteAfterClose(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	l := newLateness(t, prefix)
	l.lose.Store(true)
	regtest.Register(t, l, regtest.Instance("h1:1"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.execute(t, raw); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("the late transaction ends with %v, want %v", err, rpctypes.ErrLeaseNotFound)
	}
	if got := keys(t, raw, prefix+"/"); len(got) != 0 {
		t.Errorf("etcd has %q after Close", got)
	}
}

// A process that registers takes the key, even if another one writes it between each of its
// transactions.
func TestRegisterTakesAContestedKey(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	l := newLateness(t, prefix)
	key, writes := prefix+"/arith/h1:1", 0
	intrude := func() {
		if writes == 3 {
			return
		}
		writes++
		if _, err := raw.Put(t.Context(), key, strconv.Itoa(writes)); err != nil {
			t.Error(err)
		}
	}
	l.intrude.Store(&intrude)
	regtest.Register(t, l, numbered("h1:1", "last"))
	if value := keys(t, raw, key)[key]; writes != 3 || !strings.Contains(value, `"last"`) {
		t.Errorf("etcd has %s after %d writes of another process, want the last record after 3", value, writes)
	}
}
