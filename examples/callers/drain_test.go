package callers_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// balancer passes connections on to the server of the moment, as one in front of a service does.
type balancer struct {
	l     net.Listener
	conns sync.WaitGroup

	mu sync.Mutex // guards what follows
	to string
}

func balance(t *testing.T, to string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{l: l, to: to}
	b.conns.Go(b.accept)
	t.Cleanup(func() {
		l.Close()
		b.conns.Wait()
	})
	return b
}

func (b *balancer) accept() {
	for {
		near, err := b.l.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		far, err := net.Dial("tcp", b.to)
		b.mu.Unlock()
		if err != nil {
			near.Close()
			continue
		}
		pass := func(to, from net.Conn) {
			io.Copy(to, from)
			to.(*net.TCPConn).CloseWrite()
		}
		b.conns.Go(func() {
			var both sync.WaitGroup
			both.Go(func() { pass(far, near) })
			both.Go(func() { pass(near, far) })
			both.Wait()
			near.Close()
			far.Close()
		})
	}
}

// turn makes new connections go to another server.
func (b *balancer) turn(to string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = to
}

// order makes the first order, so that no stream waits for one.
func order(t *testing.T, address string) {
	t.Helper()
	reply, err := http.Post("http://"+address+"/orders.v1.Orders.Place", "application/json", strings.NewReader(`{"item": "tea"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	if reply.Body.Close(); reply.StatusCode != http.StatusOK {
		t.Fatal(reply.Status)
	}
}

// Stock clients of Python and Java call while servers are replaced one after the other behind one
// address: each server drains, and no call fails.
func TestDrain(t *testing.T) {
	for language, client := range map[string][]string{
		"python": {".venv/bin/python", "drain.py"},
		"java":   {"java", "-cp", "target/classes:target/lib/*", "callers.Drain"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			program := build(t)
			first, stop := run(t, program)
			b := balance(t, first)
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			cmd := exec.CommandContext(ctx, client[0], append(client[1:], b.l.Addr().String())...)
			cmd.Dir, cmd.Stderr = language, os.Stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			calls, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatalf("%v: scripts/suites/callers gets what this needs", err)
			}
			if line, err := out.ReadString('\n'); line != "calling\n" {
				t.Fatalf("%q, %v", line, err)
			}
			const servers = 5
			for range servers {
				time.Sleep(500 * time.Millisecond) // the client calls
				next, stopNext := run(t, program)
				order(t, next)
				b.turn(next)
				stop()
				stop = stopNext
			}
			time.Sleep(500 * time.Millisecond)
			calls.Close()
			rest, _ := io.ReadAll(out)
			err = cmd.Wait()
			said := regexp.MustCompile(`^(\d+) calls, 0 failed`).FindStringSubmatch(string(rest))
			if err != nil || said == nil {
				t.Fatalf("%v\n%s", err, rest)
			}
			t.Logf("%s, %d servers replaced", said[0], servers)
			if n, _ := strconv.Atoi(said[1]); n < 10*servers {
				t.Errorf("%d calls are too few", n)
			}
		})
	}
}
