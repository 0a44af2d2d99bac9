package timeout_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/interceptor/timeout"
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// waiting runs a server whose handlers wait for the end of their context, and returns a function
// that makes a call and returns how long the handler ran.
func waiting(t *testing.T, l net.Listener, dial anser.DialOption, opts ...timeout.Option) func(ctx context.Context, method string, opts ...anser.CallOption) (time.Duration, error) {
	t.Helper()
	bound, err := timeout.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	had := make(chan time.Duration, 1)
	s := anser.NewServer(silent, anser.Intercept(bound))
	wait := func(ctx context.Context, in *[]byte) (*[]byte, error) {
		began := time.Now()
		if _, ok := ctx.Deadline(); !ok {
			had <- 0
			return in, nil
		}
		<-ctx.Done()
		had <- time.Since(began)
		return nil, ctx.Err()
	}
	for _, m := range []string{"Wait.A", "Wait.Long", "Wait.Free"} {
		anser.Handle(s, m, wait)
	}
	anser.Handle(s, "Wait.Own", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		<-ctx.Done()
		had <- 0
		return nil, anser.Errorf(anser.Aborted, "of its own")
	})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c, err := anser.Dial(l.Addr().String(), dial, silent, anser.NoSnapshot(), anser.Timeout(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
		<-done
	})
	return func(ctx context.Context, method string, opts ...anser.CallOption) (time.Duration, error) {
		var in, out []byte
		err := c.Call(ctx, method, &in, &out, opts...)
		return <-had, err
	}
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		method string
		caller time.Duration
		want   time.Duration
		says   string // part of the error; "" for the caller's own
	}{
		{"Wait.A", 0, 2 * time.Second, "within 2s, the default time"},
		{"Wait.A", time.Second, time.Second, ""},
		{"Wait.A", time.Minute, 5 * time.Second, "within 5s, the maximum time"},
		{"Wait.Long", 0, time.Minute, "within 1m0s, the default time"},
		{"Wait.Long", time.Hour, time.Hour, ""},
		{"Wait.Free", 0, 0, "none"},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := new(ansertest.Network)
			call := waiting(t, network.Listen("a:1"), anser.Dialer(network.Dial),
				timeout.Default(2*time.Second), timeout.Max(5*time.Second),
				timeout.Method("Wait.Long", time.Minute, 0), timeout.Method("Wait.Free", 0, 0))
			ctx := context.Background()
			if test.caller != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.caller)
				defer cancel()
			}
			had, err := call(ctx, test.method)
			if had != test.want {
				t.Errorf("%+v: the handler had %v", test, had)
			}
			switch {
			case test.says == "none":
				if err != nil {
					t.Errorf("%+v: %v", test, err)
				}
			case anser.CodeOf(err) != anser.DeadlineExceeded:
				t.Errorf("%+v: %v", test, err)
			case test.says != "":
				if e, _ := errors.AsType[*anser.Error](err); e.Outcome != anser.Executed || !strings.Contains(e.Message, test.says) {
					t.Errorf("%+v: %v", test, err)
				}
			}
		})
	}
}

// A handler's own error after its timeout is not replaced.
func TestOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(ansertest.Network)
		call := waiting(t, network.Listen("a:1"), anser.Dialer(network.Dial), timeout.Default(time.Second))
		if _, err := call(context.Background(), "Wait.Own"); !errors.Is(err, anser.Aborted) {
			t.Error(err)
		}
	})
}

func TestOverASocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	call := waiting(t, l, anser.Conns(1), timeout.Max(10*time.Millisecond))
	// The handler's time is not checked here: the timeout begins before the handler does. The
	// error comes from the server, as the client sets no timeout.
	_, err = call(context.Background(), "Wait.A")
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.DeadlineExceeded || e.Outcome != anser.Executed || !strings.Contains(e.Message, "within 10ms, the maximum time") {
		t.Errorf("%v: want the server's word that the time was over", err)
	}
}

func TestMistakes(t *testing.T) {
	for _, opts := range [][]timeout.Option{
		{},
		{nil},
		{timeout.Default(0)},
		{timeout.Max(-1)},
		{timeout.Method("", 1, 1)},
		{timeout.Method("A.B", -1, 0)},
		{timeout.Method("A.B", 1, 1), timeout.Method("A.B", 1, 1)},
	} {
		if i, err := timeout.New(opts...); err == nil || i != nil {
			t.Errorf("%d options: no error", len(opts))
		}
	}
}

// Streams outlast the timeouts of calls, on either side, unless a server's method has one of its
// own.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound, err := timeout.New(timeout.Default(time.Second), timeout.Max(2*time.Second), timeout.Method("Talk.Short", 0, 5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		network := new(ansertest.Network)
		l := network.Listen("a:1")
		s := anser.NewServer(silent, anser.Intercept(bound))
		for _, name := range []string{"Talk.Long", "Talk.Short"} {
			anser.HandleStream(s, name, func(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
				for in, err := range st.All() {
					if err != nil {
						return err
					}
					st.Send(in)
				}
				return nil
			})
		}
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		c, err := anser.Dial("a:1", anser.Dialer(network.Dial), silent, anser.Intercept(bound))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			c.Close()
			s.Close()
			<-done
		}()
		open := func(name string) *anser.Stream[[]byte, []byte] {
			st, err := anser.Open[[]byte, []byte](t.Context(), c, name)
			if err != nil {
				t.Fatal(err)
			}
			return st
		}
		long, short := open("Talk.Long"), open("Talk.Short")
		time.Sleep(time.Minute)
		if err := long.Send(new([]byte("a"))); err != nil {
			t.Error(err)
		}
		if out, err := long.Recv(); err != nil || string(*out) != "a" {
			t.Error(out, err)
		}
		long.Close()
		if _, err := short.Recv(); anser.CodeOf(err) != anser.DeadlineExceeded {
			t.Error(err)
		}
	})
}
