package anser_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// The server of the model.
const (
	modelStreams = 4
	modelMessage = 50_000
	modelWindow  = 32 << 10
	modelConn    = 64 << 10
	modelSink    = 1 // receives everything and ends with success when the client does
	modelIdle    = 2 // receives nothing
)

// modelStream is an open stream as docs/protocol.md §11 describes it.
type modelStream struct {
	idle    bool
	ended   bool // ended by the client
	inside  bool // inside a message
	message int  // bytes received of the current message
	unread  int64
	credit  int64 // credit of the client
	granted int64 // credit granted to the server
}

// streamModel predicts what a server answers to the frames of a client that sends them one by one.
type streamModel struct {
	open    map[uint64]*modelStream
	last    uint64
	wasted  int
	credit  int64 // credit of the client for the connection
	granted int64 // credit granted to the server
}

// modelAnswer is an expected frame, without the rest of its content.
type modelAnswer struct {
	typ    wire.Type
	id     uint64
	code   wire.Code   // of an ERROR
	reason wire.Reason // of a CLOSE
}

func closing(r wire.Reason) []modelAnswer { return []modelAnswer{{typ: wire.TypeClose, reason: r}} }

func failing(id uint64, c wire.Code) []modelAnswer {
	return []modelAnswer{{typ: wire.TypeError, id: id, code: c}}
}

func (m *streamModel) waste() []modelAnswer {
	if m.wasted++; m.wasted > 100 {
		return closing(wire.Flood)
	}
	return nil
}

// begin opens a stream with a first message, or without one.
func (m *streamModel) begin(id uint64, idle bool) []modelAnswer {
	if id <= m.last {
		return closing(wire.BadID)
	}
	m.last = id
	if len(m.open) >= modelStreams {
		return failing(id, wire.ResourceExhausted)
	}
	m.open[id] = &modelStream{idle: idle, credit: modelWindow, granted: int64(wire.DefaultSettings().StreamWindow)}
	return nil
}

// fail ends a stream that breaks the rules.
func (m *streamModel) fail(id uint64, c wire.Code) []modelAnswer {
	delete(m.open, id)
	return failing(id, c)
}

func (m *streamModel) data(id uint64, more bool, payload int, codec uint8) []modelAnswer {
	n := int64(payload + wire.DataSize)
	if m.credit -= n; m.credit < 0 {
		return closing(wire.FlowControl)
	}
	if payload == 0 && more {
		if over := m.waste(); over != nil {
			return over
		}
	}
	st := m.open[id]
	switch {
	case st == nil && id > m.last:
		return m.waste()
	case st == nil:
		return nil
	}
	if st.credit -= n; st.credit < 0 {
		return closing(wire.FlowControl)
	}
	if st.ended || codec != 1 {
		return m.fail(id, wire.InvalidArgument)
	}
	st.inside = more
	if st.idle {
		st.unread += n
		return nil
	}
	if st.message += payload; st.message > modelMessage {
		return m.fail(id, wire.ResourceExhausted)
	}
	if !more {
		st.message = 0
	}
	return nil
}

func (m *streamModel) end(id uint64) []modelAnswer {
	st := m.open[id]
	switch {
	case st == nil && id > m.last:
		return m.waste()
	case st == nil:
		return nil
	case st.ended || st.inside:
		return m.fail(id, wire.InvalidArgument)
	}
	if st.ended = true; st.idle {
		return nil
	}
	delete(m.open, id)
	return []modelAnswer{{typ: wire.TypeEnd, id: id}}
}

func (m *streamModel) window(id uint64, credit uint32) []modelAnswer {
	st := m.open[id]
	switch {
	case credit > wire.MaxWindow, credit == 0 && id == 0:
		return closing(wire.FlowControl)
	case id == 0:
		if m.granted += int64(credit); m.granted > wire.MaxWindow {
			return closing(wire.FlowControl)
		}
		return nil
	case st == nil && id > m.last:
		return m.waste()
	case st == nil:
		return nil
	case credit == 0:
		return m.fail(id, wire.InvalidArgument)
	}
	if st.granted += int64(credit); st.granted > wire.MaxWindow {
		return closing(wire.FlowControl)
	}
	return nil
}

func (m *streamModel) cancel(id uint64) []modelAnswer {
	if id > m.last || id == 0 {
		return closing(wire.BadID)
	}
	delete(m.open, id)
	return nil
}

// hear takes the credit that the server has returned.
func (m *streamModel) hear(granted map[uint64]int64) {
	for id, n := range granted {
		if id == 0 {
			m.credit += n
		} else if st := m.open[id]; st != nil {
			st.credit += n
		}
		delete(granted, id)
	}
}

// short describes credit that the server should have returned once it is idle, or returns "".
func (m *streamModel) short() string {
	kept := int64(0)
	for id, st := range m.open {
		kept += st.unread
		if !st.idle && !st.ended && st.credit <= modelWindow/2 {
			return fmt.Sprintf("stream %d has %d bytes of credit, although all was read", id, st.credit)
		}
	}
	if m.credit+kept <= modelConn/2 {
		return fmt.Sprintf("the connection has %d bytes of credit, and %d are unread", m.credit, kept)
	}
	return ""
}

