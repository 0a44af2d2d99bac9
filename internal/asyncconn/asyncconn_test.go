package asyncconn_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/asyncconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is a transport without deadlines.
type pipe struct {
	r *io.PipeReader
	w *io.PipeWriter
}

func (p pipe) Read(b []byte) (int, error) { return p.r.Read(b) }
func (p pipe) Write(b []byte) error       { _, err := p.w.Write(b); return err }
func (p pipe) CloseWrite() error          { return p.w.Close() }
func (p pipe) Close(bool)                 { p.r.CloseWithError(net.ErrClosed); p.w.CloseWithError(io.ErrUnexpectedEOF) }

func pair(t *testing.T) (a, b *asyncconn.Conn) {
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	a, b = asyncconn.New(pipe{ar, aw}, nil, nil), asyncconn.New(pipe{br, bw}, nil, nil)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		buf := make([]byte, 3)
		// A deadline set during a Read also applies, and replaces the previous one.
		a.SetReadDeadline(time.Now().Add(2 * time.Second))
		go func() {
			time.Sleep(time.Second)
			a.SetReadDeadline(time.Now().Add(time.Minute))
			time.Sleep(time.Minute / 2)
			a.SetReadDeadline(time.Now())
		}()
		began := time.Now()
		for range 2 {
			if _, err := a.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		}
		if d := time.Since(began); d != 31*time.Second {
			t.Errorf("it took %v", d)
		}
		a.SetReadDeadline(time.Time{})
		go b.Write([]byte("hello"))
		if n, err := a.Read(buf); string(buf[:n]) != "hel" || err != nil {
			t.Errorf("%q, %v", buf[:n], err)
		}
		if n, err := a.Read(buf); string(buf[:n]) != "lo" || err != nil {
			t.Errorf("%q, %v", buf[:n], err)
		}
		a.SetReadDeadline(time.Now().Add(-1))
		if _, err := a.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestCloseWrite(t *testing.T) {
	a, b := pair(t)
	go func() {
		a.Write([]byte("last words"))
		a.CloseWrite()
	}()
	if got, err := io.ReadAll(b); string(got) != "last words" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	go b.Write([]byte("x"))
	if n, err := a.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Error(n, err)
	}
}

// full is a transport that takes nothing any more until it is closed.
type full struct{ closed chan struct{} }

func (f full) Read([]byte) (int, error) { <-f.closed; return 0, net.ErrClosed }
func (f full) Write([]byte) error       { <-f.closed; return net.ErrClosed }
func (f full) CloseWrite() error        { <-f.closed; return net.ErrClosed }
func (f full) Close(bool)               { close(f.closed) }

// A peer that takes nothing does not hold up the end of a direction.
func TestCloseWriteEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := asyncconn.New(full{make(chan struct{})}, nil, nil)
		defer c.Close()
		began := time.Now()
		if err := c.CloseWrite(); err == nil || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t)
		a.SetWriteDeadline(time.Now().Add(time.Second))
		var err error
		for range 3 { // the peer reads one piece
			if _, err = a.Write(make([]byte, 100<<10)); err != nil {
				break
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	a, b := pair(t)
	read := make(chan error, 1)
	go func() {
		_, err := a.Read(make([]byte, 1))
		read <- err
	}()
	a.Close()
	a.Close()
	if err := <-read; err == nil {
		t.Error("Read goes on")
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := b.Read(make([]byte, 1)); err == nil {
		t.Error("the other side does not see the end")
	}
}

// A Read in progress when the connection is closed owns its piece: later data is discarded in
// another buffer. This test is for the race detector.
func TestCloseWhileReading(t *testing.T) {
	for range 200 {
		a, b := pair(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			for buf := make([]byte, 16); ; {
				if _, err := a.Read(buf); err != nil {
					return
				}
			}
		})
		wg.Go(func() {
			for range 4 {
				if _, err := b.Write(make([]byte, 8<<10)); err != nil {
					return
				}
			}
		})
		wg.Go(func() { a.Close() })
		wg.Wait()
		b.Close()
	}
}
