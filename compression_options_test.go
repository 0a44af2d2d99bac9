package anser_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/wire"
)

func TestCompressionOptions(t *testing.T) {
	for name, opt := range map[string]anser.ServerOption{
		"nil":       anser.AcceptCompression(nil),
		"none":      anser.AcceptCompression(compress.None()),
		"expansion": anser.MaxExpansion(0),
	} {
		if err := anser.NewServer(opt).Serve(listen(t)); err == nil || errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := anser.CompressMode(9).String(); got != "unknown compression mode" {
		t.Error(got)
	}
}

// Calls of a server to its clients are compressed if the client accepts the algorithm, and so are
// their replies.
func TestCompressCalls(t *testing.T) {
	for name, test := range map[string]struct {
		takes  []anser.ServerOption
		call   []anser.CallOption
		packed int64 // of the two messages of the server
	}{
		"taken":                   {packed: 2},
		"not taken":               {takes: []anser.ServerOption{anser.AcceptCompression()}},
		"a call without":          {call: []anser.CallOption{anser.Compress(nil)}, packed: 1},
		"another one in the call": {call: []anser.CallOption{anser.Compress(compress.Deflate(), anser.Forced)}, packed: 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			sessions := make(chan *anser.Session, 1)
			s := anser.NewServer(silent, anser.CompressCalls(compress.Gzip(), anser.Forced), anser.OnSession(func(sess *anser.Session) { sessions <- sess }))
			run(t, s, l)
			h := handlers(t, test.takes...)
			noted := make(chan string, 1)
			note.Handle(h, func(_ context.Context, in *[]byte) error { noted <- string(*in); return nil })
			c := dial(t, l.Addr().String(), anser.Handlers(h), anser.Timeout(patience))
			if _, err := call(context.Background(), c, "Echo.Say", ""); anser.CodeOf(err) != anser.Unimplemented { // the client has connected
				t.Fatal(err)
			}
			back := (<-sessions).Client()
			message := prose(1000)
			if out, err := shout.Call(context.Background(), back, text(message), test.call...); err != nil || string(*out) != strings.ToUpper(message) {
				t.Fatalf("%v", err)
			}
			if n, failed := s.Broadcast(context.Background(), "Client.Note", text(message), nil); n != 1 {
				t.Fatal(failed)
			}
			if got := <-noted; got != message {
				t.Errorf("the broadcast brought %d bytes", len(got))
			}
			var packed, answered int64
			for _, st := range back.Status().Compression {
				packed += st.Packed
			}
			for _, st := range h.Stats().Compression {
				answered += st.Packed
			}
			if packed != test.packed || answered != max(test.packed-1, 0) {
				t.Errorf("%d messages of the server were compressed and %d replies, want %d", packed, answered, test.packed)
			}
		})
	}
}

// costly is a compressor with a given cost and result.
type costly struct {
	shouter
	to    float64 // size of the result per byte
	tried atomic.Int64
}

func (c *costly) Append(dst, src []byte) ([]byte, error) {
	c.tried.Add(1)
	return append(dst, make([]byte, int(c.to*float64(len(src))))...), nil
}

// Where compression does not pay, most messages are sent uncompressed; once it pays again, none is.
func TestDynamicLearns(t *testing.T) {
	target, requests := takers(t, 200)
	for name, c := range map[string]struct {
		price time.Duration
		to    float64
		most  int64 // compressed attempts of 1,000 messages
		least int64
	}{
		"pays":             {time.Hour, 0.3, 1000, 1000},
		"saves too little": {time.Hour, 0.95, 30, 4},
		"costs too much":   {0, 0.3, 30, 4},
	} {
		t.Run(name, func(t *testing.T) {
			z := &costly{to: c.to}
			client := dial(t, target, anser.Compress(z, anser.CompressPrice(c.price)))
			for range 1000 {
				if _, err := call(context.Background(), client, "Echo.Say", prose(300)); err != nil {
					t.Fatal(err)
				}
				<-requests
			}
			if n := z.tried.Load(); n > c.most || n < c.least {
				t.Errorf("%d of 1,000 messages were tried, want %d to %d", n, c.least, c.most)
			}
			st := client.Status().Compression
			if len(st) != 1 || st[0].Packed+st[0].Plain != 1000 || st[0].Before != 300*z.tried.Load() {
				t.Fatalf("the client counted %+v", st)
			}
			if resting := c.least < 1000; st[0].Resting != resting {
				t.Errorf("resting is %t, want %t", st[0].Resting, resting)
			}
		})
	}
	t.Run("changes", func(t *testing.T) {
		z := &costly{to: 1}
		client := dial(t, target, anser.Compress(z, anser.CompressPrice(time.Hour)))
		packed := 0
		for n := range 2000 {
			if n == 200 {
				z.to = 0.1
			}
			if _, err := call(context.Background(), client, "Echo.Other", prose(300)); err != nil {
				t.Fatal(err)
			}
			if r := <-requests; r.flags&wire.FlagPlain == 0 {
				packed++
			}
		}
		if packed < 1500 {
			t.Errorf("%d messages were compressed after it began to pay, want nearly all of 1,800", packed)
		}
		if client.Status().Compression[0].Resting {
			t.Error("it still rests")
		}
	})
}
