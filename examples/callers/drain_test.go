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
	"sync/atomic"
	"testing"
	"time"
)

// balancer forwards connections to the server of the moment, as one in front of a service does.
type balancer struct {
	l     net.Listener
	conns sync.WaitGroup

	mu       sync.Mutex // guards what follows
	to       string
	answered *atomic.Int64 // pieces of answers from the server of the moment
}

func balance(t *testing.T, to string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{l: l, to: to, answered: new(atomic.Int64)}
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
		answered := b.answered
		b.mu.Unlock()
		if err != nil {
			near.Close()
			continue
		}
		forward := func(to, from net.Conn, pieces *atomic.Int64) {
			io.Copy(counter{to, pieces}, from)
			to.(*net.TCPConn).CloseWrite()
		}
		b.conns.Go(func() {
			var both sync.WaitGroup
			both.Go(func() { forward(far, near, new(atomic.Int64)) })
			both.Go(func() { forward(near, far, answered) })
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
	b.to, b.answered = to, new(atomic.Int64)
}

// calls waits until the server of the moment has answered calls: 100 pieces are 30 calls or more.
func (b *balancer) calls(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	answered := b.answered
	b.mu.Unlock()
	for end := time.Now().Add(bound); answered.Load() < 100; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d pieces of answers in %v", answered.Load(), bound)
		}
	}
}

// counter counts what is written.
type counter struct {
	io.Writer
	n *atomic.Int64
}

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.Writer.Write(b)
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
				b.calls(t)
				next, stopNext := run(t, program)
				order(t, next)
				b.turn(next)
				stop()
				stop = stopNext
			}
			b.calls(t)
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
