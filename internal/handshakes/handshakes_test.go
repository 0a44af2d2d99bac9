package handshakes_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/handshakes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func never() bool { return false }

// conn returns the server's end of a connection whose client sends nothing.
func conn(t *testing.T) net.Conn {
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	return server
}

// evicted reports whether the connection's deadline is over.
func evicted(nc net.Conn) bool {
	_, err := nc.Write([]byte{0})
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func TestNewConnectionGetsThePlaceOfASilentOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		places := handshakes.New(handshakes.Config{Places: 3, Timeout: time.Hour, Evicted: func() { count++ }})
		conns := []net.Conn{conn(t), conn(t), conn(t)}
		heard, first, second := places.Enter(conns[0], never), places.Enter(conns[1], never), places.Enter(conns[2], never)
		if !heard.Heard() {
			t.Fatal("the first connection has no place")
		}
		time.Sleep(time.Millisecond)
		first.Answering() // so the second one has kept the server waiting longer
		began := time.Now()
		third := places.Enter(conn(t), never)
		if took := time.Since(began); took == 0 || took > time.Second {
			t.Errorf("the fourth connection waited for %v, want half a second", took)
		}
		if count != 1 || !evicted(conns[2]) || second.Heard() {
			t.Errorf("the silent connection keeps its place; %d lost theirs", count)
		}
		if !first.Heard() || !third.Heard() {
			t.Error("a connection lost its place that the server had not waited for")
		}
		second.Leave()
		done := make(chan *handshakes.Pending)
		go func() { done <- places.Enter(conn(t), never) }()
		time.Sleep(time.Minute)
		select {
		case <-done:
			t.Error("a connection got the place of one that the server has heard")
		default:
		}
		first.Leave()
		(<-done).Leave()
		heard.Leave()
		third.Leave()
		if count != 1 {
			t.Errorf("%d connections lost their places, want 1", count)
		}
	})
}

func TestEnterSetsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := handshakes.New(handshakes.Config{Places: 1, Timeout: time.Second})
		nc, began := conn(t), time.Now()
		p := places.Enter(nc, never)
		defer p.Leave()
		if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Error(err, time.Since(began))
		}
	})
}

func TestEnterStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := handshakes.New(handshakes.Config{Places: 1, Timeout: time.Hour})
		p := places.Enter(conn(t), never)
		p.Heard()
		began := time.Now()
		if places.Enter(conn(t), func() bool { return time.Since(began) > 10*time.Second }) != nil {
			t.Error("a second connection got the only place")
		}
		p.Leave()
		if p = places.Enter(conn(t), never); p == nil {
			t.Fatal("no place is free")
		}
		p.Leave()
	})
}

// A connection whose owner sets the deadlines is closed when it loses its place, whatever deadline
// it has then.
func TestConnectionWithItsOwnDeadlinesIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := handshakes.New(handshakes.Config{Places: 1, Timeout: time.Second, Evicted: func() {}})
		client, server := net.Pipe()
		defer client.Close()
		first := places.Enter(server, never)
		if !first.OwnDeadlines() {
			t.Fatal("the connection has no place")
		}
		read := make(chan error)
		go func() {
			_, err := server.Read(make([]byte, 1))
			read <- err
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case err := <-read:
			t.Fatalf("the deadline of the handshake is still set: %v", err)
		default:
		}
		second := places.Enter(conn(t), never)
		if err := <-read; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the connection ended with %v, want it closed", err)
		}
		if first.OwnDeadlines() || first.Heard() {
			t.Error("the connection keeps its place")
		}
		first.Leave()
		second.Leave()
	})
}
