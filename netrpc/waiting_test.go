package netrpc_test

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser/netrpc"
)

// Calls that wait for MaxPerConn give up their places when the connection ends, whatever the calls
// that run do.
func TestWaitingCallsEndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaits()
		s := quiet(w)
		s.MaxPerConn = 1
		c := netrpc.NewClient(serveInMemory(t, s, nil)())
		for range 3 {
			c.Go("Waits.Stubborn", &Args{}, new(Reply), nil)
		}
		<-w.entered
		synctest.Wait()
		if n := s.Stats().InFlight; n != 3 {
			t.Errorf("%d calls are in flight, want 3", n)
		}
		c.Close()
		synctest.Wait()
		if n := s.Stats().InFlight; n != 1 {
			t.Errorf("%d calls are in flight after the end, want 1", n)
		}
		close(w.release)
	})
}

// A call whose connection is lost while its request is decoded does not run.
func TestCallsReadAfterTheEndDoNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaits()
		s := quiet(w)
		c := &slowCodec{closed: make(chan struct{})}
		served := make(chan struct{})
		go func() { s.ServeCodec(c); close(served) }()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-served
		if st := s.Stats(); len(w.entered) != 0 || st.Refused != 1 || st.InFlight != 0 {
			t.Errorf("%d calls ran, %d were refused and %d are in flight, want one refused", len(w.entered), st.Refused, st.InFlight)
		}
	})
}

// slowCodec decodes one request, for which it takes until it is closed.
type slowCodec struct {
	read   bool
	closed chan struct{}
	once   sync.Once
}

func (c *slowCodec) ReadRequestHeader(r *netrpc.Request) error {
	if c.read {
		return io.EOF
	}
	c.read, r.ServiceMethod, r.Seq = true, "Waits.Here", 1
	return nil
}

func (c *slowCodec) ReadRequestBody(any) error { <-c.closed; return nil }

func (c *slowCodec) WriteResponse(*netrpc.Response, any) error { return nil }

func (c *slowCodec) Close() error { c.once.Do(func() { close(c.closed) }); return nil }
