package anser_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// document is a message that is encoded; if it is large, the connection writes it from the buffer
// in which it was encoded.
type document struct{ Text string }

func (d *document) wants(t *testing.T, fill string, size int) {
	t.Helper()
	if len(d.Text) != size || strings.Count(d.Text, fill) != size {
		t.Errorf("%d bytes, %d of them %s, want %d", len(d.Text), strings.Count(d.Text, fill), fill, size)
	}
}

// Large encoded messages arrive as they were sent, in both directions, with other calls next to
// them, on every kind of connection, while the buffers are used again and again.
func TestLargeEncodedMessages(t *testing.T) {
	kinds := map[string]struct {
		server []anser.ServerOption
		client []anser.DialOption
		handle []anser.HandleOption
	}{
		"sockets":    {},
		"inline":     {handle: []anser.HandleOption{anser.Inline()}},
		"concurrent": {handle: []anser.HandleOption{anser.Concurrent()}},
		"once":       {handle: []anser.HandleOption{anser.Deduplicate()}},
		"observed":   {server: []anser.ServerOption{anser.Observe(anser.Observer{Reply: func(context.Context, anser.MessageInfo) {}})}},
		"checksums":  {client: []anser.DialOption{anser.Checksums()}},
		"json":       {client: []anser.DialOption{anser.Codec(new(codec.JSON))}},
	}
	sizes := []int{10, lentFrom - 100, lentFrom, 1 << 20, 0, 3_333_333, lentFrom + 1, 9 << 20}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			s := anser.NewServer(append(kind.server, silent, anser.MaxMessage(20<<20))...)
			if err := anser.Handle(s, "Documents.Echo", func(_ context.Context, in *document) (*document, error) { return in, nil }, kind.handle...); err != nil {
				t.Fatal(err)
			}
			run(t, s, l)
			c := dial(t, l.Addr().String(), append(kind.client, anser.Conns(1), anser.MaxMessage(20<<20))...)
			var callers sync.WaitGroup
			for i := range 4 {
				callers.Go(func() {
					for j, size := range sizes {
						fill := string(rune('0' + i*len(sizes) + j))
						opts := []anser.CallOption{anser.Timeout(0)}
						if name == "once" {
							opts = append(opts, anser.IdempotencyKey(fmt.Sprintf("%d-%d", i, j)))
						}
						out, err := anser.Call[document](context.Background(), c, "Documents.Echo", &document{strings.Repeat(fill, size)}, opts...)
						if err != nil {
							t.Error(size, err)
							return
						}
						out.wants(t, fill, size)
					}
				})
			}
			callers.Wait()
			eventually(t, "nothing is held", func() bool { return s.Stats().Memory == 0 && s.Stats().InFlight == 0 })
		})
	}
}

// A large encoded reply over the client's limit is an error, and the next one is whole.
func TestLargeEncodedReplyOverTheLimit(t *testing.T) {
	l := listen(t)
	s := anser.NewServer(silent)
	anser.Handle(s, "Documents.Make", func(_ context.Context, in *document) (*document, error) {
		return &document{strings.Repeat("x", len(in.Text)*1000)}, nil
	}, anser.Concurrent())
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Conns(1), anser.MaxMessage(1<<20))
	for i := range 10 {
		size := 600 + i%2*600
		out, err := anser.Call[document](context.Background(), c, "Documents.Make", &document{strings.Repeat("a", size)}, anser.Timeout(0))
		if size > 1000 {
			wantFault(t, err, anser.ResourceExhausted, anser.Executed)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out.wants(t, "x", size*1000)
	}
}

// Small frames pass a large one that was encoded, as they pass one of bytes, and its buffer is not
// used for another message until all of it is written.
func TestSmallFramesPassEncodedOnes(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		accepted := acceptPeer(t, network.Listen("a:1"), true, false)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Codec(new(codec.JSON)))
		defer c.Close()
		answers := make(chan error, 3)
		say := func(ctx context.Context, in string) {
			_, err := anser.Call[document](ctx, c, "Echo.Say", &document{in}, anser.Timeout(0))
			answers <- err
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go say(ctx, strings.Repeat("a", 2<<20))
		p := <-accepted
		defer p.Close()
		synctest.Wait()
		go say(context.Background(), "small")
		synctest.Wait()
		cancel()
		if err := <-answers; fault(t, err).Outcome != anser.OutcomeUnknown {
			t.Error(err)
		}
		go say(context.Background(), strings.Repeat("b", 2<<20)) // in the same buffer
		synctest.Wait()
		frame, early, between, err := join(p, 1)
		if n := bytes.Count(frame, []byte("b")); !early || err != nil || n != 0 || len(frame) > 700<<10 {
			t.Errorf("%d bytes, %d of another message, early: %v, %v", len(frame), n, early, err)
		}
		if len(between) != 2 || between[0].ID != 2 || between[1].Type != wire.TypeCancel {
			t.Errorf("%d frames between the PARTs", len(between))
		}
		frame, early, _, err = join(p, 3)
		if n := bytes.Count(frame, []byte("b")); early || err != nil || n != 2<<20 {
			t.Errorf("%d bytes of the second message, early: %v, %v", n, early, err)
		}
		p.Send(jsonReply(2, "small"), jsonReply(3, "large"))
		for range 2 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
	})
}

