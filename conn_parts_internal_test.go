package anser

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/membudget"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// nextWhole returns the next frame but PARTs, which it hands to the reader.
func nextWhole(rd *reader) (h wire.Header, body []byte, err error) {
	for {
		h, body, ok, err := rd.next()
		switch {
		case err != nil:
			return h, nil, err
		case !ok:
			err = rd.fill()
		case h.Type != wire.TypePart:
			return h, body, nil
		case rd.parts != nil:
			err = rd.takePart(h, body)
		default:
			begun, e := rd.firstPart(h, body)
			if err = e; err == nil {
				err = rd.beginParts(begun, body, true)
			}
		}
		if err != nil {
			return h, nil, err
		}
	}
}

// replyFrame is a REPLY with a body of size bytes, all of which depend on the id.
func replyFrame(id uint64, size int) []byte {
	frame := wire.AppendHeader(nil, wire.Header{Type: wire.TypeReply, Length: uint32(size), ID: id})
	return append(frame, bytes.Repeat([]byte{byte(id)}, size)...)
}

// randomParts cuts a frame into PARTs of random sizes.
func randomParts(r *rand.Rand, frame []byte) [][]byte {
	sizes := []int{wire.MinFirstPart + r.IntN(wire.MaxFirstPart-wire.MinFirstPart+1)}
	most := []int{wire.MinPart, 20_000, 200_000}[r.IntN(3)]
	for left := len(frame) - sizes[0]; left > 2*wire.MinPart; {
		n := wire.MinPart + r.IntN(min(most, left-wire.MinPart))
		sizes, left = append(sizes, n), left-n
	}
	return wirepeer.Parts(frame, sizes...)
}

// Large frames in PARTs come out of the reader as they went in, with other frames of all sizes
// between their PARTs, however the bytes arrive.
func TestFramesInParts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	others := []int{0, 10, 1000, largeFrame, 70_000, 300_000}
	for _, sealed := range []bool{false, true} {
		for _, most := range []int{700, 5000, 100_000, 1 << 20} {
			t.Run(fmt.Sprintf("checksums=%v/piece=%d", sealed, most), func(t *testing.T) {
				var in []byte
				var want []uint64 // ids in the order in which the frames are complete
				sizes := make(map[uint64]int)
				id := uint64(0)
				whole := func(size int) []byte {
					id++
					sizes[id] = size
					return replyFrame(id, size)
				}
				for n := range 12 {
					early := n%4 == 3
					parts := randomParts(random, whole(wire.MinParted+random.IntN(600_000)))
					own := id
					if early {
						parts = append(parts[:1+random.IntN(len(parts)-1)], wire.AppendPartHead(nil, own, 0))
					}
					for _, part := range parts {
						in = append(in, part...)
						for range random.IntN(3) {
							if len(parts) < 50 || random.IntN(20) == 0 {
								in = append(in, whole(others[random.IntN(len(others))])...)
								want = append(want, id)
							}
						}
					}
					if !early {
						// It is complete with its last PART, before what follows.
						at := len(want)
						for tail := in; at > 0; at-- {
							last := sizes[want[at-1]] + wire.HeaderSize
							if !bytes.HasSuffix(tail, replyFrame(want[at-1], sizes[want[at-1]])) {
								break
							}
							tail = tail[:len(tail)-last]
						}
						want = slices.Insert(want, at, own)
					}
				}
				if sealed {
					in = wirepeer.Seal(in)
				}
				rd := readerOf(&pieces{left: in, piece: func() int { return random.IntN(most) + 1 }}, 4<<20)
				if sealed {
					rd.expectChecksums()
				}
				kept := make(map[uint64][]byte)
				for _, id := range want {
					h, body, err := nextWhole(rd)
					if err != nil || h.ID != id || !bytes.Equal(body, bytes.Repeat([]byte{byte(id)}, sizes[id])) {
						t.Fatalf("frame %d: id %d and %d bytes, %v; want %d bytes", id, h.ID, len(body), err, sizes[id])
					}
					if rd.isLarge() {
						if buf := rd.takeLarge(); &buf[wire.HeaderSize] != &body[0] {
							t.Fatalf("frame %d is not in the buffer that belongs to it", id)
						}
						kept[id] = body
					}
				}
				if h, _, err := nextWhole(rd); err != io.EOF {
					t.Errorf("%+v, %v after the last frame", h, err)
				}
				for id, body := range kept {
					if !bytes.Equal(body, bytes.Repeat([]byte{byte(id)}, sizes[id])) {
						t.Errorf("frame %d was overwritten", id)
					}
				}
			})
		}
	}
}

