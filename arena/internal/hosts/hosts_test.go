package hosts_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/internal/hosts"
	"github.com/anser-rpc/anser/arena/internal/hosts/hoststest"
)

// Only root can make hosts; everybody else is told so.
func TestHosts(t *testing.T) {
	ctx := t.Context()
	if os.Geteuid() != 0 {
		if _, err := hosts.Up(ctx); !errors.Is(err, hosts.ErrNotRoot) {
			t.Errorf("up: %v", err)
		}
		if err := hosts.Down(ctx); !errors.Is(err, hosts.ErrNotRoot) {
			t.Errorf("down: %v", err)
		}
		return
	}
	hoststest.Lock(t)
	if hosts.Exist(ctx) {
		t.Fatal("there are hosts already: arena hosts down removes them")
	}
	defer hosts.Down(context.Background())
	for _, want := range []bool{true, false} {
		if made, err := hosts.Up(ctx); err != nil || made != want {
			t.Fatalf("made: %v, %v", made, err)
		}
	}
	if !hosts.Exist(ctx) {
		t.Error("they do not exist")
	}
	address := hosts.ServerIP + ":18080"
	if err := hosts.Dial(hosts.Client, address, time.Second); err == nil {
		t.Error("somebody listens already")
	}
	listens(t, address)
	// What was half removed is made anew.
	if said, err := exec.Command("ip", "-n", hosts.Client, "link", "del", hosts.Interface).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if made, err := hosts.Up(ctx); err != nil || !made {
		t.Errorf("made: %v, %v", made, err)
	}
	for range 2 {
		if err := hosts.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
	}
	if hosts.Exist(ctx) {
		t.Error("they still exist")
	}
	if err := hosts.Dial(hosts.Client, address, time.Second); err == nil || !strings.Contains(err.Error(), "no host") {
		t.Errorf("dial on a host that is gone: %v", err)
	}
}

// patience is how long anything may take that is not a matter of time. The machine may be busy.
const patience = time.Minute

// listens runs this test as another process on the server's host, and connects from the client's.
func listens(t *testing.T, address string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := hosts.Inside(hosts.Server, []string{self, "-test.run=^TestListener$"})
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(os.Environ(), "ARENA_TEST_LISTEN="+address)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Process.Kill()
		c.Wait()
	}()
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		if err = hosts.Dial(hosts.Client, address, patience); err == nil {
			return
		}
	}
	t.Errorf("the server's host cannot be reached: %v", err)
}

func TestListener(t *testing.T) {
	address := os.Getenv("ARENA_TEST_LISTEN")
	if address == "" {
		return // it is for the process that listens starts
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

func TestDialHere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := hosts.Dial("", l.Addr().String(), patience); err != nil {
		t.Error(err)
	}
	l.Close()
	if err := hosts.Dial("", l.Addr().String(), time.Second); err == nil {
		t.Error("nobody listens")
	}
}
