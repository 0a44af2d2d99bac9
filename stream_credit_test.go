package anser_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A sender is held back by a reader that is slow after as much as its window, whichever side it is, and goes
// on when that reads.
func TestSlowReader(t *testing.T) {
	const window, size = 100 << 10, 1000
	slow := func(sent *int, wake chan struct{}) streamHandler {
		return func(_ context.Context, st *bytesStream) error {
			msg := make([]byte, size)
			for range 1000 {
				if err := st.Send(&msg); err != nil {
					return err
				}
				*sent++
			}
			close(wake)
			return nil
		}
	}
	check := func(t *testing.T, sent *int, done <-chan struct{}, reader *bytesStream) {
		t.Helper()
		synctest.Wait()
		// Every message has two bytes that count beside its own.
		if most := window / (size + 2); *sent != most {
			t.Errorf("%d messages were sent before any was read, want %d", *sent, most)
		}
		for range 40 {
			if _, err := reader.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		before := *sent
		synctest.Wait()
		if *sent != before {
			t.Error("credit came back for less than half of the window")
		}
		for range 1000 - 40 {
			if _, err := reader.Recv(); err != nil {
				t.Fatal(err)
			}
			if synctest.Wait(); over(done) {
				break
			}
		}
		if !over(done) {
			t.Errorf("%d messages were sent in the end", *sent)
		}
	}
	t.Run("client", func(t *testing.T) {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			sent, done := 0, make(chan struct{})
			serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Send": slow(&sent, done)})
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.FlowControlWindows(window, 1<<20))
			st := open(t, context.Background(), c, "Chat.Send")
			defer st.Close()
			check(t, &sent, done, st)
		})
	})
	t.Run("server", func(t *testing.T) {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			readers, end := make(chan *bytesStream), make(chan struct{})
			serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
				"Chat.Recv": func(_ context.Context, st *bytesStream) error {
					readers <- st
					<-end
					return nil
				},
			}, anser.FlowControlWindows(window, 1<<20))
			defer close(end)
			c := dial(t, "a:1", anser.Dialer(network.Dial))
			st := open(t, context.Background(), c, "Chat.Recv")
			defer st.Close()
			sent, done := 0, make(chan struct{})
			go slow(&sent, done)(context.Background(), st)
			check(t, &sent, done, <-readers)
		})
	})
}

// Streams that nobody reads do not hold back another one, however many there are, in either direction.
func TestSlowReadersHoldBackOnlyThemselves(t *testing.T) {
	const slow = 100 // all of them together have 25 times the connection's window
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		stop := make(chan struct{})
		s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Both": func(_ context.Context, st *bytesStream) error {
				go flood(st)
				<-stop
				return nil
			},
			"Chat.Talk": talk,
		})
		defer close(stop)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		for range slow {
			st := open(t, context.Background(), c, "Chat.Both")
			defer st.Close()
			go flood(st)
		}
		synctest.Wait()
		began := time.Now()
		st := open(t, context.Background(), c, "Chat.Talk")
		msg := strings.Repeat("x", 20_000)
		for range 1000 {
			say(t, st, msg)
			hear(t, st, msg)
		}
		st.CloseSend()
		hearEnd(t, st)
		if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("something waited for %v", d)
		}
		synctest.Wait() // a stream is counted a little longer than its client knows of it
		if st := s.Stats(); st.Conns != 1 || st.Streams != slow {
			t.Errorf("%+v", st)
		}
	})
}

// While nobody waits for a message, what nobody reads is bounded by the window of the connection.
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

// openRequest is a REQUEST that opens a stream.
func openRequest(id uint64, method uint32, first []byte) []byte {
	return wire.AppendRequest(nil, id, wire.FlagStream, &wire.Request{Method: method, Codec: 1, Priority: 2, Payload: first})
}

// dataFrame is a DATA frame in the raw codec.
func dataFrame(id uint64, flags wire.Flags, payload []byte) []byte {
	f := append(wire.AppendDataHead(nil, id, flags, 1, 0), payload...)
	wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
	return f
}

// granted adds up the WINDOW frames that p reads until a PONG for a PING that it sends.
func granted(t testing.TB, p *wirepeer.Peer) (credit map[uint64]int, frames int) {
	t.Helper()
	if err := p.Send(wire.AppendPing(nil, wire.TypePing, 1)); err != nil {
		t.Fatal(err)
	}
	credit = make(map[uint64]int)
	for {
		f, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		switch f.Type {
		case wire.TypePong:
			return credit, frames
		case wire.TypeWindow:
			frames++
			credit[f.ID] += int(binary.LittleEndian.Uint32(f.Body))
		}
	}
}

