package netns_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/netns"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("NETNS_TEST_LISTEN"); address != "" {
		listen(address)
		return
	}
	if address := os.Getenv("NETNS_TEST_DIAL"); address != "" {
		patience, err := time.ParseDuration(os.Getenv("NETNS_TEST_PATIENCE"))
		if err != nil {
			panic(err)
		}
		c, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		c.Close()
		return
	}
	goleak.VerifyTestMain(m)
}

func listen(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// dial connects from one host to an address, however long it takes on a busy machine.
func dial(t *testing.T, from netns.Host, address string) error {
	t.Helper()
	return dialWithin(t, time.Minute, from, address)
}

// unheard is how long dialWithin tries if no packet should arrive.
const unheard = time.Second

func dialWithin(t *testing.T, patience time.Duration, from netns.Host, address string) error {
	t.Helper()
	command := netns.Inside(from.Name, []string{os.Args[0]})
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(os.Environ(), "NETNS_TEST_DIAL="+address, "NETNS_TEST_PATIENCE="+patience.String())
	said, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// Two hosts reach each other until packets are dropped in one direction, and again afterwards.
func TestNetwork(t *testing.T) {
	ctx := t.Context()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		if _, err := netns.New(ctx, "netns-test"); err == nil || os.Geteuid() != 0 && !errors.Is(err, netns.ErrNotRoot) {
			t.Errorf("new: %v", err)
		}
		return
	}
	n, err := netns.New(ctx, "netns-test")
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var hosts []netns.Host
	for _, name := range []string{"a", "b"} {
		h, err := n.Add(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	a, b := hosts[0], hosts[1]
	address := b.IP + ":8000"
	command := netns.Inside(b.Name, []string{os.Args[0]})
	server := exec.Command(command[0], command[1:]...)
	server.Env = append(os.Environ(), "NETNS_TEST_LISTEN="+address)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Process.Kill()
		server.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := dial(t, a, address); err != nil {
		t.Fatalf("before: %v", err)
	}
	for _, way := range [][2]netns.Host{{a, b}, {b, a}} {
		if err := netns.Drop(ctx, way[0], way[1]); err != nil {
			t.Fatal(err)
		}
		if err := dialWithin(t, unheard, a, address); err == nil || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("while packets from %s are dropped: %v", way[0].Name, err)
		}
		if err := netns.Pass(ctx, way[0], way[1]); err != nil {
			t.Fatal(err)
		}
		if err := dial(t, a, address); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
	// A share of 1 has the same effect as Drop, and a share of 0 drops nothing.
	for _, share := range []float64{1, 0} {
		if err := netns.Lose(ctx, a, b, share); err != nil {
			t.Fatal(err)
		}
		patience := time.Minute
		if share > 0 {
			patience = unheard
		}
		if err := dialWithin(t, patience, a, address); (err == nil) != (share == 0) {
			t.Errorf("while %g of the packets are lost: %v", share, err)
		}
		if err := netns.Keep(ctx, a, b, share); err != nil {
			t.Fatal(err)
		}
		if err := dial(t, a, address); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
	if err := errors.Join(n.Close(), n.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := netns.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(names, a.Name) {
		t.Errorf("%s is still there", a.Name)
	}
}

// Several processes may remove the remains of another one at the same time.
func TestSweepTogether(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return // only root can create namespaces to sweep
	}
	ctx := context.Background()
	dead := exec.Command(os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		left := fmt.Sprintf("netns-together-%d-%d", dead.Process.Pid, i)
		if _, err := netns.IP(ctx, "netns", "add", left); err != nil {
			t.Fatal(err)
		}
		defer netns.IP(ctx, "netns", "del", left)
	}
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			n, err := netns.New(ctx, "netns-together")
			if err == nil {
				err = n.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// The remains of a killed process are removed by the next one, those of running processes are not.
func TestSweep(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return // only root can create namespaces to sweep
	}
	ctx := context.Background()
	dead := exec.Command(os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	left := fmt.Sprintf("netns-sweep-%d-left", dead.Process.Pid)
	mine := fmt.Sprintf("netns-sweep-%d-mine", os.Getpid())
	for _, name := range []string{left, mine} {
		if _, err := netns.IP(ctx, "netns", "add", name); err != nil {
			t.Fatal(err)
		}
		defer netns.IP(ctx, "netns", "del", name)
	}
	n, err := netns.New(ctx, "netns-sweep")
	if err != nil {
		t.Fatal(err)
	}
	names, err := netns.List(ctx)
	if err := errors.Join(err, n.Close()); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(names, left) || !slices.Contains(names, mine) {
		t.Errorf("there are %v", names)
	}
}
