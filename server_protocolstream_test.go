package anser_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
)

// carried is the stream of a protocol: words that the test puts in, and words that come out.
type carried struct {
	in   chan string
	out  chan string
	over chan struct{}
	once sync.Once
	why  *anser.Error
}

func newCarried() *carried {
	return &carried{in: make(chan string, 10), out: make(chan string, 10), over: make(chan struct{})}
}

func (c *carried) Send(msg any) error {
	select {
	case c.out <- msg.(*word).Text:
		return nil
	case <-c.over:
		return c.why
	}
}

func (c *carried) Recv(msg any) error {
	select {
	case text, ok := <-c.in:
		if !ok {
			return io.EOF
		}
		if text == "broken" {
			return io.ErrUnexpectedEOF
		}
		msg.(*word).Text = text
		return nil
	case <-c.over:
		return c.why
	}
}

func (c *carried) Stop(why *anser.Error) {
	c.once.Do(func() {
		c.why = why
		close(c.over)
	})
}

// openStream runs a stream. Its end arrives on the channel.
func (f *protocolClient) openStream(r anser.ProtocolRequest) (*anser.ProtocolCall, *carried, <-chan anser.ProtocolReply, error) {
	r.Stream = true
	k, refused := f.Admit(&r)
	if refused != nil {
		return nil, nil, nil, refused
	}
	c, ends := newCarried(), make(chan anser.ProtocolReply, 2)
	k.RunStream(c, func(r anser.ProtocolReply) error {
		ends <- r
		return nil
	})
	return k, c, ends, nil
}

func handleEcho(s *anser.Server) {
	anser.HandleStream(s, "Words.Echo", func(ctx context.Context, st *anser.Stream[word, word]) error {
		for {
			in, err := st.Recv()
			if err == io.EOF {
				anser.SetTrailer(ctx, "mood", "good")
				return nil
			}
			if err != nil {
				return err
			}
			if in.Text == "fail" {
				return anser.Errorf(anser.NotFound, "no such word")
			}
			if err := st.Send(&word{in.Text + in.Text}); err != nil {
				return err
			}
		}
	})
}

// A stream over a protocol has its messages, its end and its trailers.
func TestProtocolStreams(t *testing.T) {
	var seen []string
	s := foreignServer(t, anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			if inv.Stream {
				seen = append(seen, inv.Method)
			}
			return next(ctx, inv)
		}
	}))
	handleEcho(s)
	f := openForeign(t, s, nil)
	_, c, ends, err := f.openStream(anser.ProtocolRequest{Method: "Words.Echo", Priority: anser.Normal})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "b"} {
		c.in <- text
		if got := <-c.out; got != text+text {
			t.Errorf("%q came out for %q", got, text)
		}
	}
	if n := s.Stats().Streams; n != 1 {
		t.Errorf("%d streams are open, want 1", n)
	}
	close(c.in)
	if end := <-ends; end.Err != nil || end.Trailers.Get("mood") != "good" {
		t.Errorf("the end is %v with %v", end.Err, end.Trailers)
	}
	if !slices.Equal(seen, []string{"Words.Echo"}) {
		t.Errorf("the interceptor saw %q", seen)
	}
	<-c.over // the server needs the carrier no longer

	_, c, ends, _ = f.openStream(anser.ProtocolRequest{Method: "Words.Echo"})
	c.in <- "fail"
	if end := <-ends; !errors.Is(end.Err, anser.NotFound) {
		t.Errorf("the end is %v, want that of the handler", end.Err)
	}
	_, c, ends, _ = f.openStream(anser.ProtocolRequest{Method: "Words.Echo"})
	c.in <- "broken"
	if end := <-ends; !errors.Is(end.Err, anser.Unavailable) {
		t.Errorf("the end is %v, want Unavailable for a connection that broke", end.Err)
	}
	eventually(t, "no call is left", func() bool { st := s.Stats(); return st.Streams == 0 && st.InFlight == 0 })
}