// Credit comes back in few frames, and as much of it as was read.
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

// The windows of streams grow to 1 MiB while their readers are fast, those of a connection by 8 MiB together, and
// windows that were set not at all.
func TestWindowsGrow(t *testing.T) {
	const first, grown, together = 256 << 10, 1 << 20, 8 << 20
	piece := make([]byte, 16<<10-wire.DataSize)
	// gain sends half of the first window six times, as fast as the reader is, and returns what came back beyond it.
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
		pause time.Duration // of the reader, for each 16 KiB
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

// The credit of what is thrown away comes back: of what crossed the end of its stream, of what a stream held when it
// ended, and of what came for a stream that was refused.
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

// otherCodec changes the codec of DATA frames.
func otherCodec(frames [][]byte) [][]byte {
	for _, f := range frames {
		f[wire.HeaderSize] = 3
	}
	return frames
}

// A large message does not hold up a small call that comes after it, nor another stream.
func TestLargeMessageBesideSmallOnes(t *testing.T) {
	const large = 8 << 20
	for name, small := range map[string]func(t *testing.T, c *anser.Client) []byte{
		"call": func(t *testing.T, c *anser.Client) []byte {
			go call(context.Background(), c, "Echo.Say", "needle")
			return []byte("needle")
		},
		"stream": func(t *testing.T, c *anser.Client) []byte {
			st := open(t, context.Background(), c, "Chat.Talk")
			go st.Send(text("needle"))
			return []byte("needle")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				network.Buffer = 32 << 10
				before := make(chan int, 1)
				goOn := make(chan struct{})
				l := network.Listen("a:1")
				go func() {
					nc, err := l.Accept()
					if err != nil {
						return
					}
					defer nc.Close()
					p := wirepeer.New(nc)
					settings := wire.DefaultSettings()
					settings.StreamWindow, settings.ConnWindow, settings.MaxFrame = 1<<30, 1<<30, 2*large
					p.Send(wirepeer.Hello(settings))
					p.ReadHello()
					<-goOn
					for n := 0; ; {
						f, err := p.Next()
						if err != nil {
							return
						}
						if bytes.Contains(f.Body, []byte("needle")) {
							before <- n
							return
						}
						n += len(f.Body)
					}
				}()
				defer l.Close()
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
				st := open(t, context.Background(), c, "Chat.Talk")
				defer st.Close()
				msg := make([]byte, large)
				go st.Send(&msg)
				synctest.Wait() // all buffers are full
				small(t, c)
				synctest.Wait()
				close(goOn)
				// The network's buffer, one write that is under way, the buffer behind it, and a turn.
				if n := <-before; n > 32<<10+64<<10+64<<10+32<<10 {
					t.Errorf("%d bytes of the large message came first", n)
				} else if n == 0 {
					t.Error("nothing came first")
				}
			})
		})
	}
}

// Many streams that flood a connection get their share of it, whatever the size of their messages: more than a
// thousand times larger ones do not get the thousandfold.
func TestFairStreams(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		const streams = 10
		l := network.Listen("a:1")
		got, begin := make(map[uint64]int), make(chan struct{})
		done := returned(func() {
			nc, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			p := wirepeer.New(nc)
			settings := wire.DefaultSettings()
			settings.StreamWindow, settings.ConnWindow = 1<<30, 1<<30
			p.Send(wirepeer.Hello(settings))
			p.ReadHello()
			<-begin
			for sum := 0; sum < 16<<20; {
				f, err := p.NextOf(wire.TypeData)
				if err != nil {
					t.Error(err)
					return
				}
				got[f.ID] += len(f.Body)
				sum += len(f.Body)
			}
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		for i := range streams {
			st := open(t, context.Background(), c, "Chat.Talk")
			defer st.Close()
			msg := make([]byte, []int{100, 1000, 10_000, 100_000}[i%4])
			go func() {
				for st.Send(&msg) == nil {
				}
			}()
		}
		synctest.Wait() // all of them want to send; the first one alone could have sent everything while others were opened
		close(begin)
		<-done
		l.Close()
		share := 16 << 20 / streams
		for id, n := range got {
			if n < share/4 || n > 3*share {
				t.Errorf("stream %d sent %d bytes, its share is %d", id, n, share)
			}
		}
		if len(got) != streams {
			t.Errorf("%d streams sent something", len(got))
		}
	})
}

