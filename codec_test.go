package anser_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress/zstd"
	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// used records the codec of the requests that reach the server.
type used struct {
	codec.Codec
	name *string
}

func (u used) Unmarshal(data []byte, v any) error {
	*u.name = u.Name()
	return u.Codec.Unmarshal(data, v)
}

// strange is a codec with a number of its own.
type strange struct{ codec.Raw }

func (strange) ID() uint8    { return 200 }
func (strange) Name() string { return "strange" }

// shouting replaces the raw codec.
type shouting struct{ codec.Raw }

func (shouting) Append(dst []byte, v any) ([]byte, error) {
	return append(dst, strings.ToUpper(string(*v.(*[]byte)))...), nil
}

// The codec follows from the types, unless it is set.
func TestChoiceOfCodec(t *testing.T) {
	network := new(ansertest.Network)
	var name string
	s := anser.NewServer(silent, anser.Codecs(used{new(codec.JSON), &name}, used{codec.Raw{}, &name}))
	anser.Handle(s, "Arith.Mul", mul)
	anser.Handle(s, "Echo.Say", echo)
	anser.Handle(s, "Hello.Say", func(ctx context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		return in, nil
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	ctx := context.Background()
	if out, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{7, 8}); err != nil || out.C != 56 || name != "" {
		t.Error(out, err, name)
	}
	if out, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{7, 8}, anser.Codec(new(codec.JSON))); err != nil || out.C != 56 || name != "json" {
		t.Error(out, err, name)
	}
	if out, err := call(ctx, c, "Echo.Say", "hello"); err != nil || out != "hello" || name != "raw" {
		t.Error(out, err, name)
	}
	name = ""
	if out, err := anser.Call[benchpb.BenchmarkMessage](ctx, c, "Hello.Say", benchpb.Filled()); err != nil || out.GetField1() != benchpb.Filled().GetField1() || name != "" {
		t.Error(err, name)
	}
}

func TestOwnCodecs(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Codecs(strange{}))
	serve(t, network.Listen("b:1"), map[string]handler{"Echo.Say": echo}, anser.Codecs(shouting{}))
	ctx := context.Background()
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Codec(strange{}))
	if out, err := call(ctx, c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Error(out, err)
	}
	c = dial(t, "b:1", anser.Dialer(network.Dial)) // a codec replaces another one with the same number
	if out, err := call(ctx, c, "Echo.Say", "hello"); out != "HELLO" || err != nil {
		t.Error(out, err)
	}
	c = dial(t, "a:1", anser.Dialer(network.Dial), anser.Codecs(shouting{}))
	if out, err := call(ctx, c, "Echo.Say", "hello"); out != "HELLO" || err != nil {
		t.Error(out, err)
	}
}

func TestWrongCodec(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Arith.Mul", mul)
	anser.Handle(s, "Echo.Say", echo)
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	ctx := context.Background()
	_, err := call(ctx, c, "Echo.Say", "hello", anser.Codec(strange{}))
	if e := wantFault(t, err, anser.Unimplemented, anser.Refused); e.Message != "codec 200 is not known here: this server has 1 raw, 2 binary, 3 json, 4 protobuf, 5 msgpack" {
		t.Error(e.Message)
	}
	_, err = call(ctx, c, "Arith.Mul", "bytes")
	if e := wantFault(t, err, anser.InvalidArgument, anser.Refused); !strings.HasPrefix(e.Message, "decode the request with raw: ") {
		t.Error(e.Message)
	}
	_, err = anser.Call[Reply](ctx, c, "Arith.Mul", &Args{}, anser.Codec(codec.Raw{}))
	if e := wantFault(t, err, anser.InvalidArgument, anser.NotSent); e.Phase != anser.PhaseEncode || !strings.HasPrefix(e.Message, "encode the request with raw: ") {
		t.Error(err)
	}
	f := func() {}
	_, err = anser.Call[func()](ctx, c, "Arith.Mul", &f)
	if e := wantFault(t, err, anser.InvalidArgument, anser.NotSent); !strings.HasPrefix(e.Message, "no codec handles a request of type *func() with a reply of type *func(): choose one with anser.Codec (MessagePack: there is no") {
		t.Error(e.Message)
	}
	// A reply that cannot be decoded is an error of its call, and never a reply.
	out, err := anser.Call[[]byte](ctx, c, "Echo.Say", &Args{7, 8}, anser.Codec(new(codec.JSON)))
	if out != nil || err == nil {
		t.Error(out, err)
	}
	var notThere *Reply
	if err := c.Call(ctx, "Echo.Say", text("hello"), notThere, anser.Codec(codec.Raw{})); err == nil {
		t.Error("a nil reply was decoded into")
	}
	if err := c.Call(ctx, "Echo.Say", text("hello"), nil, anser.Codec(codec.Raw{})); err != nil {
		t.Error("a caller that wants no reply:", err)
	}
	if out, err := call(ctx, c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Error(out, err)
	}
}

