package filetransfer_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/filetransfer"
)

const cuts = 20

// cutting returns a dial function whose first connections are cut after some hundred KiB were
// written.
func cutting(dialed *atomic.Int64) anser.DialOption {
	return anser.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil || dialed.Add(1) > cuts {
			return nc, err
		}
		return ansertest.Faulty(nc, ansertest.Faults{CutAfter: 50<<10 + rand.Int64N(400<<10)}), nil
	})
}

func TestPutOverConnectionsThatBreak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 6 s")
	}
	s := newSite(t)
	var dialed atomic.Int64
	c := s.dial(cutting(&dialed))
	data := content(16 << 20)
	local := filepath.Join(t.TempDir(), "local")
	write(t, local, data)
	r, err := filetransfer.Put(within(t), c, local, "a")
	if err != nil {
		t.Fatal(err)
	}
	s.want("a", data)
	if r.Breaks != cuts || r.Resumed != 0 {
		t.Errorf("%+v: want %d breaks", r, cuts)
	}
	if left := s.parts(); len(left) > 0 {
		t.Errorf("unfinished files are left: %q", left)
	}
}

// cuttingListener cuts the first connections after the server has written some hundred KiB.
type cuttingListener struct {
	net.Listener
	accepted int
}

func (l *cuttingListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if l.accepted++; err != nil || l.accepted > cuts {
		return nc, err
	}
	return ansertest.Faulty(nc, ansertest.Faults{CutAfter: 50<<10 + rand.Int64N(400<<10)}), nil
}

func TestGetOverConnectionsThatBreak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 7 s")
	}
	s := &site{t: t, dir: t.TempDir()}
	s.start(&cuttingListener{Listener: listen(t, "127.0.0.1:0")})
	c := s.dial()
	data := content(16 << 20)
	s.write("a", data)
	local := filepath.Join(t.TempDir(), "local")
	r, err := filetransfer.Get(within(t), c, "a", local)
	if err != nil {
		t.Fatal(err)
	}
	want(t, local, data)
	if r.Breaks != cuts || r.Resumed != 0 {
		t.Errorf("%+v: want %d breaks", r, cuts)
	}
	if left := parts(t, filepath.Dir(local)); len(left) > 0 {
		t.Errorf("unfinished files are left: %q", left)
	}
}

// restart kills the server, and starts another one with the same folder at the same address.
func (s *site) restart(opts ...filetransfer.ServeOption) {
	s.t.Helper()
	s.server.Close()
	s.start(listen(s.t, s.address), opts...)
}

func TestServerIsRestarted(t *testing.T) {
	data := content(4 << 20)
	t.Run("put", func(t *testing.T) {
		s := newSite(t)
		r, err := filetransfer.PutFrom(within(t), s.client, newSource(data, 2<<20, func() { s.restart() }), int64(len(data)), "a")
		if err != nil {
			t.Fatal(err)
		}
		s.want("a", data)
		if r.Breaks == 0 {
			t.Errorf("%+v: the restart was not noticed", r)
		}
	})
	t.Run("get", func(t *testing.T) {
		s := newSite(t)
		s.write("a", data)
		var got bytes.Buffer
		hook := &hookWriter{at: 1 << 20, f: func() { s.restart() }}
		r, err := filetransfer.GetTo(within(t), s.client, "a", both{&got, hook})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), data) || r.Breaks == 0 {
			t.Errorf("%d bytes, %+v", got.Len(), r)
		}
	})
}

// both writes to two writers.
type both struct {
	a *bytes.Buffer
	b *hookWriter
}

func (w both) Write(b []byte) (int, error) {
	w.b.Write(b)
	return w.a.Write(b)
}

// putPart starts to put data as "a", and stops after 3 MiB.
func (s *site) putPart(data []byte, opts ...filetransfer.Option) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(within(s.t))
	_, err := filetransfer.PutFrom(ctx, s.client, newSource(data, 3<<20, cancel), int64(len(data)), "a", opts...)
	if !errors.Is(err, context.Canceled) {
		s.t.Fatal(err)
	}
}

// A transfer is continued by another process, but not with other bytes.
func TestPutGoesOnInAnotherProcess(t *testing.T) {
	for _, changed := range []bool{false, true} {
		s := newSite(t)
		data := content(4 << 20)
		s.putPart(data, filetransfer.Resume())
		eventually(t, "the server let go of the unfinished file", func() bool {
			list, err := s.service.Partials(t.Context())
			return err == nil && len(list) == 1 && !list[0].Active && list[0].Size > 0
		})
		if changed {
			data = content(len(data))
		}
		r, err := filetransfer.PutFrom(within(t), s.dial(), bytes.NewReader(data), int64(len(data)), "a", filetransfer.Resume())
		if err != nil {
			t.Fatal(err)
		}
		s.want("a", data)
		if (r.Resumed == 0) != changed || r.Breaks != 0 {
			t.Errorf("%+v, changed: %v", r, changed)
		}
	}
}

