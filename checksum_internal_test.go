package anser

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// However frames are handed over and taken, what comes out is each of them with its checksum, and at every moment it
// is known how much of them is on its way.
func TestSealer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var all, want []byte
		var ends []int // of the frames, sealed
		s := new(sealer)
		var got []byte
		done := 0 // bytes of all that the sealer has used
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
				// What was taken, without the bytes of checksums.
				taken := len(got)
				for _, end := range ends {
					taken -= max(0, min(4, len(got)-(end-4)))
				}
				if done-s.unsent() != taken {
					t.Fatalf("%d bytes were used and %d of them not sent, but %d were", done, s.unsent(), taken)
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
