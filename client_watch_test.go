package anser_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// snapshots returns an option that keeps snapshots in a folder of the test, and a function that
// returns the files there.
func snapshots(t *testing.T) (anser.DialOption, func() []string) {
	dir := filepath.Join(t.TempDir(), "cache")
	return anser.SnapshotDir(dir), func() []string {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
}

// fresh makes a client with snapshots, as a process that has just started would.
func fresh(t *testing.T, f *feed, target string, network *ansertest.Network, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(target, append([]anser.DialOption{silent, f.scheme(), anser.Dialer(network.Dial)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A client that starts while the registry is down begins with the list that the last one had.
func TestSnapshot(t *testing.T) {
	for name, outage := range map[string]func(f *feed){
		"error":  func(f *feed) { f.down(errors.New("etcd is gone")) },
		"silent": func(*feed) {},
	} {
		t.Run(name, func(t *testing.T) {
			dir, files := snapshots(t)
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				serve(t, network.Listen("a:1"), hello("a:1"))
				serve(t, network.Listen("b:1"), hello("b:1"))
				f := newFeed()
				first := fresh(t, f, "fed://arith", network, dir)
				f.list("a:1")
				f.list() // an empty list is nothing to start from
				reach(t, first, 1)
				first.Close()
				if n := len(files()); n != 1 {
					t.Fatalf("%d files, want 1", n)
				}
				f = newFeed()
				second := fresh(t, f, "fed://arith", network, dir)
				outage(f)
				began := time.Now()
				reach(t, second, 5)
				if d := time.Since(began); d > 500*time.Millisecond {
					t.Errorf("the snapshot was used after %v", d)
				}
				if st := second.Status(); !st.Snapshot || !st.Updated.IsZero() || len(st.Instances) != 1 {
					t.Errorf("%+v", st)
				}
				f.list("b:1") // the registry is back, and right
				time.Sleep(time.Second)
				if st := second.Status(); st.Snapshot || st.Updated.IsZero() {
					t.Errorf("%+v", st)
				}
				if who := reach(t, second, 10); who["b:1"] == 0 {
					t.Error(who)
				}
			})
		})
	}
}

// A snapshot is used for its own target only, and what is damaged is not used.
func TestSnapshotThatIsNotUsed(t *testing.T) {
	for name, test := range map[string]struct {
		target string
		damage func(t *testing.T, file string)
		opts   []anser.DialOption
	}{
		"another target": {target: "fed://other/arith"},
		"damaged":        {damage: func(t *testing.T, file string) { write(t, file, "{\"target\":") }},
		"empty":          {damage: func(t *testing.T, file string) { write(t, file, "") }},
		"of another": {damage: func(t *testing.T, file string) {
			write(t, file, `{"target":"fed://evil","instances":[{"service":"x","address":"a:1"}]}`)
		}},
		"gone":         {damage: func(t *testing.T, file string) { os.Remove(file) }},
		"switched off": {opts: []anser.DialOption{anser.NoSnapshot()}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, files := snapshots(t)
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				serve(t, network.Listen("a:1"), hello("a:1"))
				f := newFeed()
				first := fresh(t, f, "fed://arith", network, dir)
				f.list("a:1")
				first.Close()
				if test.damage != nil {
					test.damage(t, files()[0])
				}
				if test.target == "" {
					test.target = "fed://arith"
				}
				f = newFeed()
				second := fresh(t, f, test.target, network, append(test.opts, dir)...)
				f.down(errors.New("etcd is gone"))
				_, err := call(context.Background(), second, "Echo.Who", "")
				if e := wantFault(t, err, anser.Unavailable, anser.NotSent); !strings.Contains(e.Message, "no snapshot") {
					t.Error(err)
				}
			})
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A folder that cannot be written costs the snapshot and nothing else.
func TestSnapshotFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "not a folder")
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), hello("a:1"))
		f := newFeed()
		c := fresh(t, f, "fed://arith", network, anser.SnapshotDir(filepath.Join(file, "below")))
		f.list("a:1")
		reach(t, c, 3)
	})
}

// What the registry says while the snapshot is read wins.
func TestSnapshotComesTooLate(t *testing.T) {
	dir, _ := snapshots(t)
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("b:1"), hello("b:1"))
		f := newFeed()
		first := fresh(t, f, "fed://arith", network, dir)
		f.list("a:1")
		first.Close()
		f = newFeed()
		second := fresh(t, f, "fed://arith", network, dir)
		f.list("b:1")
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := second.Status(); st.Snapshot || len(st.Instances) != 1 || st.Instances[0].Address != "b:1" {
			t.Errorf("%+v", st)
		}
		reach(t, second, 3)
	})
}

// A list that is held back does not replace the saved one: the next client needs the working
// instances.
func TestSnapshotOutlivesAShrunkenList(t *testing.T) {
	dir, _ := snapshots(t)
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1", "c:1"} {
			serve(t, network.Listen(a), hello(a))
		}
		f := newFeed()
		first := fresh(t, f, "fed://arith", network, dir)
		f.list("a:1", "b:1", "c:1")
		reach(t, first, 30)
		f.list("a:1")
		f.list("a:1")
		reach(t, first, 30)
		first.Close()
		f = newFeed()
		second := fresh(t, f, "fed://arith", network, dir, anser.Balancer(balance.RoundRobin()))
		f.down(errors.New("etcd is gone"))
		if who := reach(t, second, 30); len(who) != 3 {
			t.Errorf("reached %v, want all three", who)
		}
		if st := second.Status(); !st.Snapshot || st.Saved.IsZero() || st.Since.IsZero() {
			t.Errorf("%+v", st)
		}
	})
}

// A client that starts when the registry has just lost its data begins with the saved list.
func TestFirstListIsEmpty(t *testing.T) {
	for name, test := range map[string]struct {
		age  time.Duration
		want int
	}{"lately saved": {time.Minute, 2}, "saved long ago": {2 * time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			dir, _ := snapshots(t)
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				l := network.Listen("a:1")
				serve(t, l, hello("a:1"))
				serve(t, network.Listen("b:1"), hello("b:1"))
				f := newFeed()
				first := fresh(t, f, "fed://arith", network, dir)
				f.list("a:1", "b:1")
				first.Close()
				time.Sleep(test.age)
				f = newFeed()
				second := fresh(t, f, "fed://arith", network, dir, anser.Balancer(balance.RoundRobin()))
				f.list()
				st := second.Status()
				if len(st.Instances) != test.want || st.Snapshot || st.Updated.IsZero() {
					t.Fatalf("%+v", st)
				}
				if test.want == 0 {
					return
				}
				reach(t, second, 10)
				l.Kill()
				time.Sleep(time.Second)
				if who := reach(t, second, 10); who["b:1"] != 10 || len(second.Status().Instances) != 1 {
					t.Errorf("one is down: %v, %+v", who, second.Status())
				}
			})
		})
	}
}

// The instances of a Memory end with the process, so that nothing of them is kept.
func TestNoSnapshotOfAMemory(t *testing.T) {
	dir, files := snapshots(t)
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		m := registry.NewMemory()
		defer m.Close()
		s := anser.NewServer(silent, anser.Announce(m, registry.Instance{Service: "echo"}))
		anser.Handle(s, "Echo.Who", hello("a:1")["Echo.Who"])
		run(t, s, network.Listen("a:1"))
		c, err := anser.Dial("memory:///echo", silent, m.Scheme("memory"), dir, anser.Dialer(network.Dial))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		reach(t, c, 1)
		synctest.Wait()
		if got := files(); len(got) != 0 {
			t.Errorf("snapshots: %v", got)
		}
	})
}