func TestGetGoesOnInAnotherProcess(t *testing.T) {
	for _, changed := range []bool{false, true} {
		// The first process stops when its connection was cut in the middle.
		s := &site{t: t, dir: t.TempDir()}
		s.start(ansertest.FaultyListener(listen(t, "127.0.0.1:0"), ansertest.Faults{CutAfter: 4 << 20}, nil))
		data := content(8 << 20)
		s.write("a", data)
		local := filepath.Join(t.TempDir(), "local")
		ctx, cancel := context.WithCancel(within(t))
		var dialed atomic.Int64
		_, err := filetransfer.Get(ctx, s.dial(anser.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if dialed.Add(1) > 1 {
				cancel()
				return nil, context.Canceled
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		})), "a", local, filetransfer.Resume())
		cancel()
		if err == nil {
			t.Fatal("the file was fetched over a connection that was cut")
		}
		left := parts(t, filepath.Dir(local))
		if len(left) != 1 {
			t.Fatalf("unfinished files: %q, after %v", left, err)
		}
		if changed {
			data = content(8 << 20)
			s.write("a", data)
		}
		s.restart()
		r, err := filetransfer.Get(within(t), s.dial(), "a", local, filetransfer.Resume())
		if err != nil {
			t.Fatal(err)
		}
		want(t, local, data)
		if (r.Resumed == 0) != changed {
			t.Errorf("%+v, changed: %v", r, changed)
		}
	}
}

func TestWhatIsGivenUpLeavesNothing(t *testing.T) {
	s := newSite(t)
	s.putPart(content(4 << 20))
	eventually(t, "the server removed the unfinished file", func() bool { return len(s.parts()) == 0 })
	missing(t, filepath.Join(s.dir, "a"))
}

// The file is in place, and the connection breaks before the client receives the answer.
func TestAnswerIsLost(t *testing.T) {
	for _, opts := range [][]filetransfer.Option{nil, {filetransfer.NoReplace()}} {
		var completed atomic.Int64
		var conn atomic.Pointer[ansertest.FaultyConn]
		s := newSite(t, filetransfer.OnComplete(func(context.Context, filetransfer.Result) {
			if completed.Add(1) == 1 {
				conn.Load().Cut()
			}
		}))
		c := s.dial(anser.Dialer(ansertest.FaultyDial(new(net.Dialer).DialContext, ansertest.Faults{}, func(f *ansertest.FaultyConn) { conn.Store(f) })))
		data := content(1 << 20)
		r, err := filetransfer.PutFrom(within(t), c, bytes.NewReader(data), int64(len(data)), "a", opts...)
		if err != nil {
			t.Fatal(err)
		}
		s.want("a", data)
		if completed.Load() != 1 || r.Breaks != 1 || r.Sum == "" {
			t.Errorf("%+v: the file was completed %d times", r, completed.Load())
		}
	}
}

// A transfer that is started again takes over from the one that is still running.
func TestTransferIsBegunAgain(t *testing.T) {
	s := newSite(t)
	data := content(4 << 20)
	waits, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := filetransfer.PutFrom(within(t), s.client, newSource(data, 2<<20, func() {
			close(waits)
			<-goOn
		}), int64(len(data)), "a", filetransfer.Resume())
		first <- err
	}()
	<-waits
	r, err := filetransfer.PutFrom(within(t), s.dial(), bytes.NewReader(data), int64(len(data)), "a", filetransfer.Resume())
	close(goOn)
	if err != nil {
		t.Fatal(err)
	}
	if r.Resumed == 0 {
		t.Errorf("%+v: want it to have gone on", r)
	}
	wantCode(t, <-first, anser.Aborted, "begun again")
	s.want("a", data)
}

func TestOtherStore(t *testing.T) {
	data := content(4 << 20)
	elsewhere := func(s *site) func() {
		return func() {
			s.server.Close()
			s.dir = t.TempDir()
			s.start(listen(t, s.address))
		}
	}
	s := newSite(t)
	_, err := filetransfer.PutFrom(within(t), s.client, newSource(data, 2<<20, elsewhere(s)), int64(len(data)), "a", filetransfer.Patience(time.Nanosecond))
	wantCode(t, err, anser.FailedPrecondition, "filetransfer.Store", "filetransfer.AnyStore")
	missing(t, filepath.Join(s.dir, "a"))

	s = newSite(t)
	if _, err := filetransfer.PutFrom(within(t), s.client, newSource(data, 2<<20, elsewhere(s)), int64(len(data)), "a", filetransfer.AnyStore()); err != nil {
		t.Fatal(err)
	}
	s.want("a", data)
}

func TestWithoutServer(t *testing.T) {
	s := newSite(t)
	s.server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := filetransfer.PutFrom(ctx, s.client, bytes.NewReader(nil), 0, "a")
	if err == nil {
		t.Error("a file was sent without a server")
	}
}
