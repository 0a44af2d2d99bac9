package anser_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// untilDone is a handler that returns when its context ends, and counts how many do.
func untilDone(ended *atomic.Int64) handler {
	return func(ctx context.Context, in *[]byte) (*[]byte, error) {
		<-ctx.Done()
		ended.Add(1)
		return in, nil
	}
}

// The end of a context ends all futures that were started with it, and their handlers.
func TestFuturesEndWithTheirContext(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ended atomic.Int64
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Wait": untilDone(&ended), "Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var waiting, other []*anser.Future[[]byte]
		for range 100 {
			waiting = append(waiting, anser.Go[[]byte](anser.WithPriority(ctx, anser.Critical), c, "Echo.Wait", text("")))
			other = append(other, anser.Go[[]byte](ctx, c, "Echo.Say", text("hello")))
		}
		if err := anser.WaitAll(context.Background(), other...); err != nil {
			t.Fatal(err)
		}
		cancel()
		for _, f := range waiting {
			_, err := f.Wait()
			if e := wantFault(t, err, anser.Canceled, anser.OutcomeUnknown); !errors.Is(e, context.Canceled) || e.Method != "Echo.Wait" {
				t.Fatal(e)
			}
		}
		synctest.Wait()
		if n := ended.Load(); n != 100 {
			t.Errorf("the contexts of %d handlers have ended, want 100", n)
		}
		_, err := anser.Go[[]byte](ctx, c, "Echo.Say", text("")).Wait()
		wantFault(t, err, anser.Canceled, anser.NotSent)
		for _, in := range c.Status().Instances {
			if in.Active != 0 {
				t.Errorf("%d calls are active", in.Active)
			}
		}
	})
}

func TestFutureDeadlines(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond)
			return in, nil
		}})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		first := anser.Go[[]byte](ctx, c, "Echo.Wait", text(""))
		second := anser.Go[[]byte](context.Background(), c, "Echo.Wait", text(""), anser.Timeout(3*time.Second))
		for f, want := range map[*anser.Future[[]byte]]time.Duration{first: time.Second, second: 3 * time.Second} {
			<-f.Done()
			_, err := f.Wait()
			wantFault(t, err, anser.DeadlineExceeded, anser.OutcomeUnknown)
			if d := time.Since(began); d < want {
				t.Errorf("over after %v, want at least %v", d, want)
			}
		}
	})
}

func TestFutureCancel(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ended atomic.Int64
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Wait": untilDone(&ended), "Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		if _, err := call(context.Background(), c, "Echo.Say", "connects"); err != nil {
			t.Fatal(err)
		}
		f, other := anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("")), anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"))
		time.Sleep(time.Second) // the waiting handler is moved off the reader goroutine
		for range 2 {
			f.Cancel()
			other.Cancel() // it is over
		}
		_, err := f.Wait()
		if e := wantFault(t, err, anser.Canceled, anser.OutcomeUnknown); e.Message != "the call was cancelled" {
			t.Error(e)
		}
		if out, err := other.Wait(); err != nil || string(*out) != "hello" {
			t.Error(err)
		}
		synctest.Wait()
		if ended.Load() != 1 {
			t.Error("the handler was not told")
		}
	})
}

// A future whose first attempt was refused goes on at another instance, and can be cancelled there
// too.
func TestFutureFailsOver(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		refuse := func(context.Context, *[]byte) (*[]byte, error) {
			return nil, anser.Refuse(anser.Unavailable, "not here")
		}
		var ended atomic.Int64
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": refuse, "Echo.Wait": refuse})
		serve(t, network.Listen("b:1"), map[string]handler{"Echo.Say": echo, "Echo.Wait": untilDone(&ended)})
		c := dial(t, "a:1,b:1", anser.Dialer(network.Dial))
		var futures []*anser.Future[[]byte]
		for range 20 {
			futures = append(futures, anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello")))
		}
		if err := anser.WaitAll(context.Background(), futures...); err != nil {
			t.Error(err)
		}
		futures = futures[:0]
		for range 20 {
			futures = append(futures, anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("hello")))
		}
		synctest.Wait()
		for _, f := range futures {
			f.Cancel()
			if _, err := f.Wait(); anser.CodeOf(err) != anser.Canceled {
				t.Errorf("%v: want Canceled", err)
			}
		}
	})
}

