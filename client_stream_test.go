package anser_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
)

// A stream is opened at another instance when the first one cannot be reached.
func TestOpenElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serveStreams(t, network.Listen("b:1"), map[string]streamHandler{"Chat.Talk": talk})
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		for range 6 {
			st := open(t, context.Background(), c, "Chat.Talk")
			say(t, st, "hello")
			hear(t, st, "hello")
			st.CloseSend()
			hearEnd(t, st)
		}
		if n := s.Stats().Methods["Chat.Talk"].Calls; n != 6 {
			t.Errorf("%d streams, want 6", n)
		}
	})
}

// A stream that cannot be opened was not sent, and the error comes before there is a stream.
func TestOpenFails(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk})
		serveStreams(t, network.Listen("none:1"), nil, anser.MaxStreams(0))
		good := dial(t, "a:1", anser.Dialer(network.Dial))
		closed := dial(t, "a:1", anser.Dialer(network.Dial))
		closed.Close()
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		var trailer anser.Metadata
		for name, test := range map[string]struct {
			c      *anser.Client
			ctx    context.Context
			method string
			opts   []anser.CallOption
			code   anser.Code
			text   string
			after  time.Duration
		}{
			"nobody there":        {c: dial(t, "x:1", anser.Dialer(network.Dial)), code: anser.Unavailable, opts: []anser.CallOption{anser.WithFailMode(anser.Failfast)}},
			"nobody comes":        {c: dial(t, "x:1", anser.Dialer(network.Dial), anser.Timeout(time.Second)), code: anser.Unavailable, after: time.Second},
			"cancelled before":    {ctx: cancelled, code: anser.Canceled},
			"no time":             {opts: []anser.CallOption{anser.Timeout(-1)}, code: anser.DeadlineExceeded},
			"no context":          {ctx: noContext, code: anser.InvalidArgument, text: "context.Background()"},
			"a name that is none": {method: "Chat\x00Talk", code: anser.InvalidArgument},
			"attempts":            {opts: []anser.CallOption{anser.Attempts(2)}, code: anser.InvalidArgument, text: "never opened again"},
			"idempotent":          {opts: []anser.CallOption{anser.Idempotent()}, code: anser.InvalidArgument, text: "never opened again"},
			"trailer":             {opts: []anser.CallOption{anser.Trailer(&trailer)}, code: anser.InvalidArgument, text: "the method Trailer of the stream"},
			"closed client":       {c: closed, code: anser.Canceled},
			"none offered":        {c: dial(t, "none:1", anser.Dialer(network.Dial)), code: anser.Unimplemented, text: "anser.MaxStreams"},
		} {
			c, ctx, method := test.c, test.ctx, test.method
			if c == nil {
				c = good
			}
			switch ctx {
			case nil:
				ctx = context.Background()
			case noContext:
				ctx = nil
			}
			if method == "" {
				method = "Chat.Talk"
			}
			began := time.Now()
			st, err := anser.Open[[]byte, []byte](ctx, c, method, test.opts...)
			if err == nil {
				st.Close()
				t.Errorf("%s: it was opened", name)
				continue
			}
			e := fault(t, err)
			if e.Code != test.code || e.Outcome != anser.NotSent || !strings.Contains(e.Message, test.text) || e.Method != method || st != nil {
				t.Errorf("%s: %v (%s, %s, method %q)", name, err, e.Code, e.Outcome, e.Method)
			}
			if d := time.Since(began); d != test.after {
				t.Errorf("%s: it took %v, want %v", name, d, test.after)
			}
		}
		if _, err := anser.Open[chan int, []byte](context.Background(), good, "Chat.Talk"); anser.CodeOf(err) != anser.InvalidArgument {
			t.Errorf("a type without a codec: %v", err)
		}
	})
}

// noContext represents a nil context in a table, where nil means that a row has no context.
var noContext = context.WithoutCancel(context.Background())

