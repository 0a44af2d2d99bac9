package anser_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// feedSlowly sends a frame at 8 KiB per second, which is too fast for anser.WriteStall, until the
// connection ends.
func feedSlowly(p *wirepeer.Peer, frame []byte) {
	for len(frame) > 0 {
		n := min(len(frame), 8<<10)
		if p.Send(frame[:n]) != nil {
			return
		}
		frame = frame[n:]
		time.Sleep(time.Second)
	}
}

// A server closes a connection whose frame does not arrive completely within anser.ReadTimeout,
// and sends the reason.
func TestReadTimeoutOfAServer(t *testing.T) {
	for name, tc := range map[string]struct {
		opts   []anser.ServerOption
		late   bool
		frames int // whole frames, each of which takes 4 s
	}{
		"late":                 {[]anser.ServerOption{anser.ReadTimeout(2 * time.Second)}, true, 1},
		"in time":              {[]anser.ServerOption{anser.ReadTimeout(6 * time.Second)}, false, 1},
		"each frame by itself": {[]anser.ServerOption{anser.ReadTimeout(6 * time.Second)}, false, 5},
		"without":              {nil, false, 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := serve(t, network.Listen("a:1"), hello("a:1"), tc.opts...)
				p := rawClient(t, network, "a:1")
				if err := p.Send(wire.AppendMethod(nil, 1, "Echo.Who")); err != nil {
					t.Fatal(err)
				}
				var feeding sync.WaitGroup
				defer feeding.Wait()
				feeding.Go(func() {
					for i := range tc.frames {
						feedSlowly(p, wirepeer.Request(uint64(i)+1, 1, make([]byte, 32<<10)))
					}
				})
				if !tc.late {
					for range tc.frames {
						if _, err := p.NextOf(wire.TypeReply); err != nil {
							t.Fatal(err)
						}
					}
				} else {
					reason, text, err := p.ReadClose()
					if err != nil || reason != wire.Timeout || !strings.Contains(text, "anser.ReadTimeout") {
						t.Errorf("CLOSE with %v %q, %v", reason, text, err)
					}
				}
				synctest.Wait()
				want := map[bool]int64{true: 1}[tc.late]
				if got := s.Stats(); got.LimitsHit["ReadTimeout"] != want || got.LimitsHit["WriteStall"] != 0 || got.Closed["TIMEOUT"] != want {
					t.Errorf("limits hit %v, closed %v", got.LimitsHit, got.Closed)
				}
			})
		})
	}
}

// A client does the same with a reply, and its call fails; a connection without an unfinished
// frame stays open.
func TestReadTimeoutOfAClient(t *testing.T) {
	for name, limit := range map[string]time.Duration{"late": 2 * time.Second, "in time": 6 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				rawServerWith(t, network.Listen("a:1"), nil, func(p *wirepeer.Peer) {
					for {
						f, err := p.NextOf(wire.TypeRequest)
						if err != nil {
							return
						}
						feedSlowly(p, wirepeer.Reply(f.ID, make([]byte, 32<<10)))
					}
				})
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.ReadTimeout(limit))
				_, err := anser.Call[[]byte](context.Background(), c, "Echo.Who", text(""))
				if limit > 4*time.Second {
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(20 * time.Second) // silence is not late
					_, err = anser.Call[[]byte](context.Background(), c, "Echo.Who", text(""))
					if err != nil {
						t.Error(err)
					}
					return
				}
				var fault *anser.Error
				if !errors.As(err, &fault) || fault.Code != anser.Unavailable || !strings.Contains(err.Error(), "anser.ReadTimeout") {
					t.Errorf("the call: %v", err)
				}
			})
		})
	}
}

// The time in which a server does not read, as its client is slow to take a reply, does not count
// for a frame of the client that has begun to arrive.
func TestFrameDuringASlowReply(t *testing.T) {
	const size = 400_000
	large := wirepeer.Request(2, 2, nil)
	for name, c := range map[string]struct{ first, then []byte }{
		"in PARTs": {
			slices.Concat(wirepeer.Parts(wirepeer.Request(1, 1, make([]byte, 100_000)), 64)[0], large),
			wirepeer.Parts(wirepeer.Request(1, 1, make([]byte, 100_000)), 64)[1],
		},
		"whole": {large[:10], large[10:]},
	} {
		for _, limit := range []time.Duration{0, 15 * time.Second} { // ReadTimeout
			t.Run(name+"/"+limit.String(), func(t *testing.T) {
				partsBubble(t, func(t *testing.T, network *ansertest.Network) {
					s := anser.NewServer(silent, anser.ReadTimeout(limit))
					anser.Handle(s, "Echo.Say", echo, anser.Inline())
					anser.Handle(s, "Echo.Large", func(context.Context, *[]byte) (*[]byte, error) {
						b := make([]byte, size)
						return &b, nil
					}, anser.Inline())
					run(t, s, network.Listen("a:1"))
					p, _ := partsPeer(t, network, false, false)
					p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Large"))
					p.Write(c.first)
					synctest.Wait()
					go p.Write(c.then)
					for n := 0; n < size; n += 16 << 10 {
						if err := p.Fill(n); err != nil {
							t.Fatalf("after %d bytes of the reply: %v", n, err)
						}
						time.Sleep(time.Second)
					}
					if err := echoOf(p, 2, make([]byte, size)); err != nil {
						t.Fatal(err)
					}
					if name == "in PARTs" {
						if err := echoOf(p, 1, make([]byte, 100_000)); err != nil {
							t.Fatal(err)
						}
					}
					p.Send(wirepeer.Request(3, 1, []byte("small")))
					if err := echoOf(p, 3, []byte("small")); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}
