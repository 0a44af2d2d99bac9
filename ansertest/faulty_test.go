package ansertest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
)

// writes records the sizes of the writes that reach a connection.
type writes struct {
	net.Conn
	sizes []int
}

func (w *writes) Write(b []byte) (int, error) {
	w.sizes = append(w.sizes, len(b))
	return w.Conn.Write(b)
}

func TestBytewise(t *testing.T) {
	client, server := ansertest.Pipe()
	noted := &writes{Conn: client}
	c := ansertest.Faulty(noted, ansertest.Faults{Bytewise: true})
	if n, err := c.Write([]byte("abc")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	c.Close()
	if got, _ := io.ReadAll(server); string(got) != "abc" || len(noted.sizes) != 3 || c.Written() != 3 {
		t.Fatal(string(got), noted.sizes)
	}
}

func TestCutAfter(t *testing.T) {
	client, server := ansertest.Pipe()
	c := ansertest.Faulty(client, ansertest.Faults{CutAfter: 5})
	if n, err := c.Write([]byte("abcdefgh")); n != 5 || !errors.Is(err, ansertest.ErrCut) {
		t.Fatal(n, err)
	}
	if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, ansertest.ErrCut) {
		t.Fatal(n, err)
	}
	if got, err := io.ReadAll(server); string(got) != "abcde" || err != nil {
		t.Fatal(string(got), err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

func TestStallAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := ansertest.Pipe()
		c := ansertest.Faulty(client, ansertest.Faults{StallAfter: 3})
		began := time.Now()
		c.SetWriteDeadline(began.Add(10 * time.Second))
		if n, err := c.Write([]byte("abcd")); n != 3 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(n, err)
		}
		if d := time.Since(began); d != 10*time.Second {
			t.Fatal(d)
		}
		c.SetDeadline(time.Time{})
		go func() {
			time.Sleep(time.Minute)
			c.Resume()
		}()
		if n, err := c.Write([]byte("def")); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		if d := time.Since(began); d != 70*time.Second {
			t.Fatal(d)
		}
		c.Close()
		if got, _ := io.ReadAll(server); string(got) != "abcdef" {
			t.Fatal(string(got))
		}
	})
}

func TestStallEndsWithCloseAndCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, end := range map[error]func(*ansertest.FaultyConn){
			net.ErrClosed:    func(c *ansertest.FaultyConn) { c.Close() },
			ansertest.ErrCut: func(c *ansertest.FaultyConn) { c.Cut() },
		} {
			client, _ := ansertest.Pipe()
			c := ansertest.Faulty(client, ansertest.Faults{})
			c.Stall()
			done := make(chan error)
			go func() {
				_, err := c.Write([]byte("x"))
				done <- err
			}()
			synctest.Wait()
			end(c)
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := ansertest.Pipe()
		c := ansertest.Faulty(client, ansertest.Faults{Delay: time.Second})
		began := time.Now()
		c.Write([]byte("x"))
		if d := time.Since(began); d != time.Second {
			t.Fatal(d)
		}
		c.Close()
	})
}

func TestCloseWriteOfFaulty(t *testing.T) {
	client, server := ansertest.Pipe()
	c := ansertest.Faulty(client, ansertest.Faults{})
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	if err := ansertest.Faulty(&writes{Conn: client}, ansertest.Faults{}).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
}

func TestFaultyDialAndListener(t *testing.T) {
	n := new(ansertest.Network)
	var ends []*ansertest.FaultyConn
	note := func(c *ansertest.FaultyConn) { ends = append(ends, c) }
	l := ansertest.FaultyListener(n.Listen("arith:1"), ansertest.Faults{CutAfter: 2}, note)
	defer l.Close()
	dial := ansertest.FaultyDial(n.Dial, ansertest.Faults{CutAfter: 1}, note)
	client, err := dial(context.Background(), "tcp", "arith:1")
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write([]byte("abc")); !errors.Is(err, ansertest.ErrCut) {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("abc")); err == nil {
		t.Fatal("no error")
	}
	if len(ends) != 2 {
		t.Fatal(len(ends))
	}
	if _, err := dial(context.Background(), "tcp", "nobody:1"); err == nil {
		t.Fatal("no error")
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}