// A stream and a call are told apart by the server, which runs neither in the place of the other.
func TestStreamOrCall(t *testing.T) {
	network := new(ansertest.Network)
	s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	for method, want := range map[string]string{"Echo.Say": "use anser.Call", "Chat.Tolk": `did you mean "Chat.Talk"?`} {
		st := open(t, context.Background(), c, method)
		_, err := st.Recv()
		if e := wantFault(t, err, anser.Unimplemented, anser.Refused); !strings.Contains(e.Message, want) {
			t.Error(err)
		}
		if again := st.Send(text("late")); again != err {
			t.Errorf("sending: %v", again)
		}
	}
	_, err := call(context.Background(), c, "Chat.Talk", "hello")
	if e := wantFault(t, err, anser.Unimplemented, anser.Refused); !strings.Contains(e.Message, "use anser.Open") {
		t.Error(err)
	}
	if st := s.Stats(); st.Refused != 3 || st.Methods["Echo.Say"].Calls+st.Methods["Chat.Talk"].Calls != 0 {
		t.Errorf("%+v", st)
	}
}

// Interceptors of a client surround the opening, and may add to it and repeat it.
func TestInterceptorsOfOpening(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Meta": func(ctx context.Context, st *bytesStream) error {
				return st.Send(text(anser.MetadataFrom(ctx).Get("tenant")))
			},
			"Chat.Talk": talk,
		})
		var what string
		var seen []*anser.Invocation
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Intercept(func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error {
				seen = append(seen, inv)
				switch what {
				case "bounded":
					bounded, cancel := context.WithCancel(anser.WithMetadata(ctx, anser.Metadata{"tenant": "acme"}))
					defer cancel()
					return next(bounded, inv)
				case "refuse":
					return anser.Errorf(anser.PermissionDenied, "not you")
				case "swallow":
					return nil
				case "panic":
					panic("no")
				case "foreign":
					return next(ctx, &anser.Invocation{Method: inv.Method, Stream: true})
				case "again":
					ended, cancel := context.WithCancel(ctx)
					cancel()
					if err := next(ended, inv); anser.CodeOf(err) != anser.Canceled {
						t.Error(err)
					}
					return next(ctx, inv)
				case "twice":
					return errors.Join(next(ctx, inv), next(ctx, inv))
				case "late":
					next(ctx, inv)
					return errors.New("too late")
				}
				return next(ctx, inv)
			}
		}))
		try := func(kind, method string) (*bytesStream, error) {
			what, seen = kind, nil
			st, err := anser.OpenWith[[]byte, []byte](context.Background(), c, method, text("first"))
			if len(seen) != 1 || !seen[0].Stream || seen[0].Server || seen[0].Method != method || seen[0].Reply != nil || string(*seen[0].Request.(*[]byte)) != "first" {
				t.Errorf("%s: the interceptor saw %+v", kind, seen)
			}
			return st, err
		}
		st, err := try("bounded", "Chat.Meta")
		if err != nil {
			t.Fatal(err)
		}
		hear(t, st, "acme")
		hearEnd(t, st)
		for kind, want := range map[string]anser.Code{
			"refuse": anser.PermissionDenied, "swallow": anser.Internal, "panic": anser.Internal,
			"foreign": anser.Internal, "twice": anser.FailedPrecondition, "late": anser.Unknown,
		} {
			if st, err := try(kind, "Chat.Talk"); anser.CodeOf(err) != want || st != nil {
				t.Errorf("%s: %v, %v; want %s", kind, st, err, want)
			}
		}
		if st, err = try("again", "Chat.Talk"); err != nil {
			t.Fatal(err)
		}
		hear(t, st, "first")
		st.CloseSend()
		hearEnd(t, st)
	})
}