// If a handler's reply cannot be encoded, or exceeds the limit of the client, its call fails.
func TestReplyThatCannotBeSent(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Bad.Reply", func(ctx context.Context, in *Args) (*any, error) { return new(any(func() {})), nil })
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	_, err := anser.Call[Reply](context.Background(), c, "Bad.Reply", &Args{}, anser.Codec(new(codec.JSON)))
	if e := wantFault(t, err, anser.Internal, anser.Executed); !strings.HasPrefix(e.Message, "encode the reply with json: ") {
		t.Error(err)
	}
	if st := s.Stats(); st.Accepted != 1 || st.Methods["Bad.Reply"].Failed != 1 {
		t.Errorf("%+v", st)
	}
}

// A method accepts only the codecs that it names, out of the codecs of the server.
func TestOnlyCodecs(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Arith.Mul", mul, anser.OnlyCodecs(new(codec.JSON)), anser.OnlyCodecs(strange{}))
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	ctx := context.Background()
	_, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{7, 8})
	if e := wantFault(t, err, anser.Unimplemented, anser.Refused); e.Message != `method "Arith.Mul" does not take the codec msgpack: choose one of 3 json` {
		t.Error(e.Message)
	}
	if out, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{7, 8}, anser.Codec(new(codec.JSON))); err != nil || out.C != 56 {
		t.Error(out, err)
	}
}

// parcel is a message that brings its codec, JSON by another name and number.
type parcel struct{ A int }

func (*parcel) OwnCodec() codec.Codec { return parcels{new(codec.JSON)} }

type parcels struct{ *codec.JSON }

func (parcels) ID() uint8       { return 201 }
func (parcels) Name() string    { return "parcels" }
func (parcels) Fits(v any) bool { _, ok := v.(*parcel); return ok }

