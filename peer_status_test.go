package anser_test

import (
	"context"
	"net"
	"path"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// Both sides list their connections, with what was sent over them and what is open.
func TestConns(t *testing.T) {
	s := anser.NewServer()
	started, release := make(chan struct{}), make(chan struct{})
	anser.Handle(s, "Echo.Wait", func(context.Context, *[]byte) (*[]byte, error) {
		close(started)
		<-release
		return new([]byte), nil
	}, anser.Concurrent())
	l := listen(t)
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Conns(1))
	reply := anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("hello"))
	<-started
	list, all := s.Conns(10)
	if all != 1 || len(list) != 1 {
		t.Fatalf("the server has %d connections, and lists %d", all, len(list))
	}
	if k := list[0]; k.Protocol != "anser" || k.InFlight != 1 || k.Received == 0 || k.Addr == nil || k.Draining || k.Quiet > time.Minute {
		t.Errorf("the server has %+v", k)
	}
	list, all = c.Conns(10)
	if all != 1 || len(list) != 1 {
		t.Fatalf("the client has %d connections, and lists %d", all, len(list))
	}
	if k := list[0]; k.Protocol != "anser" || k.InFlight != 1 || k.Sent == 0 || k.Address == "" || k.Credit == 0 {
		t.Errorf("the client has %+v", k)
	}
	if list, all := s.Conns(0); len(list) != 0 || all != 1 {
		t.Errorf("with a limit of 0: %d of %d", len(list), all)
	}
	close(release)
	if _, err := reply.Wait(); err != nil {
		t.Error(err)
	}
}

// Options says which values are not the defaults.
func TestOptionsInForce(t *testing.T) {
	s := anser.NewServer(anser.MaxConns(7), anser.IdleTimeout(time.Minute), anser.InsecurePublic())
	c := dial(t, "127.0.0.1:1", anser.Attempts(4), anser.Checksums())
	for name, list := range map[string][]anser.OptionStatus{"server": s.Options(), "client": c.Options()} {
		got := make(map[string]string)
		for _, o := range list {
			if o.Set {
				got[o.Name] = o.Value
			}
			if o.Set == (o.Value == o.Default) {
				t.Errorf("%s: %+v", name, o)
			}
		}
		want := map[string]string{"MaxConns": "7", "IdleTimeout": "1m0s", "InsecurePublic": "on"}
		if name == "client" {
			want = map[string]string{"Attempts": "4", "Checksums": "on"}
		}
		for option, value := range want {
			if got[option] != value {
				t.Errorf("%s: %s is %q, want %q", name, option, got[option], value)
			}
		}
	}
}

// Options says where a value is from: an origin that was given, or the place in the program.
func TestOptionsSayWhereTheyAreFrom(t *testing.T) {
	s := anser.NewServer(anser.MaxConns(7), anser.MaxCalls(5),
		anser.ServerOptionsOf("flag --limit", anser.MaxConns(8), anser.MaxInFlight(10_000)), // the default
		anser.ServerOptionsOf("edge.yaml", anser.IdleTimeout(time.Minute)))
	_, file, _, _ := runtime.Caller(0) // with -trimpath the folder has another name
	c := dial(t, "127.0.0.1:1", anser.Attempts(4), anser.DialOptionsOf("$SHOP_TIMEOUT", anser.Timeout(time.Second), anser.Checksums()))
	for name, list := range map[string][]anser.OptionStatus{"server": s.Options(), "client": c.Options()} {
		want := map[string]string{"MaxConns": "flag --limit", "IdleTimeout": "edge.yaml", "MaxCalls": "an option of the program, " + path.Base(path.Dir(file)) + "/peer_status_test.go:"}
		if name == "client" {
			want = map[string]string{"Timeout": "$SHOP_TIMEOUT", "Checksums": "$SHOP_TIMEOUT", "Attempts": "an option of the program, "}
		}
		for _, o := range list {
			by, set := want[o.Name]
			if o.Set != (o.By != "") || set && !strings.HasPrefix(strings.ReplaceAll(o.By, "@", "/"), by) || !set && strings.Contains(o.By, "--limit") {
				t.Errorf("%s: %+v, want %q", name, o, by)
			}
		}
	}
	if _, err := anser.Dial("127.0.0.1:1", anser.DialOptionsOf("flag --x", nil)); err == nil || !strings.Contains(err.Error(), "flag --x") {
		t.Errorf("an option that is nil: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := anser.NewServer(anser.ServerOptionsOf("flag --x", nil)).Serve(l); err == nil || !strings.Contains(err.Error(), "flag --x") {
		t.Errorf("an option that is nil: %v", err)
	}
}

// MethodStatus says how methods run.
func TestMethodStatus(t *testing.T) {
	s := anser.NewServer(anser.NoDescribe())
	anser.Handle(s, "Echo.A", echo, anser.Alias("Echo.Old"), anser.MaxInFlight(3))
	anser.Handle(s, "Echo.B", echo, anser.Concurrent(), anser.Idempotent())
	list := s.MethodStatus()
	if len(list) != 2 {
		t.Fatalf("got %+v", list)
	}
	if a := list[0]; a.Name != "Echo.A" || !a.Inline || a.Fixed || a.MaxInFlight != 3 || len(a.Aliases) != 1 || a.Aliases[0] != "Echo.Old" {
		t.Errorf("got %+v", a)
	}
	if b := list[1]; b.Name != "Echo.B" || b.Inline || !b.Fixed || !b.Idempotent {
		t.Errorf("got %+v", b)
	}
}

// A nil side, and its zero value, have nothing to show.
func TestNothingToShow(t *testing.T) {
	for _, s := range []*anser.Server{nil, new(anser.Server)} {
		if list, all := s.Conns(1); all != 0 || len(list)+len(s.Options())+len(s.MethodStatus())+len(s.Announcements()) != 0 {
			t.Error("a server that was not made has something to show")
		}
	}
	for _, c := range []*anser.Client{nil, new(anser.Client)} {
		if list, all := c.Conns(1); all != 0 || len(list)+len(c.Options()) != 0 {
			t.Error("a client that was not dialed has something to show")
		}
	}
}