// Whatever ends the call, ends the stream of its handler.
func TestProtocolStreamsEnd(t *testing.T) {
	for name, row := range map[string]struct {
		within time.Duration
		end    func(f *protocolClient, k *anser.ProtocolCall)
		code   anser.Code
	}{
		"cancelled": {end: func(_ *protocolClient, k *anser.ProtocolCall) { k.Cancel() }, code: anser.Canceled},
		"deadline":  {within: 50 * time.Millisecond, end: func(*protocolClient, *anser.ProtocolCall) {}, code: anser.DeadlineExceeded},
		"lost":      {end: func(f *protocolClient, _ *anser.ProtocolCall) { f.End(io.ErrUnexpectedEOF) }, code: anser.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			s := foreignServer(t)
			handleEcho(s)
			f := openForeign(t, s, nil)
			request := anser.ProtocolRequest{Method: "Words.Echo"}
			if row.within != 0 {
				request.Deadline = time.Now().Add(row.within)
			}
			k, c, ends, err := f.openStream(request)
			for ; row.within < time.Minute && errors.Is(err, anser.DeadlineExceeded); row.within *= 2 { // before it could run
				request.Deadline = time.Now().Add(row.within)
				k, c, ends, err = f.openStream(request)
			}
			if err != nil {
				t.Fatal(err)
			}
			row.end(f, k)
			if end := <-ends; !errors.Is(end.Err, row.code) {
				t.Errorf("the end is %v, want %v", end.Err, row.code)
			}
			if <-c.over; c.why.Code != row.code {
				t.Errorf("Recv was stopped with %v, want %v", c.why, row.code)
			}
		})
	}
}

