package connqueue_test

import (
	"errors"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/connqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQueue(t *testing.T) {
	q := connqueue.New(connqueue.ParseAddr("wss://h:1/path", "ws"))
	if a := q.Addr(); a.Network() != "wss" || a.String() != "h:1/path" {
		t.Error(a.Network(), a)
	}
	a, b := net.Pipe()
	if !q.Put(a) {
		t.Error("an open queue does not take a connection")
	}
	if got, err := q.Accept(); got != a || err != nil {
		t.Error(got, err)
	}
	q.Put(b)
	q.Close()
	q.Close()
	if _, err := b.Write(nil); err == nil {
		t.Error("what waits is not closed")
	}
	if _, err := q.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if q.Put(a) {
		t.Error("a closed queue takes a connection")
	}
	a.Close()
	<-q.Done()
}

func TestQueueIsBounded(t *testing.T) {
	q := connqueue.New(connqueue.ParseAddr("h:1", "ws"))
	defer q.Close()
	n := 0
	for ; n < 10_000; n++ {
		a, b := net.Pipe()
		b.Close()
		if !q.Put(a) {
			a.Close()
			break
		}
	}
	if n == 10_000 {
		t.Error("there is no limit to what waits")
	}
}

func TestCounter(t *testing.T) {
	c := connqueue.NewCounter()
	none := func() bool {
		select {
		case <-c.None():
			return true
		default:
			return false
		}
	}
	c.Add(2)
	c.Add(-2)
	if none() {
		t.Error("nobody watches yet")
	}
	c.Add(1)
	c.Watch()
	if none() {
		t.Error("there is one")
	}
	c.Add(-1)
	if !none() {
		t.Error("there is none")
	}
	c.Add(1) // too late, without effect
	c.Add(-1)
}
