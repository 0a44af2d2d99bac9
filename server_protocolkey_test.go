package anser_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
)

// unencodable is a reply that cannot be encoded.
type unencodable struct{ Panics bool }

func (u unencodable) MarshalJSON() ([]byte, error) {
	if u.Panics {
		panic("on purpose")
	}
	return nil, io.ErrShortBuffer
}

// keyed serves Words.Say, which counts how often it ran and does what the message says.
func keyed(t *testing.T, ran *atomic.Int64, opts ...anser.ServerOption) *anser.Server {
	s := foreignServer(t, append(opts, anser.Deduplicate(), anser.Logger(slog.New(slog.DiscardHandler)))...)
	anser.Handle(s, "Words.Say", func(ctx context.Context, in *word) (*word, error) {
		n := ran.Add(1)
		anser.SetTrailer(ctx, "key", anser.IdempotencyKeyFrom(ctx))
		switch in.Text {
		case "fail":
			return nil, anser.Errorf(anser.NotFound, "run %d", n).WithDetails([]byte("d"))
		case "refuse":
			return nil, anser.Refuse(anser.Unavailable, "run %d", n)
		case "panic":
			panic("on purpose")
		case "exit":
			runtime.Goexit()
		}
		return &word{strings.Repeat(in.Text, int(n))}, nil
	})
	anser.Handle(s, "Words.Break", func(_ context.Context, in *word) (*unencodable, error) {
		ran.Add(1)
		return &unencodable{in.Text == "panic"}, nil
	})
	return s
}

// A call with a key over another protocol runs once, and its answer is that of the first one in all
// of its parts.
func TestProtocolKeys(t *testing.T) {
	var ran atomic.Int64
	s := keyed(t, &ran)
	f := openForeign(t, s, nil)
	say := func(key, text string) (any, anser.Metadata, error) {
		return f.call(anser.ProtocolRequest{Method: "Words.Say", Codec: new(codec.JSON), IdempotencyKey: key}, word{text})
	}
	for i := range 3 {
		reply, trailers, err := say("one", "a")
		if err != nil || reply.(*word).Text != "a" || trailers.Get("key") != "one" {
			t.Errorf("call %d: %v, %v, %v", i, reply, trailers, err)
		}
		_, trailers, err = say("error", "fail")
		e, _ := errors.AsType[*anser.Error](err)
		if e == nil || e.Code != anser.NotFound || e.Outcome != anser.Executed || e.Message != "run 2" || string(e.Details) != "d" || trailers.Get("key") != "error" {
			t.Errorf("call %d: %v, %v", i, trailers, err)
		}
	}
	if ran.Load() != 2 || s.Stats().Replayed != 4 {
		t.Errorf("ran %d times, %d answers from memory", ran.Load(), s.Stats().Replayed)
	}
	_, _, err := say("one", "b")
	if !errors.Is(err, anser.ErrKeyReused) || !errors.Is(err, anser.FailedPrecondition) || anser.OutcomeOf(err) != anser.Refused {
		t.Errorf("another request: %v", err)
	}
	_, _, err = f.call(anser.ProtocolRequest{Method: "Words.Say", Codec: msgpack.New(), IdempotencyKey: "one"}, word{"a"})
	if !errors.Is(err, anser.ErrKeyReused) {
		t.Errorf("another codec: %v", err)
	}
	for _, text := range []string{"panic", "exit"} {
		before := ran.Load()
		for range 2 {
			if _, _, err := say(text, text); !errors.Is(err, anser.Internal) || anser.OutcomeOf(err) != anser.Executed {
				t.Errorf("%s: %v", text, err)
			}
		}
		if ran.Load() != before+1 {
			t.Errorf("%s: ran %d times", text, ran.Load()-before)
		}
	}
	before := ran.Load()
	for range 2 {
		if _, _, err := say("refused", "refuse"); !errors.Is(err, anser.Unavailable) {
			t.Error(err)
		}
		for _, how := range []string{"error", "panic"} {
			_, _, err := f.call(anser.ProtocolRequest{Method: "Words.Break", Codec: new(codec.JSON), IdempotencyKey: "broken" + how}, word{how})
			if !errors.Is(err, anser.Internal) || anser.OutcomeOf(err) != anser.Executed {
				t.Errorf("a reply whose encoding ends with %s: %v", how, err)
			}
		}
	}
	if ran.Load() != before+4 {
		t.Errorf("ran %d times, want 4", ran.Load()-before)
	}
}