// Frames that come together with the last PART of a large one are read from their own place: the
// buffer of the large frame is not theirs.
func TestFramesAfterTheLastPart(t *testing.T) {
	large := replyFrame(1, wire.MinParted)
	parts := wirepeer.Parts(large, wire.MaxFirstPart)
	in := slices.Concat(slices.Concat(parts...), replyFrame(2, 100), replyFrame(3, 200))
	rd := readerOf(&pieces{left: in, piece: func() int { return 1 << 20 }}, 1<<20)
	var bodies [][]byte
	for id := uint64(1); id <= 3; id++ {
		h, body, err := nextWhole(rd)
		if err != nil || h.ID != id {
			t.Fatalf("%d, %v; want %d", h.ID, err, id)
		}
		if rd.isLarge() != (id == 1) {
			t.Errorf("frame %d has a buffer of its own: %v", id, rd.isLarge())
		}
		bodies = append(bodies, body)
	}
	if !rd.large.returned || len(rd.takeLarge()) == 0 {
		t.Error("the buffer of the large frame is lost, although nothing was read since")
	}
	for i, size := range []int{wire.MinParted, 100, 200} {
		if !bytes.Equal(bodies[i], bytes.Repeat([]byte{byte(i + 1)}, size)) {
			t.Errorf("frame %d was overwritten", i+1)
		}
	}
}

// A peer that announces a large frame in PARTs takes memory only as its bytes arrive. The memory is
// counted, and given back however the frame ends.
func TestAnnouncedPartsTakeLittleMemory(t *testing.T) {
	const size = 64 << 20
	frame := append(wire.AppendHeader(nil, wire.Header{Type: wire.TypeRequest, Length: size, ID: 1}), make([]byte, size)...)
	for _, end := range []string{"whole", "early", "dropped", "released"} {
		t.Run(end, func(t *testing.T) {
			parts := wirepeer.Parts(frame, wire.MinFirstPart, 50_000, 1<<20, 5<<20, 20<<20)
			if end == "early" {
				parts[len(parts)-1] = wire.AppendPartHead(nil, 1, 0)
			}
			var budget membudget.Budget
			budget.SetLimit(1 << 30)
			arrived := wire.MinFirstPart
			rd := readerOf(&pieces{left: slices.Concat(parts...), piece: func() int { return arrived }}, size)
			rd.memory = &budget
			for begun := false; !begun || rd.parts != nil && rd.parts.Left > 0; {
				h, body, ok, err := rd.next()
				switch {
				case err != nil:
				case !ok:
					err = rd.fill()
				case rd.parts == nil:
					begun = true
					first, e := rd.firstPart(h, body)
					if err = e; err == nil {
						err = rd.beginParts(first, body, true)
					}
				default:
					err = rd.takePart(h, body)
				}
				if err != nil {
					t.Fatal(err)
				}
				p := rd.parts
				if p == nil {
					continue
				}
				if len(p.buf) > bufpool.FrameSize(max(firstLarge, largeGrowth*p.n)) {
					t.Fatalf("a buffer of %d bytes when %d have arrived", len(p.buf), p.n)
				}
				if held := int(budget.Held()); held != len(p.buf) {
					t.Fatalf("%d bytes are counted for a buffer of %d", held, len(p.buf))
				}
				arrived = max(wire.MinFirstPart, p.n/3)
			}
			switch end {
			case "whole":
				if h, body, err := nextWhole(rd); h.Length != size || len(body) != size || err != nil {
					t.Fatal(h, err)
				}
				rd.takeLarge()
			case "early":
				if rd.parts != nil {
					t.Error("the frame goes on")
				}
			case "dropped":
				rd.dropParts()
			case "released":
				rd.release()
			}
			if budget.Held() != 0 {
				t.Errorf("%d bytes are counted", budget.Held())
			}
		})
	}
}