// Messages that bring their codec need no options on either side, in calls, streams and oneway
// calls. The codec of a call comes before it.
func TestMessagesBringTheirCodec(t *testing.T) {
	network := new(ansertest.Network)
	codecs := make(chan string, 10)
	s := anser.NewServer(silent, anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			if !inv.Stream {
				codecs <- inv.Codec().Name()
			}
			return next(ctx, inv)
		}
	}))
	const (
		take anser.Method[parcel, parcel]       = "Parcels.Take"
		drop anser.OnewayMethod[parcel]         = "Parcels.Drop"
		pass anser.StreamMethod[parcel, parcel] = "Parcels.Pass"
	)
	for _, err := range []error{
		take.Handle(s, func(ctx context.Context, in *parcel) (*parcel, error) { return &parcel{in.A + 1}, nil }),
		drop.Handle(s, func(ctx context.Context, in *parcel) error { return nil }),
		pass.Handle(s, func(ctx context.Context, st *anser.Stream[parcel, parcel]) error {
			in, err := st.Recv()
			if err != nil {
				return err
			}
			return st.Send(in)
		}),
		anser.Handle(s, "Arith.Mul", mul),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	ctx := t.Context()
	used := func(want string) {
		t.Helper()
		if got := <-codecs; got != want {
			t.Errorf("the codec is %s, want %s", got, want)
		}
	}
	out, err := take.Call(ctx, c, &parcel{7})
	if err != nil || out.A != 8 {
		t.Fatal(out, err)
	}
	used("parcels")
	if out, err = take.Call(ctx, c, &parcel{7}, anser.Codec(new(codec.JSON))); err != nil || out.A != 8 {
		t.Fatal(out, err)
	}
	used("json")
	if err := drop.Send(ctx, c, &parcel{7}); err != nil {
		t.Fatal(err)
	}
	used("parcels")
	st, err := pass.Open(ctx, c)
	if err == nil {
		err = st.Send(&parcel{9})
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err = st.Recv(); err != nil || out.A != 9 {
		t.Fatal(out, err)
	}
	st.Close()
	// Other methods of the server do not take it.
	_, err = anser.Call[Reply](ctx, c, "Arith.Mul", &parcel{1}, anser.Codec(parcels{new(codec.JSON)}))
	wantFault(t, err, anser.Unimplemented, anser.Refused)
}

// endless blocks in decoding until it is released.
type endless struct {
	strange
	free <-chan struct{}
}

func (s endless) Unmarshal(data []byte, v any) error {
	<-s.free
	return s.strange.Unmarshal(data, v)
}

// A decoder that does not return lets its caller's deadline pass and affects no other call: calls
// on the same connection are answered meanwhile.
func TestDecoderThatNeverReturns(t *testing.T) {
	network := new(ansertest.Network)
	free := make(chan struct{})
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Codecs(endless{free: free}))
	t.Cleanup(func() { close(free) })
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	ctx := context.Background()
	_, err := call(ctx, c, "Echo.Say", "hello", anser.Codec(strange{}), anser.Timeout(50*time.Millisecond))
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.DeadlineExceeded {
		t.Error(err)
	}
	for range 3 {
		if out, err := call(ctx, c, "Echo.Say", "hello"); out != "hello" || err != nil {
			t.Error(out, err)
		}
	}
}

// borrower has messages that point into the payload.
type borrower struct{ strange }

func (borrower) UnmarshalBorrowed(data []byte, v any) error {
	*v.(*[]byte) = data
	return nil
}

// Nothing remains of the content that a reply message had before the call.
func TestReplyIntoAUsedMessage(t *testing.T) {
	least := benchpb.Filled()
	fields := least.ProtoReflect()
	fields.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if f.Cardinality() != protoreflect.Required {
			fields.Clear(f)
		}
		return true
	})
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Hello.Least", func(context.Context, *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		return least, nil
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	out := benchpb.Filled()
	if err := c.Call(context.Background(), "Hello.Least", least, out); err != nil || !proto.Equal(out, least) {
		t.Errorf("%v, %v, want %v", out, err, least)
	}
}

// A request may point into the payload: nothing is written there before its handler has returned,
// even if other calls arrive and the handler is moved off the reader goroutine.
func TestBorrowedRequests(t *testing.T) {
	network := new(ansertest.Network)
	release := make(chan struct{})
	slow := func(ctx context.Context, in *[]byte) (*[]byte, error) {
		<-release
		return in, nil
	}
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo, "Echo.Slow": slow}, anser.Codecs(borrower{}))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	ctx := context.Background()
	want := strings.Repeat("mine", 1000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if out, err := call(ctx, c, "Echo.Slow", want, anser.Codec(borrower{})); out != want || err != nil {
				t.Errorf("the request changed in its handler: %.20s…, %v", out, err)
			}
		})
	}
	for i := range 200 {
		other := strings.Repeat("others"[i%6:], 700)
		if out, err := call(ctx, c, "Echo.Say", other, anser.Codec(borrower{})); out != other || err != nil {
			t.Errorf("%.20s…, %v", out, err)
		}
	}
	// Decompressed data is in a buffer that is reused for other calls, so such a request is a copy.
	for range 4 {
		wg.Go(func() {
			if out, err := call(ctx, c, "Echo.Slow", want, anser.Codec(borrower{}), anser.Compress(zstd.New(), anser.Forced)); out != want || err != nil {
				t.Errorf("the compressed request changed in its handler: %.20s…, %v", out, err)
			}
		})
	}
	close(release)
	wg.Wait()
}