// What does not fit is refused, and leaves nothing behind.
func TestProtocolStreamsRefused(t *testing.T) {
	s := foreignServer(t, anser.MaxStreams(1))
	handleEcho(s)
	anser.Handle(s, "Words.Say", func(_ context.Context, in *word) (*word, error) { return in, nil })
	f := openForeign(t, s, nil)
	if _, _, err := f.call(anser.ProtocolRequest{Method: "Words.Echo"}, word{}); !errors.Is(err, anser.Unimplemented) {
		t.Errorf("a call of a stream: %v", err)
	}
	if _, _, _, err := f.openStream(anser.ProtocolRequest{Method: "Words.Say"}); !errors.Is(err, anser.Unimplemented) {
		t.Errorf("a stream of a call: %v", err)
	}
	_, c, ends, err := f.openStream(anser.ProtocolRequest{Method: "Words.Echo"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := f.openStream(anser.ProtocolRequest{Method: "Words.Echo"}); !errors.Is(err, anser.ResourceExhausted) {
		t.Errorf("one stream too many: %v", err)
	}
	close(c.in)
	<-ends

	// A protocol that takes the wrong function gets an error, and the call does not run.
	reply := make(chan anser.ProtocolReply, 2)
	answer := func(r anser.ProtocolReply) error {
		reply <- r
		return nil
	}
	k, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Echo", Stream: true})
	if refused != nil {
		t.Fatal(refused)
	}
	k.Run(new(word), answer)
	if r := <-reply; !errors.Is(r.Err, anser.Internal) {
		t.Errorf("Run for a stream: %v", r.Err)
	}
	if k, refused = f.Admit(&anser.ProtocolRequest{Method: "Words.Say"}); refused != nil {
		t.Fatal(refused)
	}
	k.RunStream(newCarried(), answer)
	if r := <-reply; !errors.Is(r.Err, anser.Internal) {
		t.Errorf("RunStream for a call: %v", r.Err)
	}
	eventually(t, "no call is left", func() bool { st := s.Stats(); return st.Streams == 0 && st.InFlight == 0 })
}

// A protocol learns the types of the methods before it decodes.
func TestMethodTypes(t *testing.T) {
	s := foreignServer(t)
	handleEcho(s)
	anser.Handle(s, "Words.Say", func(_ context.Context, in *word) (*word, error) { return in, nil }, anser.Idempotent(), anser.Alias("Words.Tell"))
	var names []string
	for _, m := range s.Methods() {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, []string{"Words.Echo", "Words.Say"}) {
		t.Errorf("the methods are %q", names)
	}
	m, ok := s.Method("Words.Tell")
	if !ok || m.Name != "Words.Say" || m.Request != reflect.TypeFor[word]() || m.Stream || !m.Idempotent {
		t.Errorf("an alias is %+v, %v", m, ok)
	}
	if m, ok = s.Method("Words.Echo"); !ok || !m.Stream || !m.ClientStream || !m.ServerStream {
		t.Errorf("a stream is %+v, %v", m, ok)
	}
	for _, name := range []string{"Words.None", anser.MethodsName, ""} {
		if _, ok := s.Method(name); ok {
			t.Errorf("%q is a method", name)
		}
	}
	anser.Handle(s, "Words.Pack", func(_ context.Context, in *word) (*word, error) { return in, nil }, anser.OnlyCodecs(msgpack.New(), new(codec.JSON)))
	if m, ok = s.Method("Words.Pack"); !ok || !slices.Equal(m.Only, []uint8{codec.JSONID, msgpack.New().ID()}) {
		t.Errorf("the codecs of a method are %v", m.Only)
	}
	div := func(_ context.Context, a, b int) (float64, error) { return float64(a) / float64(b), nil }
	s.RegisterFunc("Words.Div", div, anser.Params("(a, b) quotient"))
	m, _ = s.Method("Words.Div")
	if want := []anser.TupleElement{{Name: "a", Type: reflect.TypeFor[int]()}, {Name: "b", Type: reflect.TypeFor[int]()}}; !slices.Equal(m.Arguments, want) {
		t.Errorf("the arguments are %v", m.Arguments)
	}
	if want := []anser.TupleElement{{Name: "quotient", Type: reflect.TypeFor[float64]()}}; !slices.Equal(m.Results, want) {
		t.Errorf("the results are %v", m.Results)
	}
}

// sayOnly is a policy that allows one method.
type sayOnly struct{}

func (sayOnly) Allows(_ *anser.Identity, method string) bool { return method == "Words.Say" }

func (sayOnly) Version() uint64 { return 1 }

// A protocol learns which methods a client may call, and none before the client has authenticated
// itself.
func TestMethodsOfAConnection(t *testing.T) {
	say := func(_ context.Context, in *word) (*word, error) { return in, nil }
	open := func(opts ...anser.ServerOption) (*anser.Server, *protocolClient) {
		s := foreignServer(t, opts...)
		anser.Handle(s, "Words.Say", say)
		anser.Handle(s, "Words.Hide", say)
		return s, openForeign(t, s, nil)
	}
	s, p := open()
	if list, err := p.Methods(); err != nil || len(list) != 2 || !s.Describes() {
		t.Errorf("all methods are %v, %v", list, err)
	}
	if s, p = open(anser.NoDescribe()); s.Describes() {
		t.Error("a server with NoDescribe describes")
	}
	if list, err := p.Methods(); err != nil || len(list) > 0 {
		t.Errorf("a server with NoDescribe tells %v, %v", list, err)
	}
	_, p = open(anser.Authenticate(new(door)), anser.Authorize(sayOnly{}))
	if list, err := p.Methods(); err == nil || err.Code != anser.Unauthenticated || len(list) > 0 {
		t.Errorf("without an identity: %v, %v", list, err)
	}
	if err := p.Authenticate(t.Context(), "test", []byte(secret+":ann")); err != nil {
		t.Fatal(err)
	}
	if list, err := p.Methods(); err != nil || len(list) != 1 || list[0].Name != "Words.Say" {
		t.Errorf("ann may call %v, %v", list, err)
	}
}
