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

// A slow reader stops the sender after one window of data, whichever side it is, and the sender
// continues when it reads.
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
		// Every message has two bytes in addition to its own that count.
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

// Streams that are not read do not delay another one, however many there are, in either direction.
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

// openRequest returns a REQUEST that opens a stream.
func openRequest(id uint64, method uint32, first []byte) []byte {
	return wire.AppendRequest(nil, id, wire.FlagStream, &wire.Request{Method: method, Codec: 1, Priority: 2, Payload: first})
}

// dataFrame returns a DATA frame in the raw codec.
func dataFrame(id uint64, flags wire.Flags, payload []byte) []byte {
	f := append(wire.AppendDataHead(nil, id, flags, 1, 0), payload...)
	wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
	return f
}

// granted sends a PING, and adds up the WINDOW frames that p reads until the PONG.
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

// otherCodec changes the codec of DATA frames.
func otherCodec(frames [][]byte) [][]byte {
	for _, f := range frames {
		f[wire.HeaderSize] = 3
	}
	return frames
}

// A large message delays neither a small call that comes after it nor another stream.
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
				// The network's buffer, one write in progress, the buffer behind it, and a turn.
				if n := <-before; n > 32<<10+64<<10+64<<10+32<<10 {
					t.Errorf("%d bytes of the large message came first", n)
				} else if n == 0 {
					t.Error("nothing came first")
				}
			})
		})
	}
}

// Many streams that flood a connection get their share of it, whatever the size of their messages:
// a stream with messages more than a thousand times larger does not get a thousand times as much.
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
		// All of them want to send. The first one alone could have sent everything while others
		// were opened.
		synctest.Wait()
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

// A Send that waits holds nothing that other streams need, and its own context, its stream's end
// and Close end it.
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

// Messages far larger than the window and the size of a piece arrive, over real TCP, up to the
// limit.
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

// A message that is too large fails: at the sender if it knows the limit, and otherwise at the
// receiver, which fails the stream and keeps no more than its window.
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