func TestWaitAllAndAny(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say":  echo,
			"Echo.Fail": func(context.Context, *[]byte) (*[]byte, error) { return nil, anser.Errorf(anser.NotFound, "not there") },
			"Echo.Slow": func(_ context.Context, in *[]byte) (*[]byte, error) {
				time.Sleep(time.Second)
				return in, nil
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		ctx := context.Background()
		slow := anser.Go[[]byte](ctx, c, "Echo.Slow", text("hello"))
		say := anser.Go[[]byte](ctx, c, "Echo.Say", text("hello"))
		failed := anser.Go[[]byte](ctx, c, "Echo.Fail", text("hello"))
		if i, err := anser.WaitAny(ctx, slow, say); i != 1 || err != nil {
			t.Error(i, err)
		}
		if i, err := anser.WaitAny(ctx, say, slow); i != 0 || err != nil {
			t.Error(i, err)
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if i, err := anser.WaitAny(short, slow); i != -1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(i, err)
		}
		if err := anser.WaitAll(short, slow, say); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := anser.WaitAll[anser.Awaitable](ctx, say, slow, failed); anser.CodeOf(err) != anser.NotFound {
			t.Error(err)
		}
		if i, err := anser.WaitAny(ctx, slow, slow); i != 0 || err != nil {
			t.Error(i, err)
		}
	})
}

// Many goroutines may wait for one future: one of them decodes the reply.
func TestFutureHasManyWaiters(t *testing.T) {
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": echo})
	c := dial(t, l.Addr().String())
	for range 100 {
		var trailer anser.Metadata
		f := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"), anser.Trailer(&trailer))
		got := make(chan error, 4)
		for range cap(got) {
			go func() {
				out, err := f.Wait()
				if err == nil && string(*out) != "hello" {
					err = errors.New(string(*out))
				}
				got <- err
			}()
		}
		for range cap(got) {
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A reply that cannot be decoded is the error of the first Wait, and of every other one.
func TestFutureWhoseReplyIsBroken(t *testing.T) {
	l := listen(t)
	s := anser.NewServer(silent)
	anser.Handle(s, "Arith.Mul", mul)
	run(t, s, l)
	c := dial(t, l.Addr().String())
	f := anser.Go[struct{ C []string }](context.Background(), c, "Arith.Mul", &Args{7, 8})
	<-f.Done()
	for range 2 {
		out, err := f.Wait()
		if e := wantFault(t, err, anser.Internal, anser.Executed); out != nil || e.Phase != anser.PhaseDecode || e.Method != "Arith.Mul" {
			t.Error(out, e)
		}
	}
}

// Go does not wait for a connection, and many calls that wait for one do not use as many
// goroutines.
func TestGoBeforeThereIsAConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(func(ctx context.Context, n, address string) (net.Conn, error) {
			time.Sleep(time.Second)
			return network.Dial(ctx, n, address)
		}))
		began := time.Now()
		before := runtime.NumGoroutine()
		var futures []*anser.Future[[]byte]
		for range 1000 {
			futures = append(futures, anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello")))
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("1,000 calls took %v to start", d)
		}
		for range 1000 {
			futures = append(futures, anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello")))
		}
		if d := time.Since(began); d < time.Second {
			t.Errorf("2,000 calls have started after %v, and %d goroutines are new", d, runtime.NumGoroutine()-before)
		}
		if err := anser.WaitAll(context.Background(), futures...); err != nil {
			t.Error(err)
		}
	})
}

// hold answers no REQUEST before n of them have come, with ids from 1, and then all.
func hold(p *wirepeer.Peer, n int, all chan<- struct{}, release <-chan struct{}) {
	for range n {
		if _, err := p.NextOf(wire.TypeRequest); err != nil {
			return
		}
	}
	all <- struct{}{}
	<-release
	var buf []byte
	for id := range uint64(n) {
		buf = append(buf, wirepeer.Reply(id+1, []byte("hello"))...)
		if len(buf) > 100<<10 || id == uint64(n)-1 {
			if _, err := p.Conn.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
	}
	p.Next()
}

// Calls that waited for the connection free their slots once they are sent: they may be waiting
// for calls that start after them.
func TestFuturesThatWaitedHoldNobodyUp(t *testing.T) {
	const before, after = 1024, 100
	l := listen(t)
	release := make(chan struct{})
	s := serve(t, l, map[string]handler{"Echo.Wait": func(_ context.Context, in *[]byte) (*[]byte, error) {
		<-release
		return in, nil
	}})
	connect := make(chan struct{})
	c := dial(t, l.Addr().String(), anser.Conns(1), anser.Timeout(0), anser.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		<-connect
		return new(net.Dialer).DialContext(ctx, network, address)
	}))
	var futures []*anser.Future[[]byte]
	begin := func(n int) {
		for range n {
			futures = append(futures, anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("hello")))
		}
	}
	begin(before)
	close(connect)
	began := make(chan struct{})
	go func() {
		defer close(began)
		begin(after)
	}()
	select {
	case <-began:
	case <-time.After(time.Minute):
		t.Error("Go waits for calls that came before")
		close(release)
		<-began
		return
	}
	eventually(t, "all calls are in flight", func() bool { return s.Stats().InFlight == before+after })
	futures[0].Cancel()
	if _, err := futures[0].Wait(); !errors.Is(err, anser.Canceled) {
		t.Errorf("a cancelled call that had waited returned %v", err)
	}
	close(release)
	if err := anser.WaitAll(context.Background(), futures[1:]...); err != nil {
		t.Fatal(err)
	}
}

