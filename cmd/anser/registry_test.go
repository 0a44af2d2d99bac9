package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
)

// startRegistry runs "anser registry" and returns its URL.
func startRegistry(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	p := start(t, t.TempDir(), append([]string{"registry", "--json"}, args...)...)
	var said struct {
		Registry, Data string
		Members        []string
	}
	if err := json.Unmarshal([]byte(p.line("registry")), &said); err != nil {
		t.Fatal(err)
	}
	return p, said.Registry
}

// announce runs a server that registers itself, and returns a function that stops it.
func announce(t *testing.T, url string) (stop func()) {
	t.Helper()
	reg, err := etcd.Dial(strings.Split(strings.TrimPrefix(url, "etcd://"), ","))
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(anser.Announce(reg, registry.Instance{Service: "arith", ID: "one", Zone: "north"}))
	arith.Register(s)
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		<-served
		if err := reg.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p, url := startRegistry(t, "--listen", "127.0.0.1:0", "--data", data)
	if out := run(t, "ls", "--registry", url); out != "No service is registered at "+url+".\n" {
		t.Error(out)
	}
	watching := start(t, t.TempDir(), "ls", "--watch", "--registry", url)
	watching.line("No service")
	stop := announce(t, url)
	watching.line("one")
	if out := run(t, "ls", "arith", "--registry", url); !strings.Contains(out, "north") {
		t.Error(out)
	}
	if out := run(t, "call", "arith", "Arith.Add", `{"A": 1, "B": 2}`, "--registry", url); !strings.Contains(out, `"C": 3`) {
		t.Error(out)
	}
	stop()
	watching.line("No service")
	if out, code := watching.signal(terminate); code != 0 {
		t.Errorf("ls --watch ended with %d: %s", code, out)
	}
	if out, code := p.signal(terminate); code != 0 || p.errOut.Len() > 0 {
		t.Errorf("the registry ended with %d: %s%s", code, out, p.errOut.String())
	}
	// The data can be used again, but not by two processes at the same time.
	p, _ = startRegistry(t, "--listen", "127.0.0.1:0", "--data", data)
	second := start(t, t.TempDir(), "registry", "--listen", "127.0.0.1:0", "--data", data)
	if out, code := second.wait(); code != 1 || !strings.Contains(second.errOut.String(), "in use") {
		t.Errorf("a second registry on the same data ended with %d: %s%s", code, out, second.errOut.String())
	}
	p.signal(terminate)
}

func TestThreeMembers(t *testing.T) {
	t.Parallel()
	p, url := startRegistry(t, "--members", "3", "--listen", fmt.Sprintf("127.0.0.1:%d", servers.Ports(t, 6)), "--data", t.TempDir())
	members := strings.Split(strings.TrimPrefix(url, "etcd://"), ",")
	if len(members) != 3 {
		t.Fatalf("members: %v", members)
	}
	stop := announce(t, url)
	for _, m := range members {
		if out := run(t, "call", "etcd://"+m+"/arith", "Arith.Add", `{"A": 1, "B": 2}`); !strings.Contains(out, `"C": 3`) {
			t.Errorf("through %s: %s", m, out)
		}
	}
	stop()
	if out, code := p.signal(terminate); code != 0 {
		t.Errorf("ended with %d: %s%s", code, out, p.errOut.String())
	}
}
