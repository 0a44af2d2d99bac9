package collect

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// A host that closes a connection is read in the next round, whose turn it may not be. The end of
// a connection that the console has closed says nothing.
func TestHostsThatCloseConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := New(Options{})
	dial := func() (near, far net.Conn) {
		near, err := c.lost.dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if far, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return near, far
	}
	near, far := dial()
	near.Close()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	far.Close()
	if lost := c.lost.take(); len(lost) != 0 {
		t.Errorf("the console has closed it: %v", lost)
	}
	near, far = dial()
	defer near.Close()
	far.Close()
	if _, err := near.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	now := time.Now()
	list := make([]*process, 1000)
	for i := range list {
		list[i] = newProcess("http://10.0.0.1:1/", i)
		list[i].asked, list[i].view.Window = now, time.Second
	}
	list[7].host = hostOf("http://" + l.Addr().String() + "/")
	c.Look(time.Minute)
	c.turn = 2 // the next one is that of the slots 3, 8 and so on
	due := c.due(list, now)
	if len(due) != 201 {
		t.Errorf("%d processes are read", len(due))
	}
	if due := c.due(list, now); len(due) != 200 {
		t.Errorf("%d processes are read in the next round", len(due))
	}
}

func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8971/": "127.0.0.1:8971", "https://a.example/x/": "a.example:443", "http://[::1]/": "[::1]:80", "a:1": "a:1", "": "",
	} {
		if got := hostOf(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

func TestTurns(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 200: 1, 201: 2, 1000: 5, 5000: 5} {
		if got := turns(n); got != want {
			t.Errorf("%d processes are read in %d turns, want %d", n, got, want)
		}
	}
}