func jsonReply(id uint64, text string) []byte {
	frame := fmt.Appendf(wire.AppendReplyHead(nil, id, 0, codec.JSONID, 0, nil), `{"Text":%q}`, text)
	wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
	return frame
}

// A reply that comes while its large request is being written does not get into the request.
func TestReplyBeforeTheEndOfALargeRequest(t *testing.T) {
	for _, takes := range []bool{false, true} {
		t.Run(fmt.Sprintf("parts=%v", takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &ansertest.Network{Buffer: 4 << 10} // the reply goes beyond what is written
				accepted := acceptPeer(t, network.Listen("a:1"), takes, false)
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Codec(new(codec.JSON)))
				defer c.Close()
				answered := make(chan error, 30)
				say := func(in string, want int) {
					out, err := anser.Call[document](context.Background(), c, "Echo.Say", &document{in}, anser.Timeout(0))
					if err == nil {
						out.wants(t, "b", want)
					}
					answered <- err
				}
				for range 30 {
					go say("small", 3000)
				}
				p := <-accepted
				defer p.Close()
				var replies [][]byte
				for range 30 {
					f, err := p.NextOf(wire.TypeRequest)
					if err != nil {
						t.Fatal(err)
					}
					replies = append(replies, jsonReply(f.ID, strings.Repeat("b", 3000)))
				}
				p.Send(replies...) // the client reads into a large buffer now
				for range 30 {
					if err := <-answered; err != nil {
						t.Fatal(err)
					}
				}
				go say(strings.Repeat("a", 2<<20), 25_000)
				synctest.Wait()
				p.Send(jsonReply(31, strings.Repeat("b", 25_000)))
				if err := <-answered; err != nil {
					t.Error(err)
				}
				frame, _, err := whole(p, 31, takes, wire.TypeRequest)
				if n := bytes.Count(frame, []byte("b")); err != nil || n != 0 {
					t.Errorf("%d bytes of the reply are in %d of the request, %v", n, len(frame), err)
				}
			})
		})
	}
}

// The reply to a small call passes a large encoded one, whose call may be cancelled, before its
// reply is written or meanwhile.
func TestSmallReplyPassesEncodedOnes(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		anser.Handle(s, "Documents.Make", func(_ context.Context, in *document) (*document, error) {
			return &document{strings.Repeat(in.Text, 2<<20)}, nil
		}, anser.Concurrent())
		anser.Handle(s, "Documents.Echo", func(_ context.Context, in *document) (*document, error) { return in, nil })
		run(t, s, network.Listen("a:1"))
		p, _ := partsPeer(t, network, true, false)
		request := func(id uint64, method uint32, text string) []byte {
			frame := wire.AppendRequest(nil, id, 0, &wire.Request{Method: method, Codec: codec.JSONID, Payload: fmt.Appendf(nil, `{"Text":%q}`, text)})
			wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
			return frame
		}
		p.Send(wire.AppendMethod(nil, 1, "Documents.Make"), wire.AppendMethod(nil, 2, "Documents.Echo"), request(1, 1, "a"))
		synctest.Wait()
		p.Send(request(2, 1, "b")) // waits for its turn
		synctest.Wait()
		p.Send(request(3, 1, "c"), request(4, 2, "small"), wire.AppendCancel(nil, 2))
		synctest.Wait()
		frame, early, between, err := join(p, 1)
		if n := bytes.Count(frame, []byte("a")); early || err != nil || n < 2<<20 {
			t.Errorf("%d bytes, early: %v, %v", n, early, err)
		}
		if len(between) != 1 || between[0].ID != 4 {
			t.Errorf("%d frames between the PARTs", len(between))
		}
		synctest.Wait()
		p.Send(wire.AppendCancel(nil, 3))
		synctest.Wait()
		frame, early, _, err = join(p, 3)
		if n := bytes.Count(frame, []byte("c")); !early || err != nil || n > 700<<10 || n < len(frame)-100 {
			t.Errorf("%d bytes of %d, early: %v, %v", n, len(frame), early, err)
		}
		p.Send(request(5, 1, "e"))
		frame, early, _, err = join(p, 5)
		if n := bytes.Count(frame, []byte("e")); early || err != nil || n < 2<<20 {
			t.Errorf("%d bytes, early: %v, %v", n, early, err)
		}
	})
}