// step has the client send the next frame of the script, and returns the answers that the server
// must send.
func (m *streamModel) step(s *script) (frame []byte, want []modelAnswer, ok bool) {
	op, small, n, ok := s.next()
	if !ok {
		return nil, nil, false
	}
	id, size := uint64(small), int(n)*60 // in one piece at most half a window
	switch op % 12 {
	case 0, 1:
		id = m.last + 1
		if n >= 250 { // or the id of an earlier stream, or 0
			id = uint64(small)
		}
		method := modelSink + uint32(n)%2
		return openRequest(id, method, make([]byte, int(small))), m.begin(id, method == modelIdle), true
	case 2, 3:
		frame, want = dataFrame(id, 0, make([]byte, size)), m.dataOf(id, false, size, 1)
	case 4:
		frame, want = dataFrame(id, wire.FlagMore, make([]byte, size)), m.dataOf(id, true, size, 1)
	case 5:
		frame, want = wire.AppendEnd(nil, id, nil), m.endOf(id)
	case 6:
		frame, want = wire.AppendEnd(nil, id, wire.AppendMetadata(nil, []wire.Pair{{Key: "k", Value: "v"}})), m.endOf(id)
	case 7:
		frame, want = wire.AppendWindow(nil, id, uint32(n)), m.window(id, uint32(n))
	case 8:
		frame, want = wire.AppendWindow(nil, id, uint32(n)<<24), m.window(id, uint32(n)<<24)
	case 9:
		frame, want = wire.AppendCancel(nil, id), m.cancel(id)
	case 10:
		frame, want = dataFrame(id, 0, make([]byte, int(n))), m.dataOf(id, false, int(n), 3)
		frame[wire.HeaderSize] = 3 // another codec
	default:
		id = 1 << 40 // was never opened
		frame, want = dataFrame(id, 0, nil), m.dataOf(id, false, 0, 1)
	}
	return frame, want, true
}

// dataOf is data, except for the id 0, which no stream has.
func (m *streamModel) dataOf(id uint64, more bool, payload int, codec uint8) []modelAnswer {
	if id == 0 {
		return closing(wire.BadID)
	}
	return m.data(id, more, payload, codec)
}

func (m *streamModel) endOf(id uint64) []modelAnswer {
	if id == 0 {
		return closing(wire.BadID)
	}
	return m.end(id)
}

// FuzzStreamModel has a client send a sequence of frames that opens, uses and abuses streams. After
// each one the server has answered exactly what the model says, and has returned the credit that it
// must return.
func FuzzStreamModel(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 1, 100, 4, 1, 50, 3, 1, 1, 5, 1, 0})
	f.Add([]byte{0, 3, 1, 2, 1, 250, 2, 1, 250, 2, 1, 250})
	f.Add([]byte{0, 0, 0, 5, 1, 0, 2, 1, 1, 0, 0, 1, 5, 2, 0, 5, 2, 0})
	f.Add([]byte{0, 0, 0, 4, 1, 1, 5, 1, 0, 0, 0, 1, 10, 2, 9, 0, 0, 1, 7, 3, 0})
	f.Add([]byte{0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 9, 1, 0, 0, 0, 0, 8, 0, 127})
	f.Add([]byte{0, 0, 1, 8, 1, 127, 8, 1, 127})
	f.Add(slices.Repeat([]byte{11, 0, 0}, 101))
	f.Add(append([]byte{0, 0, 0}, slices.Repeat([]byte{4, 1, 0}, 101)...))
	f.Add(append([]byte{0, 0, 0}, slices.Repeat([]byte{4, 1, 255}, 5)...))
	f.Add(append([]byte{0, 0, 0}, slices.Repeat([]byte{2, 1, 200}, 30)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 3000 {
			return
		}
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Model.Sink": sink, "Model.Idle": idle},
				anser.MaxStreams(modelStreams), anser.MaxMessage(modelMessage), anser.FlowControlWindows(modelWindow, modelConn))
			p := rawClient(t, network, "a:1")
			defer p.Close()
			p.Send(wire.AppendMethod(nil, modelSink, "Model.Sink"), wire.AppendMethod(nil, modelIdle, "Model.Idle"))
			var heard listener
			go heard.listen(p)
			synctest.Wait()
			m := &streamModel{open: make(map[uint64]*modelStream), credit: modelConn, granted: int64(wire.DefaultSettings().ConnWindow)}
			granted := make(map[uint64]int64)
			steps := script(data)
			for i := 0; ; i++ {
				frame, want, ok := m.step(&steps)
				if !ok {
					break
				}
				if err := p.Send(frame); err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				synctest.Wait()
				frames, ended := heard.take(granted)
				if got := answersIn(t, frames); !slices.Equal(got, want) {
					t.Fatalf("frame %d, % X: the answer is %+v, want %+v", i, frame[:wire.HeaderSize], got, want)
				}
				over := len(want) > 0 && want[0].typ == wire.TypeClose
				if ended != over {
					t.Fatalf("frame %d: the connection has ended: %t, want %t", i, ended, over)
				}
				if over {
					break
				}
				m.hear(granted)
				if short := m.short(); short != "" {
					t.Fatalf("frame %d: %s", i, short)
				}
				if n := s.Stats().Streams; n != int64(len(m.open)) {
					t.Fatalf("frame %d: %d streams are open, want %d", i, n, len(m.open))
				}
			}
			p.Close()
			synctest.Wait()
			if st := s.Stats(); st.Streams != 0 || st.InFlight != 0 || st.Panics != 0 || s.Unread() != 0 {
				t.Errorf("%+v, %d bytes of credit", st, s.Unread())
			}
		})
	})
}

// answersIn returns what the frames are.
func answersIn(t *testing.T, frames []wirepeer.Frame) (list []modelAnswer) {
	for _, f := range frames {
		a := modelAnswer{typ: f.Type, id: f.ID}
		var err error
		switch f.Type {
		case wire.TypeError:
			var e wire.ErrorBody
			e, err = wire.ParseError(f.Flags, f.Body)
			a.code = e.Code
		case wire.TypeClose:
			a.reason, _, err = wire.ParseClose(f.Body)
		}
		if err != nil {
			t.Error(err)
		}
		list = append(list, a)
	}
	return list
}
