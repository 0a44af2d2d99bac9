package ansertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
)

// connect returns the two ends of a connection through the network.
func connect(t *testing.T, n *ansertest.Network, l *ansertest.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := n.Dial(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestNetworkCarriesBytesBothWays(t *testing.T) {
	n := new(ansertest.Network)
	l := n.Listen("arith:1")
	defer l.Close()
	client, server := connect(t, n, l)
	defer client.Close()
	defer server.Close()
	for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
		if _, err := ends[0].Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(ends[1], got); err != nil || string(got) != "hello" {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	if client.RemoteAddr().String() != "arith:1" || server.LocalAddr().Network() != "memory" {
		t.Fatalf("addresses: %v, %v", client.RemoteAddr(), server.LocalAddr().Network())
	}
}

func TestDialWithoutListener(t *testing.T) {
	n := new(ansertest.Network)
	if _, err := n.Dial(context.Background(), "tcp", "nobody:1"); !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "nobody:1: connection refused") {
		t.Fatal(err)
	}
	l := n.Listen("arith:1")
	l.Close()
	if _, err := n.Dial(context.Background(), "tcp", "arith:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatal(err)
	}
	n.Listen("arith:1").Close() // the address is free again
}

func TestDialEndsWithItsContext(t *testing.T) {
	n := new(ansertest.Network)
	l := n.Listen("arith:1")
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := n.Dial(ctx, "tcp", "arith:1"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := new(ansertest.Network)
		l := n.Listen("arith:1")
		defer l.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for { // until the queue of the listener is full
			if _, err := n.Dial(ctx, "tcp", "arith:1"); err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				break
			}
		}
	})
}

func TestListenTwicePanics(t *testing.T) {
	n := new(ansertest.Network)
	defer n.Listen("arith:1").Close()
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, `"arith:1" is in use`) {
			t.Fatal(p)
		}
	}()
	n.Listen("arith:1")
}

func TestCloseOfListener(t *testing.T) {
	n := new(ansertest.Network)
	l := n.Listen("arith:1")
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	l.Close()
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	l.Close()

	l = n.Listen("arith:1")
	queued, err := n.Dial(context.Background(), "tcp", "arith:1")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := queued.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("a connection that was never accepted: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

// A connection that arrives while its listener is closed is refused or ends: it will never be
// accepted.
func TestDialDuringClose(t *testing.T) {
	for range 5000 {
		n := new(ansertest.Network)
		l := n.Listen("arith:1")
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			l.Close()
		}()
		c, err := n.Dial(context.Background(), "tcp", "arith:1")
		<-closed
		if err != nil {
			continue
		}
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("a connection that is not accepted: %v", err)
		}
	}
}

func TestKillEndsConnections(t *testing.T) {
	n := new(ansertest.Network)
	l := n.Listen("arith:1")
	a, server := connect(t, n, l)
	b, gone := connect(t, n, l)
	gone.Close()
	l.Kill()
	for _, c := range []net.Conn{a, b} {
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err)
		}
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := n.Dial(context.Background(), "tcp", "arith:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatal(err)
	}
}