// Streams count at their instance while they last, and are spread over connections and instances.
func TestBalancedStreams(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var servers []*anser.Server
		for _, a := range []string{"a:1", "b:1"} {
			servers = append(servers, serveStreams(t, network.Listen(a), map[string]streamHandler{"Chat.Talk": talk}))
		}
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.Balancer(balance.LeastActive()))
		var all []*bytesStream
		for range 40 {
			st := open(t, context.Background(), c, "Chat.Talk")
			synctest.Wait()
			all = append(all, st)
		}
		for i, s := range servers {
			if st := s.Stats(); st.Streams != 20 || st.InFlight != 20 || st.Conns != 2 {
				t.Errorf("%+v", st)
			}
			if n := c.Status().Instances[i].Active; n != 20 {
				t.Errorf("%d active", n)
			}
		}
		for i, st := range all {
			if i%2 == 0 {
				st.Close()
				continue
			}
			st.CloseSend()
			hearEnd(t, st)
		}
		synctest.Wait()
		for i, s := range servers {
			if st := s.Stats(); st.Streams != 0 || st.InFlight != 0 {
				t.Errorf("%+v", st)
			}
			if n := c.Status().Instances[i].Active; n != 0 {
				t.Errorf("%d active", n)
			}
		}
	})
}

// A client makes connections for more streams than one may have, and knows when there can be no
// more.
func TestMaxStreams(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Idle": idle, "Chat.Talk": talk}, anser.MaxStreams(3))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		var first *bytesStream
		for n := 0; ; n++ {
			st, err := anser.Open[[]byte, []byte](context.Background(), c, "Chat.Idle")
			if err != nil {
				if e := wantFault(t, err, anser.ResourceExhausted, anser.NotSent); !strings.Contains(e.Message, "anser.MaxStreams") || n != 8*3 {
					t.Errorf("after %d streams: %v", n, err)
				}
				break
			}
			if first == nil {
				first = st
			}
			synctest.Wait() // a further connection is made in the background
		}
		if st := s.Stats(); st.Streams != 24 || st.Conns != 8 || st.Refused != 0 {
			t.Errorf("%+v", st)
		}
		first.Close()
		synctest.Wait()
		st := open(t, context.Background(), c, "Chat.Talk")
		say(t, st, "there is room again")
		hear(t, st, "there is room again")
		if _, err := call(context.Background(), c, "Echo.Say", "calls are not streams"); err != nil {
			t.Error(err)
		}
	})
}

// The time of a stream is its own: that of the client's calls bounds its opening only.
func TestTimeOfAStream(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		left := make(chan time.Duration, 1)
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Wait": func(ctx context.Context, st *bytesStream) error {
			d, ok := ctx.Deadline()
			left <- time.Until(d)
			if !ok {
				left <- 0
			}
			_, err := st.Recv()
			return err
		}})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(time.Second))
		st := open(t, context.Background(), c, "Chat.Wait")
		if d := <-left; d > 0 {
			t.Errorf("the handler has %v", d)
		}
		time.Sleep(time.Hour)
		say(t, st, "hello")
		hearEnd(t, st)

		<-left // of the stream before
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		st = open(t, ctx, c, "Chat.Wait", anser.Timeout(time.Hour))
		if d := <-left; d != time.Minute {
			t.Errorf("the handler has %v", d)
		}
		began := time.Now()
		_, err := st.Recv()
		if e := fault(t, err); e.Code != anser.DeadlineExceeded { // the outcome is that of whose clock was first
			t.Error(e)
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("it took %v", d)
		}
	})
}

// Closing the client while its streams are being opened leaves none open.
func TestCloseWhileOpening(t *testing.T) {
	l := listen(t)
	s := serveStreams(t, l, map[string]streamHandler{"Chat.Idle": idle})
	for range 20 {
		c := dial(t, l.Addr().String())
		var failed atomic.Bool
		var ends []<-chan struct{}
		for range 8 {
			ends = append(ends, returned(func() {
				for !failed.Load() {
					st, err := anser.Open[[]byte, []byte](context.Background(), c, "Chat.Idle")
					if err != nil {
						failed.Store(true)
						return
					}
					go st.Recv()
				}
			}))
		}
		eventually(t, "a stream is open", func() bool { return s.Stats().Streams > 0 })
		c.Close()
		for _, done := range slices.All(ends) {
			<-done
		}
		eventually(t, "no stream is left", func() bool { return s.Stats().Streams == 0 })
	}
}
