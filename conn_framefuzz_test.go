package anser_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
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

// listener records what a peer reads, so that a test can check it whenever nothing is on its way.
type listener struct {
	mu     sync.Mutex
	frames []wirepeer.Frame
	ended  bool
}

// listen reads from p until its end.
func (l *listener) listen(p *wirepeer.Peer) {
	for {
		f, err := p.Next()
		l.mu.Lock()
		if err != nil {
			l.ended = true
			l.mu.Unlock()
			return
		}
		l.frames = append(l.frames, f)
		l.mu.Unlock()
	}
}

// take returns the frames that have arrived since the last time, without WINDOW frames, whose
// credit is added up in granted.
func (l *listener) take(granted map[uint64]int64) (frames []wirepeer.Frame, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.frames {
		if f.Type != wire.TypeWindow {
			frames = append(frames, f)
		} else if credit, err := wire.ParseWindow(f.ID, f.Body); err == nil {
			granted[f.ID] += int64(credit)
		}
	}
	l.frames = nil
	return frames, l.ended
}

// exchanged is a server's answer to a stream of bytes.
type exchanged struct {
	frames []wirepeer.Frame // in the order of type and id
	reason wire.Reason
	closed bool
}

// callState sends a server the bytes after a good handshake, in two pieces. sealed says that the
// frames of the connection have checksums, which the bytes must contain.
func callState(t *testing.T, data []byte, cut int, sealed bool) (out exchanged) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		// Handlers whose answers do not depend on when bytes arrive.
		s := anser.NewServer(silent, anser.MaxStreams(4))
		anser.Handle(s, "Echo.Say", echo)
		anser.HandleStream(s, "Chat.Idle", idle)
		anser.Handle(s, "Echo.Wait", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, anser.Concurrent())
		run(t, s, network.Listen("a:1"))
		nc, err := network.Dial(context.Background(), "tcp", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		p := wirepeer.New(nc)
		shake := p.Handshake
		if sealed {
			shake = p.SealedHandshake
		}
		if _, err := shake(); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"Echo.Say", "Chat.Idle", "Echo.Wait", "Echo.None"} {
			p.Send(wire.AppendMethod(nil, uint32(i+1), name))
		}
		var heard listener
		var wg sync.WaitGroup
		wg.Go(func() { heard.listen(p) })
		for _, b := range [][]byte{data[:cut], data[cut:]} {
			p.Write(b)
			synctest.Wait()
		}
		frames, ended := heard.take(make(map[uint64]int64))
		p.Close()
		wg.Wait()
		for _, f := range frames {
			whole := wire.AppendHeader(nil, f.Header)
			if _, err := wire.ParseHeader(whole); err != nil {
				t.Errorf("the server sent a %s that it would refuse itself: %v", f.Type, err)
			}
			if f.Type == wire.TypeClose {
				out.closed = true
				out.reason, _, _ = wire.ParseClose(f.Body)
			} else {
				out.frames = append(out.frames, f)
			}
		}
		if ended && !out.closed && !bytes.Contains(data, []byte{byte(wire.TypeClose)}) {
			t.Error("the connection ended without a reason")
		}
		slices.SortFunc(out.frames, func(a, b wirepeer.Frame) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID), bytes.Compare(a.Body, b.Body))
		})
		synctest.Wait()
		if st := s.Stats(); st.Streams != 0 || st.InFlight != 0 || st.Panics != 0 || st.Conns != 0 || s.Unread() != 0 {
			t.Errorf("after the end: %+v, %d bytes of credit", st, s.Unread())
		}
	})
	return out
}

// isSame compares frames, ignoring whether they had a checksum.
func isSame(a, b wirepeer.Frame) bool {
	return a.Type == b.Type && a.Flags == b.Flags && a.ID == b.ID && bytes.Equal(a.Body, b.Body)
}

// sealable returns the whole frames at the beginning of the bytes, up to the first one whose
// flags say that it has a checksum, or which has something in the place of the check of its header.
func sealable(data []byte) []byte {
	at := 0
	for len(data)-at >= wire.HeaderSize && data[at+5]&byte(wire.FlagCRC)|data[at+6]|data[at+7] == 0 {
		end := uint64(at+wire.HeaderSize) + uint64(binary.LittleEndian.Uint32(data[at:]))
		if end > uint64(len(data)) {
			break
		}
		at = int(end)
	}
	return data[:at]
}