// A REQUEST in PARTs for which there is no memory can be dropped, whatever part of it has arrived,
// and other frames between its PARTs arrive.
func TestPartsWithoutMemory(t *testing.T) {
	const size = 8 << 20
	frame := append(wire.AppendHeader(nil, wire.Header{Type: wire.TypeRequest, Length: size, ID: 1}), make([]byte, size)...)
	for _, limit := range []int64{0, 200 << 10, 2 << 20} {
		for _, sealed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/checksums=%v", limit, sealed), func(t *testing.T) {
				var in []byte
				parts := wirepeer.Parts(frame, 60_000, 1<<20, 10_000, 3<<20, 20_000, 30_000)
				for i, part := range parts {
					in = append(in, part...)
					in = append(in, replyFrame(uint64(i+2), 100)...)
				}
				if sealed {
					in = wirepeer.Seal(in)
				}
				var budget membudget.Budget
				budget.SetLimit(limit)
				rd := readerOf(&pieces{left: in, piece: func() int { return 30_000 }}, size)
				rd.memory = &budget
				if sealed {
					rd.expectChecksums()
				}
				refused := 0
				for i := range parts {
					h, _, err := nextWhole(rd)
					for err == errNoMemory {
						refused++
						rd.dropParts()
						h, _, err = nextWhole(rd)
					}
					if err != nil || h.ID != uint64(i+2) {
						t.Fatalf("%+v, %v; want id %d", h, err, i+2)
					}
				}
				if refused != 1 || rd.parts != nil || budget.Held() != 0 {
					t.Errorf("refused %d times, in PARTs: %v, %d bytes are counted", refused, rd.parts != nil, budget.Held())
				}
				if h, _, err := nextWhole(rd); err != io.EOF {
					t.Errorf("%+v, %v after the last frame", h, err)
				}
			})
		}
	}
}

// A flipped bit in any PART of a connection with checksums is found, also where the bytes are read
// into place.
func TestDamagedPart(t *testing.T) {
	parts := wirepeer.Parts(replyFrame(1, 400_000), 1000, 100_000, 2000, 200_000)
	for damaged := range parts {
		var in []byte
		for i, part := range parts {
			part = wirepeer.Seal(part)
			if i == damaged {
				part[len(part)-100] ^= 4
			}
			in = append(in, part...)
		}
		rd := readerOf(&pieces{left: in, piece: func() int { return 1 << 20 }}, 1<<20)
		rd.expectChecksums()
		_, _, err := nextWhole(rd)
		if e, ok := err.(*wire.Error); !ok || e.Reason != wire.BadChecksum {
			t.Errorf("PART %d is damaged: %v", damaged, err)
		}
	}
}

// FuzzFramesInParts reads any bytes: which frames come out does not depend on how the bytes arrive,
// and nothing is held in the end.
func FuzzFramesInParts(f *testing.F) {
	frame := replyFrame(1, wire.MinParted)
	good := wirepeer.Parts(frame, 1000, 2000)
	f.Add(slices.Concat(good...), uint16(1), uint16(3000), false)
	f.Add(slices.Concat(good[0], replyFrame(2, 10), good[1], replyFrame(3, 5000), good[2], replyFrame(4, 0)), uint16(100), uint16(9), true)
	f.Add(slices.Concat(good[0], good[1], wire.AppendPartHead(nil, 1, 0), good[0]), uint16(5000), uint16(5), false)
	f.Add(slices.Concat(good[0], good[0]), uint16(77), uint16(1), false)
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16, sealed bool) {
		if len(in) > 1<<18 {
			return
		}
		if sealed {
			in = wirepeer.Seal(in)
		}
		type got struct {
			h   wire.Header
			sum uint32
		}
		read := func(sizes ...int) (list []got, verdict string) {
			var budget membudget.Budget
			budget.SetLimit(1 << 30)
			i := 0
			rd := readerOf(&pieces{left: in, piece: func() int { i++; return sizes[i%len(sizes)] }}, 1<<20)
			rd.memory = &budget
			if sealed {
				rd.expectChecksums()
			}
			defer func() {
				rd.release()
				if budget.Held() != 0 {
					t.Fatalf("%d bytes are counted in the end", budget.Held())
				}
			}()
			for {
				h, body, err := nextWhole(rd)
				if err != nil {
					return list, err.Error()
				}
				list = append(list, got{h, wire.UpdateChecksum(0, body)})
			}
		}
		whole, verdict := read(1 << 20)
		inPieces, again := read(int(a)+1, int(b)+1)
		if !slices.Equal(whole, inPieces) {
			t.Fatalf("%+v, in pieces %+v", whole, inPieces)
		}
		if ended := "the connection ended inside a frame"; verdict != again && !bytes.Contains([]byte(verdict+again), []byte(ended)) {
			t.Fatalf("%s; in pieces %s", verdict, again)
		}
	})
}
