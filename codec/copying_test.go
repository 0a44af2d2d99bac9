package codec_test

import (
	"bytes"
	"testing"

	"github.com/anser-rpc/anser/codec"
)

// Large messages are copied in pieces, with the same result as small ones: complete, and without
// shared memory.
func TestRawLargeMessages(t *testing.T) {
	const piece = 64 << 10
	for _, n := range []int{piece - 1, piece, piece + 1, 2 * piece, 5*piece + 7} {
		msg := make([]byte, n)
		for i := range msg {
			msg[i] = byte(i * 7 >> 3)
		}
		for _, room := range []int{0, n - 1, n, 2 * n} {
			dst := append(make([]byte, 0, 6+room), "before"...)
			out, err := codec.Raw{}.Append(dst, &msg)
			if err != nil {
				t.Fatal(err)
			}
			if string(out[:6]) != "before" || string(dst) != "before" || !bytes.Equal(out[6:], msg) {
				t.Errorf("Append of %d bytes with room for %d came out wrong", n, room)
			}
			if room >= n && &out[0] != &dst[0] {
				t.Errorf("Append of %d bytes moved dst, which has room for %d", n, room)
			}
			got := make([]byte, 3, 3+room)
			memory := &got[0]
			if err := (codec.Raw{}).Unmarshal(msg, &got); err != nil || !bytes.Equal(got, msg) {
				t.Errorf("Unmarshal of %d bytes into room for %d came out wrong: %v", n, 3+room, err)
			}
			if 3+room >= n && &got[0] != memory {
				t.Errorf("Unmarshal of %d bytes did not use the room for %d", n, 3+room)
			}
			if &got[0] == &msg[0] {
				t.Error("Unmarshal kept the data")
			}
		}
	}
}