// FuzzServerFrames sends a server arbitrary bytes after a good handshake. The server's answer
// depends neither on where the bytes are cut nor on whether the frames have checksums. If
// checksums were negotiated and the frames have none, the server does nothing.
func FuzzServerFrames(f *testing.F) {
	say := wirepeer.Request(1, 1, []byte("hello"))
	seeds := [][]byte{
		say, wire.AppendPing(nil, wire.TypePing, 7), bytes.Repeat(wire.AppendPing(nil, wire.TypePing, 7), 5),
		append(wirepeer.Request(1, 3, nil), wire.AppendCancel(nil, 1)...), append(wirepeer.Request(2, 1, nil), say...),
		append(openRequest(1, 2, []byte("first")), dataFrame(1, wire.FlagMore, []byte("piece"))...),
		slices.Concat(openRequest(1, 2, nil), wire.AppendEnd(nil, 1, nil), dataFrame(1, 0, nil)),
		append(openRequest(1, 2, nil), wire.AppendWindow(nil, 1, 0)...), wire.AppendWindow(nil, 0, 1<<31-1),
		append(say, wire.AppendDrain(nil, 0, 100)...), wire.AppendClose(nil, wire.Normal, "bye"), wire.AppendMethod(nil, 5, "New.One"),
		wirepeer.Request(1, 4, nil), wirepeer.Request(1, 9, nil), wire.AppendSettings(nil, wire.DefaultSettings()), wirepeer.Reply(1, nil),
		wire.AppendRequest(nil, 1, wire.FlagMetadata, &wire.Request{Method: 1, Codec: 1, Priority: 2, Metadata: wire.AppendMetadata(nil, []wire.Pair{{Key: "k", Value: "v"}})}),
		wire.AppendRequest(nil, 1, wire.FlagOneway, &wire.Request{Method: 1, Codec: 1, Priority: 2, Timeout: 1000}),
		wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 1, Compression: 1, Priority: 2, Payload: []byte{0x1f, 0x8b}}),
		wire.AppendHeader(nil, wire.Header{Length: 1 << 31, Type: wire.TypeRequest, ID: 1}), wire.AppendHeader(nil, wire.Header{Length: 1, Type: 0xFE}),
	}
	parts := wirepeer.Parts(wirepeer.Request(1, 1, make([]byte, 100_000)), 64, 1024, 2000)
	early := wire.AppendPartHead(nil, 1, 0)
	seeds = append(seeds, slices.Concat(parts[0], wirepeer.Request(2, 1, []byte("passes")), parts[1], early, wirepeer.Request(3, 1, nil)),
		slices.Concat(parts[0], wire.AppendCancel(nil, 1), parts[1], parts[2]), slices.Concat(parts[0], parts[0]), early,
		slices.Concat(parts[0], say), slices.Concat(parts[0], wire.AppendDrain(nil, 0, 100), early))
	for i, b := range seeds {
		f.Add(b, uint16(i*5))
	}
	f.Add(slices.Concat(seeds[0], seeds[1], seeds[11]), uint16(30))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		if len(data) > 16<<10 {
			return // nothing that begins to depend on the time: no credit runs out
		}
		if len(data) >= wire.HeaderSize && data[5]&byte(wire.FlagCRC) == 0 {
			if none := callState(t, data, min(int(cut), len(data)), true); !none.closed || len(none.frames) > 0 {
				t.Fatalf("without checksums where there should be some: closed %t, %+v", none.closed, none.frames)
			}
		}
		frames := sealable(data)
		plain, sealed := callState(t, frames, 0, false), callState(t, wirepeer.Seal(frames), 0, true)
		if plain.closed != sealed.closed || plain.reason != sealed.reason {
			t.Fatalf("closed %t with %s, with checksums %t with %s", plain.closed, plain.reason, sealed.closed, sealed.reason)
		}
		if !plain.closed && !slices.EqualFunc(plain.frames, sealed.frames, isSame) {
			t.Fatalf("%+v, with checksums %+v", plain.frames, sealed.frames)
		}
		whole, inPieces := callState(t, data, 0, false), callState(t, data, min(int(cut), len(data)), false)
		if inPieces.closed && inPieces.reason == wire.Normal && bytes.Contains(data, []byte{byte(wire.TypeDrain)}) {
			return // a connection that drains ends when nothing is open on it: what comes later is not read
		}
		if whole.closed != inPieces.closed || whole.reason != inPieces.reason {
			t.Fatalf("closed %t with %s, in pieces %t with %s", whole.closed, whole.reason, inPieces.closed, inPieces.reason)
		}
		if whole.closed {
			return // what was on its way when the connection ended may not have arrived
		}
		if !slices.EqualFunc(whole.frames, inPieces.frames, isSame) {
			t.Fatalf("%+v, in pieces %+v", whole.frames, inPieces.frames)
		}
	})
}

