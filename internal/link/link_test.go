package link_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func text(s string) func(*bytes.Buffer) error {
	return func(b *bytes.Buffer) error {
		b.WriteString(s)
		return nil
	}
}

// gate is a connection whose writes wait until the test lets them through.
type gate struct {
	net.Conn
	writes chan string   // the written data
	open   chan struct{} // lets a write through
}

func newGate() *gate { return &gate{writes: make(chan string, 100), open: make(chan struct{}, 100)} }

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.writes <- string(p)
	return len(p), nil
}
func (g *gate) SetWriteDeadline(time.Time) error { return nil }
func (g *gate) Close() error                     { return nil }

// Data appended during a write is part of the next write, whichever goroutine flushes.
func TestWritesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		c := link.New(g, nil)
		var all sync.WaitGroup
		send := func(s string) {
			all.Go(func() {
				end, err := c.Out.Append(nil, text(s))
				if err == nil {
					err = c.Out.FlushTo(end)
				}
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		send("a")
		for range 5 {
			send("b")
		}
		g.open <- struct{}{}
		g.open <- struct{}{}
		all.Wait()
		if first, second := <-g.writes, <-g.writes; first != "a" || second != "bbbbb" {
			t.Errorf("written are %q and %q: want a and bbbbb", first, second)
		}
		if err := c.Out.FlushAll(); err != nil {
			t.Error(err)
		}
	})
}

// If much data is waiting to be written, Append waits, too, unless its caller gives up.
func TestAppendWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		c := link.New(g, nil)
		large := string(make([]byte, 300<<10))
		for range 2 { // one that is being written, and one after it
			if _, err := c.Out.Append(nil, text(large)); err != nil {
				t.Fatal(err)
			}
			c.Out.FlushLater()
			synctest.Wait()
		}
		giveUp := make(chan struct{})
		results := make(chan error, 2)
		go func() {
			_, err := c.Out.Append(giveUp, text("x"))
			results <- err
		}()
		go func() {
			_, err := c.Out.Append(nil, text("y"))
			results <- err
		}()
		synctest.Wait()
		if len(results) > 0 {
			t.Fatal("there is room")
		}
		close(giveUp)
		if err := <-results; !errors.Is(err, link.ErrGaveUp) {
			t.Errorf("who gave up: %v", err)
		}
		g.open <- struct{}{}
		g.open <- struct{}{}
		if err := <-results; err != nil {
			t.Errorf("who waited: %v", err)
		}
		g.open <- struct{}{}
		c.Out.FlushAll()
	})
}

// All waiting goroutines learn that the connection has ended.
func TestCloseWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := net.Pipe() // it is never read
		defer two.Close()
		c := link.New(one, nil)
		results := make(chan error, 3)
		for range cap(results) {
			go func() {
				end, err := c.Out.Append(nil, text("x"))
				if err == nil {
					err = c.Out.FlushTo(end)
				}
				results <- err
			}()
		}
		synctest.Wait()
		c.Close()
		for range cap(results) {
			if err := <-results; err == nil {
				t.Error("a write succeeds that nobody has read")
			}
		}
		if _, err := c.Out.Append(nil, text("x")); err == nil {
			t.Error("a closed connection takes something")
		}
		if err := c.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}

// A write that makes no progress ends the connection.
func TestStalledWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := net.Pipe()
		defer two.Close()
		c := link.New(one, nil)
		c.SetLimits(link.Limits{MaxMessage: 1, Stall: time.Second})
		began := time.Now()
		_, err := c.Out.Append(nil, text("x"))
		if err = errors.Join(err, c.Out.FlushAll()); err == nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v, want an error after a second", err, time.Since(began))
		}
		if _, err := two.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the other side: %v, want the end", err)
		}
	})
}

// A message that has begun must continue; between messages there is no limit.
func TestStalledReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := net.Pipe()
		defer one.Close()
		defer two.Close()
		c := link.New(one, []byte("ab"))
		c.SetLimits(link.Limits{MaxMessage: 100, Stall: time.Second})
		b := make([]byte, 10)
		if n, err := c.Read(b); string(b[:n]) != "ab" || err != nil {
			t.Fatalf("what was there: %q, %v", b[:n], err)
		}
		c.Rest(0)
		go func() {
			time.Sleep(time.Hour)
			two.Write([]byte("c"))
		}()
		if n, err := c.Read(b); string(b[:n]) != "c" || err != nil {
			t.Fatalf("after an hour: %q, %v", b[:n], err)
		}
		began := time.Now()
		if _, err := c.Read(b); err == nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v, want an error after a second", err, time.Since(began))
		}
	})
}
