package cputime_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/cputime"
)

func TestOf(t *testing.T) {
	if _, err := cputime.Of(nil); !errors.Is(err, cputime.ErrUnknown) {
		t.Errorf("of no process: %v", err)
	}
	if _, err := cputime.Of([]int{os.Getpid(), 1 << 30}); !errors.Is(err, cputime.ErrUnknown) {
		t.Errorf("of a process that is not there: %v", err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	self, err := cputime.Self()
	if err != nil || self <= 0 {
		t.Fatalf("Self() = %v, %v", self, err)
	}
	// /proc counts in ticks of 10 ms, getrusage exactly; both count the same time.
	for used := self; used < self+50*1e6; used, _ = cputime.Self() {
	}
	if of, err := cputime.Of([]int{os.Getpid()}); err != nil || of < self {
		t.Errorf("Of(self) = %v, %v, but Self() was %v before", of, err, self)
	}
}

func TestListeners(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	var addresses []string
	path := filepath.Join(t.TempDir(), "s")
	for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "tcp": "[::]:0", "tcp6": "[::1]:0", "unix": path} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if network == "unix" {
			addresses = append(addresses, "unix://"+path)
			continue
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		host := map[string]string{"tcp4": "127.0.0.1", "tcp": "localhost", "tcp6": "::1"}[network]
		addresses = append(addresses, net.JoinHostPort(host, port))
	}
	for _, address := range addresses {
		if pids, err := cputime.Listeners([]string{address}); err != nil || !slices.Equal(pids, []int{os.Getpid()}) {
			t.Errorf("at %s: %v, %v", address, pids, err)
		}
	}
	if pids, err := cputime.Listeners(addresses); err != nil || !slices.Equal(pids, []int{os.Getpid()}) {
		t.Errorf("at all: %v, %v", pids, err)
	}
	for _, address := range []string{"127.0.0.1:1", "192.0.2.1:80", "example.org:80", "nonsense", "unix:///nowhere"} {
		if pids, err := cputime.Listeners([]string{address, addresses[0]}); err == nil {
			t.Errorf("at %s: %v", address, pids)
		}
	}
}
