package main

import (
	"bytes"
	"net"
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) { return appendMessage(nil, m) })
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram()) }

// Calls end with their connection.
func TestConnectionEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			c.Close()
		}
	}()
	c, err := dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.Add(t.Context(), &workload.AddRequest{}); err == nil {
			t.Error("a reply from a connection that is closed")
		}
	}
}

// No bytes of a peer make the framing fail otherwise than with an error.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x08\x01"))
	f.Add(bytes.Repeat([]byte{0xff}, 70<<10))
	f.Fuzz(func(t *testing.T, b []byte) {
		err := readFrames(bytes.NewReader(b), func(header, body []byte) error {
			return new(workload.AddRequest).UnmarshalVT(body)
		}, func() error { return nil })
		if err == nil {
			t.Error("the frames have no end")
		}
	})
}