// A Send that waits holds nothing that others need, and its own context, its stream's end and Close free it.
func TestBlockedSend(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		// The server reads nothing at all, so that the write buffer fills up.
		var conn *ansertest.Conn
		l := network.Listen("a:1")
		accepted := returned(func() {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			conn = nc.(*ansertest.Conn)
			p := wirepeer.New(nc)
			settings := wire.DefaultSettings()
			settings.StreamWindow, settings.ConnWindow = 1<<30, 1<<30
			p.Send(wirepeer.Hello(settings))
			p.ReadHello()
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.WriteStall(time.Hour), anser.Keepalive(time.Hour, time.Hour))
		ctx, cancel := context.WithCancel(context.Background())
		first, second := open(t, ctx, c, "Chat.Talk"), open(t, context.Background(), c, "Chat.Talk")
		<-accepted
		var firstErr, secondErr error
		firstDone := returned(func() { firstErr = flood(first) })
		secondDone := returned(func() { secondErr = flood(second) })
		synctest.Wait()
		if over(firstDone) || over(secondDone) {
			t.Fatal("Send does not wait", firstErr, secondErr)
		}
		timed, cancelTimed := context.WithTimeout(context.Background(), time.Second)
		defer cancelTimed()
		began := time.Now()
		third := open(t, timed, c, "Chat.Talk") // nothing is locked
		if err := flood(third); anser.CodeOf(err) != anser.DeadlineExceeded || time.Since(began) != time.Second {
			t.Error(err, time.Since(began))
		}
		cancel()
		<-firstDone
		if anser.CodeOf(firstErr) != anser.Canceled {
			t.Error(firstErr)
		}
		if over(secondDone) {
			t.Fatal(secondErr)
		}
		second.Close()
		<-secondDone
		if anser.CodeOf(secondErr) != anser.Canceled {
			t.Error(secondErr)
		}
		fourth := open(t, context.Background(), c, "Chat.Talk")
		var fourthErr error
		fourthDone := returned(func() { fourthErr = flood(fourth) })
		synctest.Wait()
		conn.Close()
		<-fourthDone
		if anser.CodeOf(fourthErr) != anser.Unavailable {
			t.Error(fourthErr)
		}
		l.Close()
	})
}

// A peer whose windows are tiny gets its messages all the same, in pieces.
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

// Messages far above the window and the size of a frame's piece arrive, over real TCP, up to the limit.
func TestLargeMessages(t *testing.T) {
	ansertest.CheckLeaks(t)
	const limit = 16 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveStreams(t, l, map[string]streamHandler{"Chat.Talk": talk}, anser.MaxMessage(limit))
	c := dial(t, l.Addr().String(), anser.MaxMessage(limit))
	st := open(t, context.Background(), c, "Chat.Talk")
	for _, size := range []int{limit, 16<<10 - 1, 16 << 10, 16<<10 + 1, 1 << 20, 0} {
		msg := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, size/7+1)[:size]
		sent := returned(func() {
			if err := st.Send(&msg); err != nil {
				t.Error(err)
			}
		})
		back, err := st.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(*back, msg) {
			t.Errorf("a message of %d bytes came back with %d", size, len(*back))
		}
		<-sent
	}
	st.CloseSend()
	if _, err := st.Recv(); err != io.EOF {
		t.Error(err)
	}
}

// What is too large fails: at the sender as far as it knows, and else the stream at the receiver, which
// keeps no more than its window.
func TestTooLargeMessages(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk, "Chat.Back": func(_ context.Context, st *bytesStream) error {
			msg := make([]byte, 1<<20+1)
			return st.Send(&msg)
		}}, anser.MaxMessage(100_000))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.MaxMessage(1<<20))
		st := open(t, context.Background(), c, "Chat.Talk")
		huge := make([]byte, 1<<20)
		err := st.Send(&huge)
		if e := fault(t, err); e.Code != anser.ResourceExhausted || !strings.Contains(e.Message, "anser.MaxMessage") {
			t.Error(err)
		}
		say(t, st, "that did no harm")
		hear(t, st, "that did no harm")
		huge = huge[:100_001]
		if err := st.Send(&huge); err != nil {
			t.Fatal(err)
		}
		_, err = st.Recv()
		if e := wantFault(t, err, anser.ResourceExhausted, anser.Executed); !strings.Contains(e.Message, "over the limit of 100000 bytes: raise it with anser.MaxMessage") {
			t.Error(err)
		}
		st = open(t, context.Background(), c, "Chat.Back")
		_, err = st.Recv()
		if e := fault(t, err); e.Code != anser.ResourceExhausted || e.Remote {
			t.Error(err)
		}
		if _, err := call(context.Background(), c, "Echo.Say", "hello"); err != nil || s.Stats().Conns != 1 {
			t.Error(err)
		}
	})
}
