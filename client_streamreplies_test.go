package anser_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// Frames of a server that break the protocol fail the stream, or close the connection with a
// reason.
func TestBadStreamReplies(t *testing.T) {
	small := []byte("ok")
	compressed := dataFrame(0, 0, small)
	compressed[wire.HeaderSize+1] = 1
	brokenTrailers := wire.AppendMetadata(nil, []wire.Pair{{Key: "UPPER", Value: "v"}})
	for name, test := range map[string]struct {
		frames [][]byte    // their ids are set to that of the stream
		code   anser.Code  // of the stream; OK: a good end
		text   string      // in its error
		reason wire.Reason // of CLOSE; 0: the connection goes on
	}{
		"a good end":                    {frames: [][]byte{dataFrame(0, 0, small), wire.AppendEnd(nil, 1, nil)}},
		"all that crosses an end":       {frames: [][]byte{wire.AppendEnd(nil, 1, nil), dataFrame(0, 0, small), wire.AppendEnd(nil, 1, nil), wire.AppendWindow(nil, 1, 0)}},
		"an error after the end":        {frames: [][]byte{wire.AppendEnd(nil, 1, nil), wirepeer.Fault(1, wire.ErrorBody{Code: wire.Aborted, Outcome: wire.Executed})}},
		"end in the middle":             {frames: [][]byte{dataFrame(0, wire.FlagMore, small), wire.AppendEnd(nil, 1, nil)}, code: anser.Internal, text: "in the middle of a message"},
		"another codec":                 {frames: otherCodec([][]byte{dataFrame(0, 0, small)}), code: anser.Internal, text: "another codec"},
		"compression":                   {frames: [][]byte{compressed}, code: anser.Unimplemented, text: "compress"},
		"a reply":                       {frames: [][]byte{wirepeer.Reply(1, small)}, code: anser.Internal, text: "REPLY to a stream"},
		"a reply in parts":              {frames: wirepeer.Parts(wirepeer.Reply(1, make([]byte, 100_000)), 64), code: anser.Internal, text: "REPLY to a stream"},
		"the first part of a reply":     {frames: wirepeer.Parts(wirepeer.Reply(1, make([]byte, 100_000)), 64)[:1], code: anser.Internal, text: "REPLY to a stream"},
		"a window of 0":                 {frames: [][]byte{wire.AppendWindow(nil, 1, 0)}, code: anser.Internal, text: "WINDOW of 0"},
		"trailers with a bad key":       {frames: [][]byte{wire.AppendEnd(nil, 1, brokenTrailers)}, code: anser.Internal, text: "trailers"},
		"an error with a bad trailer":   {frames: [][]byte{wire.AppendError(nil, 1, 0, &wire.ErrorBody{Code: wire.Aborted, Outcome: wire.Executed, Metadata: brokenTrailers})}, code: anser.Aborted},
		"trailers of a broken shape":    {frames: [][]byte{wire.AppendEnd(nil, 1, []byte{9, 0, 0, 0, 1, 0})}, code: anser.Unavailable, reason: wire.BadMetadata},
		"END with more than trailers":   {frames: [][]byte{endWith("garbage")}, code: anser.Unavailable, reason: wire.BadFrame},
		"DATA without a codec":          {frames: [][]byte{wire.AppendHeader(nil, wire.Header{Type: wire.TypeData, ID: 1})}, code: anser.Unavailable, reason: wire.BadFrame},
		"a window of 2^31":              {frames: [][]byte{wire.AppendWindow(nil, 1, 1<<31)}, code: anser.Unavailable, reason: wire.FlowControl},
		"windows of 2^31 in sum":        {frames: [][]byte{wire.AppendWindow(nil, 1, 1<<30), wire.AppendWindow(nil, 1, 1<<30)}, code: anser.Unavailable, reason: wire.FlowControl},
		"a stream nobody opened":        {frames: repeated(101, dataFrame(7, 0, small)), code: anser.Unavailable, reason: wire.Flood},
		"empty pieces":                  {frames: repeated(101, dataFrame(0, wire.FlagMore, nil)), code: anser.Unavailable, reason: wire.Flood},
		"more than the stream's credit": {frames: repeated(5, dataFrame(0, 0, make([]byte, 14<<10))), code: anser.Unavailable, reason: wire.FlowControl},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				closed := make(chan wire.Reason, 1)
				goOn := make(chan struct{})
				rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
					f, err := p.NextOf(wire.TypeRequest)
					if err != nil {
						return
					}
					<-goOn
					for _, frame := range test.frames {
						if frame[8] < 7 {
							frame[8] = byte(f.ID)
						}
						p.Send(frame)
					}
					for {
						f, err := p.NextOf(wire.TypeRequest, wire.TypeClose)
						if err != nil {
							return
						}
						if f.Type == wire.TypeClose {
							reason, _, _ := wire.ParseClose(f.Body)
							closed <- reason
							return
						}
						p.Send(wirepeer.Reply(f.ID, f.Body[20-wire.HeaderSize+12:]))
					}
				})
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.FlowControlWindows(64<<10, 128<<10))
				st := open(t, context.Background(), c, "Chat.Talk")
				defer st.Close()
				close(goOn)
				synctest.Wait() // nothing is received before all has arrived
				var err error
				for err == nil {
					_, err = st.Recv()
				}
				if test.code == anser.OK {
					if err != io.EOF {
						t.Error(err)
					}
				} else if e := fault(t, err); e.Code != test.code || !strings.Contains(e.Message, test.text) || e.Method != "Chat.Talk" || e.Address != "a:1" {
					t.Errorf("%+v, want %s", e, test.code)
				}
				if test.reason != 0 {
					if got := <-closed; got != test.reason {
						t.Errorf("closed with %s, want %s", got, test.reason)
					}
					return
				}
				if _, err := call(context.Background(), c, "Echo.Say", "hello", anser.WithFailMode(anser.Failfast), anser.Timeout(time.Second)); err != nil {
					t.Errorf("the connection does not go on: %v", err)
				}
			})
		})
	}
}

