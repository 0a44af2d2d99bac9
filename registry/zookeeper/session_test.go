package zookeeper_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

func TestNodeInZooKeeper(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	r := shared.dial(t, zookeeper.Prefix(prefix))
	in := regtest.Instance("unix:///run/a.sock")
	in.Zone = "north"
	regtest.Register(t, r, in)
	node := prefix + "/services/arith/unix:%2F%2F%2Frun%2Fa.sock"
	data, stat, err := raw.Get(node)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"service":"arith","address":"unix:///run/a.sock","zone":"north"}`; string(data) != want || stat.EphemeralOwner == 0 {
		t.Errorf("%s holds %s and belongs to session %#x, want %s and a session", node, data, stat.EphemeralOwner, want)
	}
}

// Requests of an attempt that has ended are still sent, after those of the next one. They change
// nothing that it has written.
func TestEndedAttemptChangesNothing(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	key := prefix + "-node"
	if _, err := raw.Create(key, []byte("new"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{"write": []byte("old"), "removal": nil} {
		if err := zookeeper.WriteEnded(raw, key, data); !errors.Is(err, context.Canceled) {
			t.Errorf("the %s returns %v, want the error of its context", what, err)
		}
		if got, _, err := raw.Get(key); err != nil || string(got) != "new" {
			t.Fatalf("after the %s the node has %q, %v", what, got, err)
		}
	}
}

func TestDeletedNodeComesBack(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	r := shared.dial(t, zookeeper.Prefix(prefix))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	regtest.Register(t, r, regtest.Instance("h2:1"))
	regtest.Back(t, regtest.BackWithin, "both instances", func() {
		for _, address := range []string{"h1:1", "h2:1"} {
			if err := raw.Delete(prefix+"/services/arith/"+address, -1); err != nil {
				t.Fatal(err)
			}
		}
	}, func() bool { return regtest.Addresses(t, r) == "h1:1 h2:1" })
}

// A process whose key was taken over leaves it to the new owner, even if both lose their sessions.
func TestKeyTakenOverIsNotFoughtFor(t *testing.T) {
	var logs testlog.Buffer
	prefix := freshPrefix()
	old := shared.dial(t, zookeeper.Prefix(prefix), zookeeper.TTL(shortTTL), zookeeper.Logger(logs.Logger()))
	regtest.Register(t, old, regtest.Instance("h1:1"))
	regtest.Register(t, old, regtest.Instance("h2:1"))
	fresh := shared.dial(t, zookeeper.Prefix(prefix), zookeeper.TTL(shortTTL))
	taken := regtest.Instance("h1:1")
	taken.Version = "2"
	regtest.Register(t, fresh, taken)
	regtest.Eventually(t, regtest.Patience, "the old owner letting go", func() bool { return strings.Contains(logs.String(), "taken an instance over") })
	regtest.Back(t, regtest.BackWithin, "the record of the new owner", func() { shared.forgetLeases(t) }, func() bool {
		list, err := registry.List(t.Context(), old, "arith")
		return err == nil && len(list) == 2 && list[0].Equal(taken)
	})
	if !strings.Contains(logs.String(), "ended the session") {
		t.Errorf("the session was not lost at all: %s", logs.String())
	}
}

func TestInstancesOfADeadProcessGo(t *testing.T) {
	prefix := freshPrefix()
	f := forward(t, listen(t), shared.endpoint)
	dead := dial(t, f.listener.Addr().String(), zookeeper.Prefix(prefix), zookeeper.TTL(shortTTL))
	regtest.Register(t, dead, regtest.Instance("h1:1"))
	w := regtest.NewWatch(t, shared.dial(t, zookeeper.Prefix(prefix)))
	w.Await("h1:1")
	f.setCut(true) // from here on, the process sends nothing
	w.Await("")
	// The process lives on: its session is lost, and another one begins.
	f.setCut(false)
	w.Await("h1:1")
}

// A connection that is lost and restored has no effect while the session lives.
func TestLostConnectionKeepsTheSession(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	f := forward(t, listen(t), shared.endpoint)
	r := dial(t, f.listener.Addr().String(), zookeeper.Prefix(prefix), zookeeper.TTL(30*time.Second))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	w := regtest.NewWatch(t, r)
	w.Expect("h1:1")
	node := prefix + "/services/arith/h1:1"
	_, before, err := raw.Get(node)
	if err != nil {
		t.Fatal(err)
	}
	f.reset()
	regtest.Register(t, r, regtest.Instance("h2:1"))
	w.Await("h1:1 h2:1")
	_, after, err := raw.Get(node)
	if err != nil || after.Mzxid != before.Mzxid || after.EphemeralOwner != before.EphemeralOwner {
		t.Errorf("the node was written again: %+v after %+v, %v", after, before, err)
	}
}

// A server that accepts connections but does not answer must not delay a client that knows other
// servers.
func TestSilentServer(t *testing.T) {
	silent := listen(t)
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	}()
	t.Cleanup(func() {
		silent.Close()
		<-done
		for _, c := range conns {
			c.Close()
		}
	})
	alone := dial(t, silent.Addr().String(), zookeeper.Prefix(freshPrefix()))
	regtest.NewWatch(t, alone).AwaitTrouble("gave no session")
	both, err := zookeeper.Dial([]string{silent.Addr().String(), shared.endpoint}, zookeeper.Prefix(freshPrefix()))
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	regtest.Register(t, both, regtest.Instance("h1:1"))
}

// The server comes back without its data: its present state counts, and servers announce
// themselves again.
func TestServerComesBackEmpty(t *testing.T) {
	s := newServer(t)
	s.start(t)
	short := zookeeper.TTL(shortTTL) // how long it tries to restore its session
	announcer, client := s.dial(t, short), s.dial(t, short)
	for _, address := range []string{"h1:1", "h2:1", "h3:1"} {
		regtest.Register(t, announcer, regtest.Instance(address))
	}
	w := regtest.NewWatch(t, client)
	w.Await("h1:1 h2:1 h3:1")
	regtest.Back(t, 4*regtest.BackWithin, "all instances", func() {
		s.Stop()
		w.AwaitTrouble("")
		if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
			t.Fatal(err)
		}
		s.start(t)
	}, func() bool { return regtest.Addresses(t, client) == "h1:1 h2:1 h3:1" })
	w.Await("h1:1 h2:1 h3:1")
}

func TestBrokenRecordsAreLeftOut(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	r := shared.dial(t, zookeeper.Prefix(prefix))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	service := prefix + "/services/arith/"
	put := func(name, data string) {
		t.Helper()
		if _, err := raw.Create(service+name, []byte(data), 0, worldACL); err != nil {
			t.Fatal(err)
		}
	}
	w := regtest.NewWatch(t, r)
	w.Expect("h1:1")
	put("junk", "{")
	w.ExpectTrouble(service + "junk")
	w.Expect("h1:1")
	put("h2:1", `{"service":"arith","address":"h1:1"}`)
	w.ExpectTrouble("move it there, or delete it")
	w.Expect("h1:1")
	if _, err := raw.Set(service+"h2:1", []byte(`{"service":"arith","address":"h2:1"}`), -1); err != nil {
		t.Fatal(err)
	}
	w.Expect("h1:1 h2:1")
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
