// Package peertest is the test that every Go peer of the arena runs on itself.
package peertest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/workload"
)

// Bytes checks that a peer's codec writes the bytes of the contract.
func Bytes(t *testing.T, encode func(*workload.BenchmarkMessage) ([]byte, error)) {
	t.Helper()
	folder := messages(t)
	for _, payload := range []int{64, 581} {
		m, err := workload.NewMessage(payload)
		if err != nil {
			t.Fatal(err)
		}
		got, err := encode(m)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("say%d.bin", payload)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("payload %d: %d bytes that are not those of the contract", payload, len(got))
		}
	}
}

// messages returns the folder of the messages of the contract, next to one of the folders above
// the test.
func messages(t *testing.T) string {
	t.Helper()
	above, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for above != filepath.Dir(above) {
		above = filepath.Dir(above)
		folder := filepath.Join(above, "workload", "testdata")
		if _, err := os.Stat(folder); err == nil {
			return folder
		}
	}
	t.Fatal("the folder workload/testdata is not there")
	return ""
}

// patience is how long anything may take that is not a matter of time, on a machine that is busy
// too. Whether a peer keeps to the times of the contract is for a run of the arena to see.
const patience = time.Minute

// Serve starts the program's server and returns its address. The server must end at the end of the
// test.
func Serve(t *testing.T, p *workload.Program, o workload.ServerOptions) string {
	t.Helper()
	o.Addr = freeAddr(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, &o) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(patience):
			t.Errorf("the server did not end within %v", patience)
		}
	})
	for deadline := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp", o.Addr)
		if err == nil {
			c.Close()
			return o.Addr
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the server ended at its start: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not accept connections: %v", err)
		}
	}
}

// freeAddr returns an address on which no process listens, below the kernel's range of ephemeral
// ports.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port between 20000 and 30000")
	return ""
}

// shapes are what a peer may be asked for.
var shapes = []struct {
	name    string
	callers int
	conns   int
	fresh   bool
	payload int
}{
	{name: "one", callers: 1, conns: 1, payload: 581},
	{name: "shared", callers: 20, conns: 2, payload: 581},
	{name: "each", callers: 5, conns: 0, payload: 581},
	{name: "fresh", callers: 3, fresh: true, payload: 581},
	{name: "least", callers: 3, conns: 1, payload: 64},
	{name: "64KiB", callers: 3, conns: 2, payload: 64 << 10},
	{name: "1MiB", callers: 3, conns: 2, payload: 1 << 20},
}

// Calls makes calls of the program's client in every shape of the contract, and checks the
// replies. Shapes that the peer's peer.json leaves out are named.
func Calls(t *testing.T, p *workload.Program, without ...string) {
	t.Helper()
	CallsTo(t, p, []string{
		Serve(t, p, workload.ServerOptions{}),
		Serve(t, p, workload.ServerOptions{Sleep: 100 * time.Microsecond, Work: 100 * time.Microsecond}),
	}, without...)
}

// CallsTo is Calls for servers that run: some peers can have only one in a process.
func CallsTo(t *testing.T, p *workload.Program, addrs []string, without ...string) {
	t.Helper()
	for _, s := range shapes {
		if slices.Contains(without, s.name) {
			continue
		}
		for _, name := range []string{"say", "add"} {
			o := &workload.ClientOptions{
				Addrs: addrs, Workload: name, Callers: s.callers, Conns: s.conns, Fresh: s.fresh, Window: 1, Payload: s.payload,
			}
			t.Run(s.name+"/"+name, func(t *testing.T) { calls(t, p, o) })
			if p.OpenAsync != nil && !s.fresh {
				o := *o
				o.Window = 8
				t.Run(s.name+"/"+name+"/async", func(t *testing.T) { windows(t, p, &o) })
			}
		}
	}
}

const each = 30 // calls of a caller

func calls(t *testing.T, p *workload.Program, o *workload.ClientOptions) {
	caller, closing, err := p.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	var wg sync.WaitGroup
	for i := range o.Callers {
		call := caller(i)
		wg.Go(func() {
			for range each {
				if err := call(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func windows(t *testing.T, p *workload.Program, o *workload.ClientOptions) {
	caller, closing, err := p.OpenAsync(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	var wg sync.WaitGroup
	for i := range o.Callers {
		start := caller(i)
		wg.Go(func() {
			for range each / o.Window {
				var waits []func() error
				for range o.Window {
					waits = append(waits, start(t.Context()))
				}
				for _, wait := range waits {
					if err := wait(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}
