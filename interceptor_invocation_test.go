package anser_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
)

// An Invocation has its codec on both sides, its timeout, and the instance that answered.
func TestWhatAnInvocationTells(t *testing.T) {
	network := new(ansertest.Network)
	var asked, served string
	s := anser.NewServer(silent, anser.Intercept(with(func(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
		served = inv.Codec().Name()
		if inv.Timeout() != 0 {
			t.Error("a server's Invocation has the time", inv.Timeout())
		}
		inv.SetTrailer(anser.Metadata{"k": "v"}) // has no effect here
		return next(ctx, inv)
	})))
	anser.Handle(s, "Arith.Mul", func(ctx context.Context, in *Args) (*Reply, error) {
		if anser.AttemptFrom(ctx) < in.B {
			return nil, anser.Aborted
		}
		return mul(ctx, in)
	})
	run(t, s, network.Listen("a:1"))
	address, attempt := "", 0
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(7*time.Second), anser.Intercept(with(func(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
		asked = inv.Codec().Name()
		if inv.Timeout() != 7*time.Second {
			t.Error(inv.Timeout())
		}
		if made := (&anser.Invocation{Method: inv.Method, Request: inv.Request, Reply: inv.Reply}); made.Codec() != nil || made.Timeout() != 0 {
			t.Error("an Invocation that nobody called with tells a codec or a time")
		}
		err := next(ctx, inv)
		address, attempt = inv.Address, inv.Attempt
		return err
	})))
	for _, test := range []struct {
		opts    []anser.CallOption
		codec   string
		attempt int
	}{
		{nil, "msgpack", 0},
		{[]anser.CallOption{anser.Codec(new(codec.JSON))}, "json", 0},
		{[]anser.CallOption{anser.Idempotent(), anser.RetryOn(anser.Aborted)}, "msgpack", 2},
	} {
		address, attempt = "", -1
		if _, err := anser.Call[Reply](context.Background(), c, "Arith.Mul", &Args{A: 1, B: test.attempt}, test.opts...); err != nil {
			t.Fatal(err)
		}
		if asked != test.codec || served != test.codec || address != "a:1" || attempt != test.attempt {
			t.Errorf("%+v: asked in %s, served in %s, at %q, attempt %d", test, asked, served, address, attempt)
		}
	}
}

// A detached Invocation can be carried out after its call has returned, and does not touch what
// belongs to the call: the reply, and the place for the trailers.
func TestDetach(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		return in, anser.SetTrailer(ctx, "k", "v")
	}})
	var detached *anser.Invocation
	var onward anser.Func
	own := anser.Metadata{}
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Intercept(with(func(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
		detached, onward = inv.Detach(text("other"), new([]byte), &own), next
		*inv.Reply.(*[]byte) = []byte("made up")
		inv.SetTrailer(anser.Metadata{"k": "made up"})
		return nil
	})))
	var md anser.Metadata
	out, err := call(context.Background(), c, "Echo.Say", "hello", anser.Trailer(&md))
	if err != nil || out != "made up" || md["k"] != "made up" {
		t.Fatal(out, md, err)
	}
	if err := onward(context.Background(), detached); err != nil {
		t.Fatal(err)
	}
	if got := string(*detached.Reply.(*[]byte)); got != "other" || own["k"] != "v" || detached.Address != "a:1" {
		t.Error(got, own, detached.Address)
	}
	if out != "made up" || md["k"] != "made up" {
		t.Error("the call was touched:", out, md)
	}
	d := detached.Detach(text("again"), new([]byte), nil)
	if err := onward(context.Background(), d); err != nil || string(*d.Reply.(*[]byte)) != "again" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := onward(ctx, d.Detach(text(""), new([]byte), nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOutgoingMetadata(t *testing.T) {
	if md := anser.OutgoingMetadata(context.Background()); md != nil {
		t.Error(md)
	}
	ctx := anser.WithMetadata(context.Background(), anser.Metadata{"Tenant": "a"})
	md := anser.OutgoingMetadata(ctx)
	if md.Get("tenant") != "a" {
		t.Error(md)
	}
	md.Set("tenant", "b") // the context keeps its own copy
	if md := anser.OutgoingMetadata(ctx); md.Get("tenant") != "a" {
		t.Error(md)
	}
}
