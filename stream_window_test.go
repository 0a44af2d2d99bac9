package anser_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// While no Recv waits for a message, the amount of unread data is bounded by the window of the
// connection.
func TestWindowOfTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Idle": idle}, anser.FlowControlWindows(64<<10, 256<<10))
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Chat.Idle"))
		for id := range uint64(8) {
			p.Send(openRequest(id+1, 1, nil))
			for range 32 << 10 / 1024 {
				p.Send(dataFrame(id+1, 0, make([]byte, 1022)))
			}
		}
		synctest.Wait()
		p.Send(dataFrame(1, 0, nil))
		if reason, text, err := p.ReadClose(); reason != wire.FlowControl || err != nil {
			t.Error(reason, text, err)
		}
	})
}

// Credit is returned in few frames, and exactly as much as was read.
func TestWindowFramesAreFew(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Sink": sink})
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Chat.Sink"), openRequest(1, 1, []byte("free of charge")))
		const messages, size = 4 << 10, 1 << 10
		stream, conn, all := 0, 0, 0
		for i := range messages {
			if err := p.Send(dataFrame(1, 0, make([]byte, size-wire.DataSize))); err != nil {
				t.Fatal(err)
			}
			if i%64 == 63 {
				synctest.Wait()
				credit, frames := granted(t, p)
				stream, conn, all = stream+credit[1], conn+credit[0], all+frames
			}
		}
		own := wire.DefaultSettings()
		const grown = 1 << 20 // the reader is fast
		for what, c := range map[string]struct{ got, first, window int }{
			"stream":     {stream, int(own.StreamWindow), grown},
			"connection": {conn, int(own.ConnWindow), int(own.ConnWindow)},
		} {
			back := messages*size + c.window - c.first
			if c.got > back || c.got <= back-c.window/2 {
				t.Errorf("%s: %d of %d bytes came back with a window of %d", what, c.got, back, c.window)
			}
		}
		if most := 2 * messages * size / (int(own.StreamWindow) / 2); all > most {
			t.Errorf("%d WINDOW frames, want %d at most", all, most)
		}
	})
}

// The windows of streams grow to 1 MiB while their readers are fast, those of a connection by 8 MiB
// together, and windows that were set explicitly do not grow.
func TestWindowsGrow(t *testing.T) {
	const first, grown, together = 256 << 10, 1 << 20, 8 << 20
	piece := make([]byte, 16<<10-wire.DataSize)
	// gain sends half of the initial window six times, as fast as the reader is, and returns the
	// credit that was returned beyond it.
	gain := func(t *testing.T, p *wirepeer.Peer, id uint64, pause time.Duration) int {
		t.Helper()
		p.Send(openRequest(id, 1, nil))
		back, sent := 0, 0
		for range 6 * first / 2 / (16 << 10) {
			if err := p.Send(dataFrame(id, 0, piece)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			synctest.Wait()
			sent += 16 << 10
			credit, _ := granted(t, p)
			back += credit[id]
		}
		return max(back-sent, 0)
	}
	reader := func(pause time.Duration) streamHandler {
		return func(_ context.Context, st *bytesStream) error {
			for _, err := range st.All() {
				if err != nil {
					return err
				}
				time.Sleep(pause)
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		pause time.Duration // pause of the reader per 16 KiB
		opts  []anser.ServerOption
		most  int
	}{
		"fast":       {0, nil, grown - first},
		"quite fast": {time.Millisecond, nil, grown - first},
		"slow":       {20 * time.Millisecond, nil, 0},
		"set":        {0, []anser.ServerOption{anser.FlowControlWindows(first, 1<<20)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Sink": reader(c.pause)}, c.opts...)
				p := rawClient(t, network, "a:1")
				p.Send(wire.AppendMethod(nil, 1, "Chat.Sink"))
				if n := gain(t, p, 1, c.pause); n > c.most || n == 0 && c.most > 0 {
					t.Errorf("the window grew by %d, want %d at most", n, c.most)
				}
			})
		})
	}
	t.Run("together", func(t *testing.T) {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Sink": sink})
			p := rawClient(t, network, "a:1")
			p.Send(wire.AppendMethod(nil, 1, "Chat.Sink"))
			sum := 0
			for id := range uint64(20) {
				sum += gain(t, p, id+1, 0)
			}
			if sum > together || sum < together/2 {
				t.Errorf("20 windows grew by %d together, want %d at most", sum, together)
			}
			p.Send(wire.AppendCancel(nil, 1))
			synctest.Wait()
			if n := gain(t, p, 21, 0); n == 0 {
				t.Error("a window does not grow although another stream that had grown has ended")
			}
		})
	})
}

