package collect

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
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
	due := c.due(list, now, true)
	if len(due) != 201 {
		t.Errorf("%d processes are read", len(due))
	}
	c.lost.add(list[7].host)
	if due := c.due(list, now, false); len(due) != 1 || due[0] != list[7] {
		t.Errorf("%d processes are read before their time", len(due))
	}
	if due := c.due(list, now, true); len(due) != 200 {
		t.Errorf("%d processes are read in the next round", len(due))
	}
}

// A host that closes each connection, and whose process answers, is not asked again for that.
func TestHostsThatCloseEveryConnection(t *testing.T) {
	var l lostHosts
	told := 0
	l.told = func() { told++ }
	now := time.Now()
	l.add("a:1")
	if !l.take()["a:1"] || told != 1 {
		t.Fatalf("the host is not noted, told %d times", told)
	}
	l.answered("a:1", now)
	if l.add("a:1"); len(l.take()) != 0 || told != 1 {
		t.Errorf("a host that answers is noted again, told %d times", told)
	}
	if l.add("b:1"); !l.take()["b:1"] {
		t.Error("another host is not noted")
	}
	if !l.note("a:1", now.Add(calmFor)) {
		t.Error("the host is not noted after a while")
	}
}

// A process whose connection ends is asked within a second also while no viewer looks, or while one
// looks at processes with little to do, and once if it has not ended.
func TestLostProcesses(t *testing.T) {
	for _, watched := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const at = "http://127.0.0.1:1/3/"
			reader, _ := readerOfPage(t)
			c := New(Options{Pages: []string{at}, Client: reader.Client})
			if watched {
				c.budget.use, c.budget.counted = 0.001, time.Now()
				c.Look(time.Hour)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); c.Run(ctx, func(*Round) {}) }()
			time.Sleep(14500 * time.Millisecond) // it is read at 14 and 18 seconds, or at 10 and 20
			synctest.Wait()
			before := c.Reads()
			for i, want := range []int64{1, 1} {
				c.lost.add(hostOf(at))
				time.Sleep(time.Second)
				synctest.Wait()
				if got := c.Reads() - before; got != want {
					t.Errorf("watched: %v, after end %d: %d readings, want %d", watched, i+1, got, want)
				}
			}
			cancel()
			<-done
		})
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
	for n, want := range map[int][2]int{0: {1, 1}, 1: {1, 1}, 200: {1, 1}, 201: {2, 1}, 500: {3, 1}, 501: {3, 2}, 1000: {5, 2}, 5000: {5, 2}} {
		if got := [2]int{turns(n, Watched), turns(n, Slowest/2)}; got != want {
			t.Errorf("%d processes are read in %v turns, want %v", n, got, want)
		}
	}
}
