package anser

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// However frames are passed in and taken out, each of them comes out with its checksum, and at
// every moment it is known how many of their bytes are pending.
func TestSealer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var all, want []byte
		var ends []int // of the frames, sealed
		s := new(checksumWriter)
		var got []byte
		done := 0 // bytes of all frames that the sealer has used
		for range 1 + rnd.IntN(4) {
			var frames []byte
			for range 1 + rnd.IntN(6) {
				size := rnd.IntN(300)
				if rnd.IntN(6) == 0 {
					size = loadBuffer - 60 + rnd.IntN(120)
				}
				if rnd.IntN(20) == 0 {
					size *= 5
				}
				body := make([]byte, size)
				for i := range body {
					body[i] = byte(rnd.Uint32())
				}
				at := len(frames)
				frames = append(wire.AppendHeader(frames, wire.Header{Length: uint32(size), Type: wire.TypeData, ID: rnd.Uint64()}), body...)
				from := len(want)
				want = wire.AppendChecksum(append(want, frames[at:]...), from)
				ends = append(ends, len(want))
			}
			all = append(all, frames...)
			for {
				out, used := s.rest(frames)
				frames = frames[used:]
				done += used
				if len(out) == 0 {
					break
				}
				n := rnd.IntN(len(out) + 1)
				if rnd.IntN(3) == 0 {
					n = len(out)
				}
				got = append(got, out[:n]...)
				s.took(n)
				// The bytes taken, without checksums.
				taken := len(got)
				for _, end := range ends {
					taken -= max(0, min(4, len(got)-(end-4)))
				}
				if done-s.pendingBytes() != taken {
					t.Fatalf("%d bytes were used and %d of them not sent, but %d were", done, s.pendingBytes(), taken)
				}
				due := done
				for i, end := range ends {
					if end-4*(i+1) <= done {
						due += 4
					}
				}
				if len(got) < due && !s.holds() {
					t.Fatalf("%d of %d bytes were taken, and the sealer holds nothing", len(got), due)
				}
			}
			if s.buf != nil || s.holds() {
				t.Fatal("a buffer is left")
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatal("other bytes than each frame with its checksum")
		}
		if done != len(all) {
			t.Fatalf("%d of %d bytes were used", done, len(all))
		}
	}
}

// BenchmarkChecksums measures what checksums cost per frame: when it is sent, where it is copied
// too, and when it is received.
func BenchmarkChecksums(b *testing.B) {
	for _, size := range []int{64, 600, 16 << 10, 1 << 20} {
		frame := append(wire.AppendHeader(nil, wire.Header{Length: uint32(size), Type: wire.TypeReply, ID: 1}), make([]byte, size)...)
		b.Run(fmt.Sprintf("out/%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			s := new(checksumWriter)
			for b.Loop() {
				rest := frame
				for {
					out, used := s.rest(rest)
					if rest = rest[used:]; len(out) == 0 {
						break
					}
					s.took(len(out))
				}
			}
		})
		b.Run(fmt.Sprintf("in/%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			rd := reader{buf: wire.AppendChecksum(bytes.Clone(frame), 0), maxFrame: 2 << 20}
			rd.expectChecksums()
			for b.Loop() {
				rd.r, rd.w = 0, len(rd.buf)
				if _, _, ok, err := rd.next(); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
		b.Run(fmt.Sprintf("in, none/%d", size), func(b *testing.B) {
			rd := reader{buf: frame, maxFrame: 2 << 20}
			for b.Loop() {
				rd.r, rd.w = 0, len(rd.buf)
				if _, _, ok, err := rd.next(); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