// A client that gets a frame of a stream for a call that is not a stream fails the call, and
// cancels it at the server. Its connection goes on.
func TestStreamFrameForAClientsCall(t *testing.T) {
	for name, frame := range map[string]func(id uint64) []byte{
		"DATA":   func(id uint64) []byte { return dataFrame(id, 0, []byte("x")) },
		"END":    func(id uint64) []byte { return wire.AppendEnd(nil, id, nil) },
		"WINDOW": func(id uint64) []byte { return wire.AppendWindow(nil, id, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				got := make(chan wirepeer.Frame, 10)
				rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
					for requests := 0; ; {
						f, err := p.NextOf(wire.TypeRequest, wire.TypeCancel)
						if err != nil {
							return
						}
						got <- f
						if f.Type == wire.TypeCancel {
							continue
						}
						if requests++; requests == 1 {
							p.Send(frame(f.ID))
						} else {
							p.Send(wirepeer.Reply(f.ID, []byte("x")))
						}
					}
				})
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Attempts(1))
				_, err := call(context.Background(), c, "Echo.Say", "x")
				if e := wantFault(t, err, anser.Internal, anser.OutcomeUnknown); !strings.Contains(e.Message, name+" for a call that is not a stream") {
					t.Error(e)
				}
				if out, err := call(context.Background(), c, "Echo.Say", "x"); out != "x" || err != nil {
					t.Fatal(out, err)
				}
				first, second := <-got, <-got
				if second.Type != wire.TypeCancel || second.ID != first.ID {
					t.Errorf("%s of %d after the REQUEST of %d, want its CANCEL", second.Type, second.ID, first.ID)
				}
			})
		})
	}
}

func repeated(n int, frame []byte) (frames [][]byte) {
	for range n {
		frames = append(frames, frame)
	}
	return frames
}

// endWith is an END frame with a body that is not metadata.
func endWith(body string) []byte {
	return append(wire.AppendHeader(nil, wire.Header{Type: wire.TypeEnd, ID: 1, Length: uint32(len(body))}), body...)
}

// Messages that a client has not received take no more memory than the window of the stream, and a
// client that is still reading one stream can use others on the same connection.
func TestCreditOfAClient(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		returned := make(chan int, 100)
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			f, err := p.NextOf(wire.TypeRequest)
			if err != nil {
				return
			}
			for range 7 {
				p.Send(dataFrame(f.ID, 0, make([]byte, 8<<10-wire.DataSize)))
			}
			for {
				w, err := p.NextOf(wire.TypeWindow)
				if err != nil {
					return
				}
				if w.ID == f.ID {
					returned <- int(w.Body[0]) | int(w.Body[1])<<8 | int(w.Body[2])<<16
				}
			}
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.FlowControlWindows(64<<10, 128<<10))
		st := open(t, context.Background(), c, "Chat.Talk")
		defer st.Close()
		for n := 1; n <= 7; n++ {
			if _, err := st.Recv(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			want := 0
			if n >= 4 { // half of the window, in one frame
				want = 1
			}
			if len(returned) != want {
				t.Errorf("%d WINDOW frames after %d messages, want %d", len(returned), n, want)
			}
		}
		if n := <-returned; n != 32<<10 {
			t.Errorf("%d bytes of credit, want %d", n, 32<<10)
		}
	})
}
