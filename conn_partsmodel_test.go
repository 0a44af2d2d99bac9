package anser_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// partsModel is a client that makes small and large calls in any order, cancels some of them, and
// sends one large request at a time in PARTs. The payload of a call consists of the byte of its id.
type partsModel struct {
	*wirepeer.Peer
	random *rand.Rand
	id     uint64   // of the last call
	open   []uint64 // calls that may be cancelled
	part   uint64   // id of the frame in PARTs
	parts  [][]byte // the PARTs that are not sent yet

	mu    sync.Mutex // guards the fields below
	sizes map[uint64]int
	good  int  // replies
	over  bool // the client closes the connection, perhaps inside a frame
}

// request returns the REQUEST of a new call with size bytes.
func (m *partsModel) request(method uint32, size int) []byte {
	m.id++
	m.mu.Lock()
	m.sizes[m.id] = size
	m.mu.Unlock()
	return wirepeer.Request(m.id, method, bytes.Repeat([]byte{byte(m.id)}, size))
}

// whole makes a call whose request is sent whole.
func (m *partsModel) whole(method uint32, size int) []byte {
	frame := m.request(method, size)
	m.open = append(m.open, m.id)
	return frame
}

// step returns what the client does next.
func (m *partsModel) step() []byte {
	r := m.random
	method := 1 + r.Uint32N(3)
	switch r.IntN(8) {
	case 0:
		return m.whole(method, r.IntN(2000))
	case 1:
		return m.whole(method, r.IntN(60_000))
	case 2:
		return m.whole(method, r.IntN(1<<20))
	case 3:
		if len(m.open) > 0 {
			return wire.AppendCancel(nil, m.open[r.IntN(len(m.open))])
		}
	case 4:
		if m.parts != nil && r.IntN(3) == 0 {
			return wire.AppendCancel(nil, m.part)
		}
		if m.parts != nil && r.IntN(3) == 0 {
			m.parts = nil
			return wire.AppendPartHead(nil, m.part, 0)
		}
	}
	if m.parts == nil {
		frame := m.request(method, 125_000+r.IntN(900_000))
		first := wire.MinFirstPart + r.IntN(wire.MaxFirstPart-wire.MinFirstPart+1)
		m.part, m.parts = m.id, wirepeer.Parts(frame, first, wire.MinPart+r.IntN(20_000), wire.MinPart+r.IntN(10), wire.MinPart+r.IntN(30_000))
	}
	next := m.parts[0]
	if m.parts = m.parts[1:]; len(m.parts) == 0 {
		m.parts, m.open = nil, append(m.open, m.part)
	}
	return next
}

// send writes frames, often in pieces.
func (m *partsModel) send(frames []byte) error {
	if m.Sealed {
		frames = wirepeer.Seal(frames)
	}
	for len(frames) > 0 {
		n := len(frames)
		if m.random.IntN(3) > 0 {
			n = min(n, []int{1, 9, 15, 20, 70, 5000, 70_000}[m.random.IntN(7)])
		}
		if _, err := m.Write(frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
		if m.random.IntN(2) == 0 {
			synctest.Wait()
		}
	}
	return nil
}

// listen checks the replies until the end of the connection, which is the client's own.
func (m *partsModel) listen(t *testing.T) {
	large := make(map[uint64][]byte)
	for {
		f, err := m.Next()
		if err != nil {
			return
		}
		switch f.Type {
		case wire.TypeClose:
			m.mu.Lock()
			if reason, text, _ := wire.ParseClose(f.Body); !m.over {
				t.Errorf("closed with %s: %s", reason, text)
			}
			m.mu.Unlock()
		case wire.TypeReply:
			m.check(t, f.ID, f.Flags, f.Body)
		case wire.TypePart:
			whole := append(large[f.ID], f.Body...)
			large[f.ID] = whole
			h, err := wire.ParseHeader(whole)
			if len(f.Body) == 0 {
				delete(large, f.ID)
			} else if len(whole) == wire.HeaderSize+int(h.Length) || err != nil {
				m.check(t, f.ID, h.Flags, whole[wire.HeaderSize:])
				delete(large, f.ID)
			}
		}
	}
}

// check checks the body of a REPLY.
func (m *partsModel) check(t *testing.T, id uint64, flags wire.Flags, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.good++
	r, err := wire.ParseReply(flags, body)
	if want := bytes.Repeat([]byte{byte(id)}, m.sizes[id]); err != nil || !bytes.Equal(r.Payload, want) {
		t.Errorf("the reply %d has %d bytes, or others than were sent; want %d; %v", id, len(r.Payload), len(want), err)
	}
}

// Whatever a client does within the rules, with little memory at the server or enough, and however
// its bytes arrive: it gets right replies, keeps its connection, and leaves nothing behind.
func TestPartsModel(t *testing.T) {
	good := 0
	for seed := range uint64(100) {
		partsBubble(t, func(t *testing.T, network *ansertest.Network) {
			r := rand.New(rand.NewPCG(seed, 9))
			s := anser.NewServer(silent, anser.MaxMessage(1<<20), anser.MaxMemory(4<<20))
			anser.Handle(s, "Echo.Say", echo)
			anser.Handle(s, "Echo.Apart", echo, anser.Concurrent())
			anser.Handle(s, "Echo.Wait", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}, anser.Concurrent())
			run(t, s, network.Listen("a:1"))
			p, _ := partsPeer(t, network, r.IntN(2) == 0, r.IntN(2) == 0)
			m := &partsModel{Peer: p, random: r, sizes: make(map[uint64]int)}
			m.Send(slices.Concat(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Apart"), wire.AppendMethod(nil, 3, "Echo.Wait")))
			var listening sync.WaitGroup
			listening.Go(func() { m.listen(t) })
			for range r.IntN(80) { // they hold most of the memory, or more
				m.send(m.whole(3, 60_000))
			}
			for range 60 {
				if err := m.send(m.step()); err != nil {
					t.Error(err)
					break
				}
			}
			synctest.Wait()
			m.mu.Lock()
			m.over = true
			m.mu.Unlock()
			p.Close()
			listening.Wait()
			time.Sleep(time.Second)
			if st := s.Stats(); st.Memory != 0 || st.InFlight != 0 || st.Panics != 0 || st.Conns != 0 {
				t.Errorf("%+v", st)
			}
			good += m.good
		})
		if t.Failed() {
			t.Fatalf("with the seed %d", seed)
		}
	}
	if good == 0 {
		t.Error("no call had a reply")
	}
}