// maxFutureBytes is what a call in flight may cost the client, with its request and its reply.
const maxFutureBytes = 1024

// A million calls in flight on one connection cost no goroutine, and less than a kilobyte each.
func TestAMillionFutures(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a million calls")
	}
	n := 1_000_000
	if raced || testing.Short() {
		n = 20_000
	}
	l := listen(t)
	all, release := make(chan struct{}, 1), make(chan struct{})
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		p := wirepeer.New(nc)
		settings := wire.DefaultSettings()
		settings.MaxCalls = 2_000_000
		if _, err := p.ReadHello(); err != nil || p.Send(wirepeer.Hello(settings)) != nil {
			return
		}
		hold(p, n, all, release)
	}()
	// The peer does not answer pings, and the calls take longer on a slow machine than a silent
	// connection may.
	c := dial(t, l.Addr().String(), anser.Conns(1), anser.Timeout(0), anser.Keepalive(time.Hour, time.Hour))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	futures := make([]*anser.Future[[]byte], 0, n)
	eventually(t, "a connection", func() bool {
		if len(futures) == 0 {
			futures = append(futures, anser.Go[[]byte](ctx, c, "Echo.Say", text("hello")))
		}
		return c.Status().Instances[0].Connected
	})
	heap, goroutines := heapInUse(), runtime.NumGoroutine()
	began := time.Now()
	for len(futures) < n {
		futures = append(futures, anser.Go[[]byte](ctx, c, "Echo.Say", text("hello")))
	}
	started := time.Since(began)
	<-all
	if more := runtime.NumGoroutine() - goroutines; more > 10 {
		t.Errorf("%d calls in flight have made %d goroutines", n, more)
	}
	size := (heapInUse() - heap) / int64(n)
	if size > maxFutureBytes {
		t.Errorf("a call in flight costs %d bytes, want at most %d", size, maxFutureBytes)
	}
	began = time.Now()
	close(release)
	if err := anser.WaitAll(ctx, futures...); err != nil {
		t.Fatal(err)
	}
	ended := time.Since(began)
	for _, f := range futures {
		if out, err := f.Wait(); err != nil || string(*out) != "hello" {
			t.Fatal(err)
		}
	}
	t.Logf("%d calls in flight: %d bytes each, %v to start and %v to end them all", n, size, started, ended)
}

// The same with a server of this package, where every call in flight has a goroutine: that of its
// handler.
func TestManyFuturesAtAServer(t *testing.T) {
	n := 50_000
	if raced || testing.Short() {
		n = 5_000
	}
	l := listen(t)
	s := anser.NewServer(silent, anser.MaxCalls(2*n), anser.MaxInFlight(n))
	release := make(chan struct{})
	anser.Handle(s, "Echo.Wait", func(_ context.Context, in *[]byte) (*[]byte, error) {
		<-release
		return in, nil
	}, anser.Concurrent())
	anser.Handle(s, "Echo.Say", echo)
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Conns(1), anser.Timeout(0))
	if _, err := call(context.Background(), c, "Echo.Say", "connect"); err != nil {
		t.Fatal(err)
	}
	before := inUse()
	futures := make([]*anser.Future[[]byte], n)
	for i := range futures {
		futures[i] = anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("hello"))
	}
	eventually(t, "all calls are in flight", func() bool { return s.Stats().InFlight == int64(n) })
	size := (inUse() - before) / int64(n)
	if size > 16<<10 {
		t.Errorf("a call in flight costs both sides %d bytes", size)
	}
	_, err := anser.Call[[]byte](context.Background(), c, "Echo.Wait", text("one more"))
	wantFault(t, err, anser.ResourceExhausted, anser.Refused)
	close(release)
	if err := anser.WaitAll(context.Background(), futures...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls in flight: %d bytes each, for both sides and with the stacks of the handlers", n, size)
}

// inUse is what heapInUse is, with the stacks of goroutines.
func inUse() int64 {
	heap := heapInUse()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return heap + int64(m.StackInuse)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkGoPipelined has one goroutine that keeps a window of calls in flight over one
// connection.
func BenchmarkGoPipelined(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	serveUnary(b, l)
	for name, window := range map[string]int{"window16": 16, "window256": 256} {
		b.Run(name, func(b *testing.B) {
			c, err := anser.Dial(l.Addr().String(), anser.Conns(1))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			payload := make([]byte, 64)
			ctx := context.Background()
			ring := make([]*anser.Future[[]byte], window)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if f := ring[i%window]; f != nil {
					if _, err := f.Wait(); err != nil {
						b.Fatal(err)
					}
				}
				ring[i%window] = anser.Go[[]byte](ctx, c, "Echo.Bytes", &payload)
				i++
			}
			for _, f := range ring {
				if f != nil {
					f.Wait()
				}
			}
		})
	}
}
