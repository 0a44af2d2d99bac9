//go:build unix

package sysconn_test

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/anser-rpc/anser/internal/sysconn"
)

// What is written in two pieces at once arrives in their order, however much of it the socket takes
// at a time, and with a limit of what is not sent yet.
func TestTryWriteBoth(t *testing.T) {
	for _, limit := range []int{0, 64 << 10} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		w := sysconn.NewWriter(out)
		w.LimitUnsent(limit)
		all := make([]byte, 32<<20)
		for i := range all {
			all[i] = byte(i >> 10)
		}
		left, got := all, make([]byte, len(all))
		read := 0
		for len(left) > 0 {
			head := left[:min(16, len(left))]
			n, err := w.TryWriteBoth(head, left[len(head):])
			if err != nil {
				t.Fatal(err)
			}
			if n == len(all) {
				t.Fatal("the socket has taken everything: does this test still write in pieces?")
			}
			if left = left[n:]; n == 0 { // the socket is full
				n, err := in.Read(got[read:min(read+1<<20, len(got))])
				if err != nil {
					t.Fatal(err)
				}
				read += n
			}
		}
		if _, err := io.ReadFull(in, got[read:]); err != nil || !bytes.Equal(got, all) {
			t.Errorf("limit %d: other bytes than were written, %v", limit, err)
		}
		w.LimitUnsent(0)
	}
}
