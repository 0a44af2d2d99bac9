package unixsocket_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/unixsocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socketPath returns the path of a socket in a folder of the test. t.TempDir is too long for some
// systems.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "anser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func TestDeadSocketIsReplaced(t *testing.T) {
	socket := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if _, err := unixsocket.Listen(socket); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "served by another process") {
		t.Errorf("a socket that is served: %v", err)
	}
	dead.Close()
	l, err := unixsocket.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if left, err := filepath.Glob(socket + "*"); err != nil || len(left) > 0 {
		t.Errorf("%v are left behind", left)
	}
}

// Of listeners that start at once on a dead socket one gets it, and keeps it.
func TestListenersThatStartTogether(t *testing.T) {
	for range 50 {
		socket := socketPath(t)
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		dead.Close()
		var starts sync.WaitGroup
		got := make(chan net.Listener, 8)
		for range cap(got) {
			starts.Go(func() {
				l, err := unixsocket.Listen(socket)
				if err == nil {
					got <- l
				} else if !errors.Is(err, syscall.EADDRINUSE) {
					t.Error(err)
				}
			})
		}
		starts.Wait()
		if len(got) != 1 {
			t.Fatalf("%d listeners have the socket", len(got))
		}
		l := <-got
		nc, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		l.Close()
	}
}

func TestMistakes(t *testing.T) {
	file := socketPath(t)
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":               "use unix:///path",
		file:             "is there and no socket",
		file + "/no/dir": "not a directory",
	} {
		if l, err := unixsocket.Listen(path); err == nil || !strings.Contains(err.Error(), want) {
			if err == nil {
				l.Close()
			}
			t.Errorf("%q: %v; want %q", path, err, want)
		}
	}
	if b, err := os.ReadFile(file); string(b) != "precious" {
		t.Errorf("the file: %q, %v", b, err)
	}
}