// FuzzClientFrames makes a server send arbitrary bytes after a good handshake, while a client
// that takes calls of the server has a call and a stream open. Both end, at the latest with the
// connection, and no credit is left. With an odd cut the connection has checksums.
func FuzzClientFrames(f *testing.F) {
	add := func(frames ...[]byte) {
		f.Add(slices.Concat(frames...), uint16(len(frames[0])))
		f.Add(slices.Concat(frames...), uint16(len(frames[0])+1)) // with checksums, or without
	}
	add(wirepeer.Reply(1, []byte("hello")), wire.AppendEnd(nil, 2, nil))
	add(dataFrame(2, 0, []byte("a")), dataFrame(2, wire.FlagMore, []byte("b")), wirepeer.Fault(2, wire.ErrorBody{Code: wire.Aborted, Outcome: wire.Executed}))
	add(wire.AppendMethod(nil, 1, "Far.Say"), wirepeer.Request(1<<63+1, 1, []byte("x")), wire.AppendCancel(nil, 1<<63+1))
	add(wirepeer.Reply(2, nil), wirepeer.Reply(3, nil))
	add(wire.AppendDrain(nil, 0, 10), wire.AppendClose(nil, wire.Normal, ""))
	add(wire.AppendWindow(nil, 2, 0), wire.AppendWindow(nil, 0, 1<<31-1))
	add(wire.AppendPing(nil, wire.TypePing, 1), wire.AppendPing(nil, wire.TypePong, 1))
	add(wire.AppendHeader(nil, wire.Header{Length: 1 << 31, Type: wire.TypeReply, ID: 1}))
	parts := wirepeer.Parts(wirepeer.Reply(1, []byte(strings.Repeat("hello", 15_000))), 64, 5000, 10_000)
	add(parts[0], wire.AppendEnd(nil, 2, nil), parts[1], parts[2], parts[3])
	add(parts[0], parts[1], wire.AppendPartHead(nil, 1, 0))
	parts = wirepeer.Parts(wirepeer.Request(1<<63+1, 1, make([]byte, 70_000)), 64, 5000)
	add(wire.AppendMethod(nil, 1, "Far.Say"), parts[0], wirepeer.Request(1<<63+2, 1, []byte("x")), parts[1], wire.AppendCancel(nil, 1<<63+1), parts[2])
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			l := network.Listen("a:1")
			var wg sync.WaitGroup
			opened := make(chan struct{})
			wg.Go(func() {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer nc.Close()
				p := wirepeer.New(nc)
				shake, sent := p.Handshake, data
				if cut%2 == 1 {
					shake, sent = p.SealedHandshake, wirepeer.Seal(data)
				}
				if _, err := shake(); err != nil {
					return
				}
				var heard listener
				wg.Go(func() { heard.listen(p) })
				<-opened
				at := min(int(cut), len(sent))
				for _, b := range [][]byte{sent[:at], sent[at:]} {
					p.Write(b)
					synctest.Wait()
				}
				time.Sleep(time.Second)
				synctest.Wait()
				frames, ended := heard.take(make(map[uint64]int64))
				told := slices.ContainsFunc(frames, func(f wirepeer.Frame) bool { return f.Type == wire.TypeClose })
				if ended && !told && !bytes.Contains(data, []byte{byte(wire.TypeClose)}) && !bytes.Contains(data, []byte{byte(wire.TypeDrain)}) {
					t.Error("the client hung up without a reason")
				}
			})
			far := anser.NewServer(silent)
			if err := anser.Handle(far, "Far.Say", echo); err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Timeout(time.Minute), anser.Handlers(far))
			defer c.Close()
			var calls sync.WaitGroup
			calls.Go(func() {
				if out, err := call(context.Background(), c, "Echo.Say", "hello", anser.WithFailMode(anser.Failfast)); err != nil {
					fault(t, err)
				} else if !bytes.Contains(data, []byte(out)) && (len(out) < wire.MinParted-wire.ReplySize || len(out) > len(data)) { // in PARTs
					t.Errorf("the reply %q was never sent", out)
				}
			})
			synctest.Wait()
			st, err := anser.Open[[]byte, []byte](context.Background(), c, "Chat.Talk", anser.Timeout(time.Minute))
			if err == nil {
				calls.Go(func() {
					for msg, err := range st.All() {
						if err == nil && len(*msg) > len(data) {
							t.Errorf("a message of %d bytes was made of %d", len(*msg), len(data))
						}
					}
					st.Close()
				})
			}
			synctest.Wait()
			close(opened)
			l.Close()
			calls.Wait()
			wg.Wait()
			if n := c.Unread(); n != 0 {
				t.Errorf("%d bytes of credit are left", n)
			}
		})
	})
}
