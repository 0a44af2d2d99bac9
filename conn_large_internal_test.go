package anser

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/membudget"
	"github.com/anser-rpc/anser/wire"
)

// pieces is a connection from which each read returns some of the bytes, at most as many as piece
// says.
type pieces struct {
	net.Conn // nil: only Read is used
	left     []byte
	piece    func() int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), max(1, p.piece()))], p.left)
	p.left = p.left[n:]
	return n, nil
}

func readerOf(nc net.Conn, maxFrame uint64) *reader {
	return &reader{nc: nc, buf: make([]byte, idleBuffer), maxFrame: maxFrame, progress: new(progress)}
}

// Frames of all sizes come out of the reader as they went in, however they arrive, and a large one
// can be kept while more are read.
func TestFramesOfAllSizes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, 500, idleBuffer, largeFrame - wire.HeaderSize - 1, largeFrame - wire.HeaderSize, largeFrame, 60 << 10, loadBuffer - wire.HeaderSize, loadBuffer, 200 << 10, 3 << 20}
	for _, sealed := range []bool{false, true} {
		for _, most := range []int{100, 5000, 1 << 20} {
			t.Run(fmt.Sprintf("checksums=%v/piece=%d", sealed, most), func(t *testing.T) {
				var in []byte
				var bodies [][]byte
				for id := range 60 {
					size := sizes[random.IntN(len(sizes))]
					if most < 1<<10 {
						size /= 8
					}
					body := bytes.Repeat([]byte{byte(id + 1)}, size)
					at := len(in)
					in = append(wire.AppendHeader(in, wire.Header{Type: wire.TypeReply, Length: uint32(size), ID: uint64(id + 1)}), body...)
					if sealed {
						in = wire.AppendChecksum(in, at)
					}
					bodies = append(bodies, body)
				}
				rd := readerOf(&pieces{left: in, piece: func() int { return random.IntN(most) + 1 }}, 4<<20)
				if sealed {
					rd.expectChecksums()
				}
				kept := make(map[int][]byte)
				for id, want := range bodies {
					h, body, ok, err := rd.next()
					for !ok && err == nil {
						if err = rd.fill(); err == nil {
							h, body, ok, err = rd.next()
						}
					}
					if err != nil || h.ID != uint64(id+1) || !bytes.Equal(body, want) {
						t.Fatalf("frame %d: id %d and %d bytes, %v; want %d bytes", id, h.ID, len(body), err, len(want))
					}
					if whole := rd.takeLarge(); whole != nil {
						if &whole[wire.HeaderSize] != &body[0] {
							t.Fatalf("frame %d is not in the buffer that belongs to it", id)
						}
						kept[id] = body
					}
				}
				if err := rd.fill(); err != io.EOF {
					t.Errorf("%v after the last frame", err)
				}
				if most > largeFrame && len(kept) == 0 {
					t.Error("no frame had a buffer of its own")
				}
				for id, body := range kept {
					if !bytes.Equal(body, bodies[id]) {
						t.Errorf("frame %d was overwritten", id)
					}
				}
			})
		}
	}
}

// A peer that announces a large frame takes memory only as its bytes arrive, and the memory is
// counted.
func TestAnnouncedFrameTakesLittleMemory(t *testing.T) {
	const size = 64 << 20
	head := wire.AppendHeader(nil, wire.Header{Type: wire.TypeRequest, Length: size, ID: 1})
	var budget membudget.Budget
	budget.SetLimit(1 << 30)
	arrived := begunFrame
	nc := &pieces{left: append(head, make([]byte, size)...), piece: func() int { return arrived }}
	rd := readerOf(nc, size)
	rd.memory = &budget
	largest := 0
	for {
		_, _, ok, err := rd.next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			break
		}
		if err := rd.fill(); err != nil {
			t.Fatal(err)
		}
		have := len(rd.begun())
		if len(rd.large.buf) > bufpool.FrameSize(max(firstLarge, largeGrowth*have)) {
			t.Fatalf("a buffer of %d bytes when %d have arrived", len(rd.large.buf), have)
		}
		if held := int(budget.Held()); held != len(rd.large.buf) {
			t.Fatalf("%d bytes are counted for a buffer of %d", held, len(rd.large.buf))
		}
		largest, arrived = max(largest, len(rd.large.buf)), max(begunFrame, have/3)
	}
	if largest < size {
		t.Errorf("the largest buffer had %d bytes", largest)
	}
	if rd.takeLarge() == nil || budget.Held() != 0 {
		t.Errorf("%d bytes are counted after the frame was taken", budget.Held())
	}
}

// A frame for which there is no memory can be thrown away, whatever part of it has arrived.
func TestLargeFrameWithoutMemory(t *testing.T) {
	for _, limit := range []int64{0, 200 << 10, 2 << 20} {
		for _, sealed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/checksums=%v", limit, sealed), func(t *testing.T) {
				const size = 8 << 20
				in := append(wire.AppendHeader(nil, wire.Header{Type: wire.TypeRequest, Length: size, ID: 1}), make([]byte, size)...)
				if sealed {
					in = wire.AppendChecksum(in, 0)
				}
				total := len(in)
				in = append(in, in[:wire.HeaderSize]...)
				var budget membudget.Budget
				budget.SetLimit(limit)
				rd := readerOf(&pieces{left: in, piece: func() int { return 30_000 }}, size)
				rd.memory = &budget
				if sealed {
					rd.expectChecksums()
				}
				var err error
				for err == nil {
					if _, _, ok, broken := rd.next(); ok || broken != nil {
						t.Fatal(ok, broken)
					}
					err = rd.fill()
				}
				if err != errNoMemory {
					t.Fatal(err)
				}
				begun := len(rd.begun())
				if err := rd.discard(total - begun); err != nil {
					t.Fatal(err)
				}
				if budget.Held() != 0 || len(rd.begun()) != 0 {
					t.Errorf("%d bytes are counted and %d unread", budget.Held(), len(rd.begun()))
				}
				if err := rd.fill(); err != nil || len(rd.begun()) != wire.HeaderSize {
					t.Errorf("%d bytes follow, %v", len(rd.begun()), err)
				}
			})
		}
	}
}
