package anser

import (
	"bytes"
	"net"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// noted is a reader that tells when it waits.
type noted struct {
	*reader
	waits chan int // bytes of its buffer
}

func (n *noted) Waits() {
	n.reader.Waits()
	n.waits <- len(n.buf)
}

// A reader has no buffer while it waits for a socket, a small one if a frame has begun, and that of
// a load if more than a little of a frame has arrived.
func TestBuffersOfReadersThatWait(t *testing.T) {
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
	rd := &reader{maxFrame: 1 << 20, progress: new(progress)}
	n := &noted{rd, make(chan int, 100)}
	rd.init(in, n)
	if rd.socket == nil {
		t.Skip("this platform has no reads that wait without a buffer")
	}
	frame := make([]byte, 5000)
	for i := range frame {
		frame[i] = byte(i)
	}
	frame = append(wire.AppendHeader(nil, wire.Header{Type: wire.FirstSkippable, Length: uint32(len(frame))}), frame...)
	type got struct {
		body []byte
		err  error
	}
	bodies := make(chan got)
	go func() {
		for {
			_, body, ok, err := rd.next()
			if err == nil && !ok {
				err = rd.fill()
			}
			if err != nil || ok {
				bodies <- got{bytes.Clone(body), err}
			}
			if err != nil {
				return
			}
		}
	}()
	wait := func(want int) {
		t.Helper()
		size := <-n.waits
		for want == 0 && size != 0 { // of the frame before, whose end may have come in pieces
			size = <-n.waits
		}
		if size != want {
			t.Errorf("a buffer of %d bytes while the reader waits, want %d", size, want)
		}
	}
	for _, part := range []struct{ bytes, kept int }{{10, idleBuffer}, {1400, idleBuffer}, {3000, loadBuffer}} {
		wait(0)
		out.Write(frame[:part.bytes])
		wait(part.kept)
		out.Write(frame[part.bytes:])
		if g := <-bodies; !bytes.Equal(g.body, frame[wire.HeaderSize:]) || g.err != nil {
			t.Fatalf("the frame came out wrong: %v", g.err)
		}
	}
	wait(0)
	out.Close()
	if g := <-bodies; g.err == nil {
		t.Error("no error at the end")
	}
}