// A caller that says that its call may have run is not answered by a second run.
func TestProtocolKeysRepeated(t *testing.T) {
	var ran atomic.Int64
	f := openForeign(t, keyed(t, &ran), nil)
	r := anser.ProtocolRequest{Method: "Words.Say", Codec: new(codec.JSON), IdempotencyKey: "k", Repeated: true}
	_, _, err := f.call(r, word{"a"})
	if !errors.Is(err, anser.Unavailable) || anser.OutcomeOf(err) != anser.OutcomeUnknown || ran.Load() != 0 {
		t.Errorf("an unknown key: %v, ran %d times", err, ran.Load())
	}
	r.Repeated = false
	if _, _, err := f.call(r, word{"a"}); err != nil {
		t.Error(err)
	}
	r.Repeated = true
	if reply, _, err := f.call(r, word{"a"}); err != nil || reply.(*word).Text != "a" || ran.Load() != 1 {
		t.Errorf("a known key: %v, %v, ran %d times", reply, err, ran.Load())
	}
}

// Requests whose keys cannot be kept are refused.
func TestProtocolKeysRefused(t *testing.T) {
	s := foreignServer(t)
	once := func(context.Context, *word) (*word, error) { return &word{}, nil }
	anser.Handle(s, "Words.Say", once)
	anser.Handle(s, "Words.Once", once, anser.Deduplicate())
	stream := anser.ServerStreamMethod[word, word]("Words.All")
	stream.Handle(s, func(context.Context, *word, anser.Sender[word]) error { return nil })
	f := openForeign(t, s, nil)
	for name, row := range map[string]struct {
		r    anser.ProtocolRequest
		code anser.Code
	}{
		"not deduplicated": {anser.ProtocolRequest{Method: "Words.Say", Codec: new(codec.JSON), IdempotencyKey: "k"}, anser.Unimplemented},
		"stream":           {anser.ProtocolRequest{Method: "Words.All", Codec: new(codec.JSON), IdempotencyKey: "k", Stream: true}, anser.InvalidArgument},
		"oneway":           {anser.ProtocolRequest{Method: "Words.Once", Codec: new(codec.JSON), IdempotencyKey: "k", Oneway: true}, anser.InvalidArgument},
		"long":             {anser.ProtocolRequest{Method: "Words.Once", Codec: new(codec.JSON), IdempotencyKey: strings.Repeat("k", 129)}, anser.InvalidArgument},
		"space":            {anser.ProtocolRequest{Method: "Words.Once", Codec: new(codec.JSON), IdempotencyKey: "k k"}, anser.InvalidArgument},
		"no codec":         {anser.ProtocolRequest{Method: "Words.Once", IdempotencyKey: "k"}, anser.Unimplemented},
	} {
		if k, refused := f.Admit(&row.r); refused == nil || refused.Code != row.code || refused.Outcome != anser.Refused {
			t.Errorf("%s: %v, %v", name, k, refused)
		}
	}
	k, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Once", Codec: new(codec.JSON), IdempotencyKey: "k"})
	if refused != nil {
		t.Fatal(refused)
	}
	done := make(chan anser.ProtocolReply, 1)
	k.Run(k.NewRequest(), func(r anser.ProtocolReply) error {
		done <- r
		return nil
	})
	if r := <-done; r.Err == nil || r.Err.Code != anser.Internal || r.Err.Outcome != anser.Refused {
		t.Errorf("a request that was not identified: %v", r.Err)
	}
	for name, want := range map[string]bool{"Words.Say": false, "Words.Once": true, "Words.All": false} {
		if m, _ := s.Method(name); m.Deduplicates != want {
			t.Errorf("%s deduplicates: %v", name, m.Deduplicates)
		}
	}
}

// A further call waits for the first one, whose connection may be lost meanwhile.
func TestProtocolKeySurvivesALostConnection(t *testing.T) {
	s := foreignServer(t, anser.Deduplicate())
	began, end := make(chan struct{}), make(chan struct{})
	var ran atomic.Int64
	anser.Handle(s, "Words.Wait", func(ctx context.Context, in *word) (*word, error) {
		ran.Add(1)
		close(began)
		<-end
		return in, ctx.Err()
	})
	r := anser.ProtocolRequest{Method: "Words.Wait", Codec: new(codec.JSON), IdempotencyKey: "k"}
	lost := openForeign(t, s, nil)
	if _, _, err := lost.start(r, word{"a"}); err != nil {
		t.Fatal(err)
	}
	<-began
	lost.End(io.EOF)
	f := openForeign(t, s, nil)
	_, replies, err := f.start(r, word{"a"})
	if err != nil {
		t.Fatal(err)
	}
	for s.Stats().InFlight < 2 {
		time.Sleep(time.Millisecond)
	}
	close(end)
	if got := <-replies; got.Err != nil || got.Message.(*word).Text != "a" || ran.Load() != 1 {
		t.Errorf("%v, %v, ran %d times", got.Message, got.Err, ran.Load())
	}
}
