//go:build unix

package sysconn

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/testusage"
)

// place is a Room that exists only while bytes are read.
type place struct {
	buf   []byte
	size  int
	waits chan struct{}
}

func (p *place) Free() []byte {
	if p.buf == nil {
		p.buf = make([]byte, p.size)
	}
	return p.buf
}

func (p *place) Waits() {
	p.buf = nil
	select {
	case p.waits <- struct{}{}:
	default:
	}
}

// A Reader has no buffer while it waits, and sees bytes, the deadline, the end of the peer and its
// own close as Read of the connection does.
func TestReader(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		t.Run(network, func(t *testing.T) {
			out, in := connect(t, network, address)
			p := &place{size: 4, waits: make(chan struct{}, 1)}
			r := NewReader(in, p)
			if r == nil {
				t.Fatal("no Reader for a socket")
			}
			go func() {
				<-p.waits
				if !r.Silent() {
					t.Error("not silent before the first byte")
				}
				io.WriteString(out, "abcdef")
			}()
			for _, want := range []string{"abcd", "ef"} {
				n, err := r.Read()
				if err != nil || string(p.buf[:n]) != want {
					t.Fatalf("%q, %v, want %q", p.buf[:n], err, want)
				}
				if silent := r.Silent(); silent != (want == "ef") {
					t.Errorf("silent after %q: %v", want, silent)
				}
			}
			in.SetReadDeadline(time.Unix(1, 0))
			_, err := r.Read()
			_, want := in.Read(make([]byte, 1))
			if !errors.Is(err, os.ErrDeadlineExceeded) || err.Error() != want.Error() {
				t.Errorf("error: %v, want %v", err, want)
			}
			in.SetReadDeadline(time.Time{})
			out.Close()
			if n, err := r.Read(); n != 0 || err != io.EOF {
				t.Errorf("%d bytes, %v at the end", n, err)
			}
			if r.Silent() {
				t.Error("silent at the end")
			}
			in.Close()
			_, err = r.Read()
			_, want = in.Read(make([]byte, 1))
			if !errors.Is(err, net.ErrClosed) || err.Error() != want.Error() {
				t.Errorf("error: %v, want %v", err, want)
			}
		})
	}
	pipe, _ := net.Pipe()
	if NewReader(pipe, new(place)) != nil {
		t.Error("a Reader for a pipe")
	}
}

// A Reader returns the error of a connection that the peer has reset, although Silent has asked the
// socket first. The Reader that reads on after it does so, too.
func TestSilentKeepsTheError(t *testing.T) {
	for _, next := range []bool{false, true} {
		out, in := connect(t, "tcp", "127.0.0.1:0")
		r := NewReader(in, &place{size: 4, waits: make(chan struct{}, 1)})
		out.(*net.TCPConn).SetLinger(0)
		out.Close()
		if !testusage.Soon(func() bool { return !r.Silent() }) {
			t.Fatal("the reset has not arrived")
		}
		if r.Silent() {
			t.Error("silent after a reset")
		}
		if next {
			before := r
			r = NewReader(in, &place{size: 4})
			r.Follow(before)
		}
		if n, err := r.Read(); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("next %v: %d bytes, %v, want %v", next, n, err, syscall.ECONNRESET)
		}
	}
}