// The credit of discarded data is returned: of data that crossed the end of its stream, of data
// that a stream held when it ended, and of data for a refused stream.
func TestCreditOfWhatIsThrownAway(t *testing.T) {
	own := wire.DefaultSettings()
	data := func(n int, id uint64) (frames [][]byte) {
		for range n {
			frames = append(frames, dataFrame(id, 0, make([]byte, 8<<10-wire.DataSize)))
		}
		return frames
	}
	for name, f := range map[string]func(p *wirepeer.Peer, id uint64){
		"refused":         func(p *wirepeer.Peer, id uint64) { p.Send(openRequest(id, 9, nil)); p.Send(data(16, id)...) },
		"unread and over": func(p *wirepeer.Peer, id uint64) { p.Send(openRequest(id, 1, nil)); p.Send(data(16, id)...) },
		"crossed": func(p *wirepeer.Peer, id uint64) {
			p.Send(openRequest(id, 1, nil))
			time.Sleep(2 * time.Second)
			p.Send(data(16, id)...)
		},
		"cancelled": func(p *wirepeer.Peer, id uint64) {
			p.Send(openRequest(id, 2, nil))
			p.Send(data(16, id)...)
			p.Send(wire.AppendCancel(nil, id))
		},
		"after its CANCEL": func(p *wirepeer.Peer, id uint64) {
			p.Send(openRequest(id, 2, nil), wire.AppendCancel(nil, id))
			p.Send(data(16, id)...)
		},
		"another codec": func(p *wirepeer.Peer, id uint64) {
			p.Send(openRequest(id, 2, nil))
			p.Send(otherCodec(data(16, id))...)
		},
		"half-closed": func(p *wirepeer.Peer, id uint64) {
			p.Send(openRequest(id, 1, nil))
			p.Send(data(16, id)...)
			p.Send(wire.AppendEnd(nil, id, nil))
		},
		"more than MaxMessage": func(p *wirepeer.Peer, id uint64) {
			p.Send(openRequest(id, 3, nil))
			for range 16 {
				p.Send(dataFrame(id, wire.FlagMore, make([]byte, 8<<10-wire.DataSize)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
					"Chat.Quit": func(context.Context, *bytesStream) error { time.Sleep(time.Second); return nil },
					"Chat.Idle": idle,
					"Chat.Sink": sink,
				}, anser.MaxMessage(64<<10))
				p := rawClient(t, network, "a:1")
				for i, name := range []string{"Chat.Quit", "Chat.Idle", "Chat.Sink", "4", "5", "6", "7", "8", "9"} {
					p.Send(wire.AppendMethod(nil, uint32(i+1), name))
				}
				back, sent := 0, 0
				for id := range uint64(24) { // three times the window
					f(p, id+1)
					sent += 16 * 8 << 10
					time.Sleep(2 * time.Second)
					synctest.Wait()
					credit, _ := granted(t, p)
					back += credit[0]
				}
				if most := int(own.ConnWindow) / 2; sent-back >= most || back > sent {
					t.Errorf("%d of %d bytes came back, want all but less than %d", back, sent, most)
				}
				if st := s.Stats(); st.Conns != 1 || st.Streams != 0 || len(st.Closed) != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// A peer with tiny windows gets its messages all the same, in pieces.
func TestTinyWindows(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := network.Listen("a:1")
		done := returned(func() {
			nc, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			p := wirepeer.New(nc)
			settings := wire.DefaultSettings()
			settings.StreamWindow, settings.ConnWindow = 5, 7
			p.Send(wirepeer.Hello(settings))
			p.ReadHello()
			var got []byte
			for {
				f, err := p.NextOf(wire.TypeData)
				if err != nil {
					t.Error(err)
					return
				}
				if f.Length > 5 {
					t.Errorf("DATA of %d bytes", f.Length)
				}
				got = append(got, f.Body[wire.DataSize:]...)
				if f.Flags&wire.FlagMore == 0 {
					break
				}
				p.Send(wire.AppendWindow(nil, f.ID, f.Length), wire.AppendWindow(nil, 0, f.Length))
			}
			if string(got) != "a message" {
				t.Errorf("%q", got)
			}
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		st := open(t, context.Background(), c, "Chat.Talk")
		say(t, st, "a message")
		<-done
		l.Close()
	})
}
