package main

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// echoThrough starts a server that sends back what it gets, and a proxy before it. It returns the
// proxy and a connection that passes it.
func echoThrough(t *testing.T, w weather) (*proxy, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				io.Copy(nc, nc)
				nc.Close()
			})
		}
	})
	x := &proxy{host: "127.0.0.1", open: make(map[net.Conn]bool)}
	x.change(&w)
	t.Cleanup(func() {
		l.Close()
		x.close()
		serving.Wait()
	})
	door, err := x.forward(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", door)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return x, nc.(*net.TCPConn)
}

// exchange sends data to an echo and returns what comes back until the end, and the error that
// ended it. Of a reset the system tells once, to the side that asks first, be it the one that
// reads or the one that writes.
func exchange(nc *net.TCPConn, data []byte) ([]byte, error) {
	var sending sync.WaitGroup
	var sent error
	sending.Go(func() {
		if _, sent = nc.Write(data); sent == nil {
			nc.CloseWrite()
		}
	})
	var got bytes.Buffer
	_, err := io.Copy(&got, nc)
	sending.Wait()
	return got.Bytes(), errors.Join(err, sent)
}

func TestProxyKeepsBytes(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	for name, w := range map[string]weather{
		"fair":   {},
		"single": {Single: true},
		"rate":   {Rate: [2]int{1 << 20, 0}},
		"delay":  {Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			x, nc := echoThrough(t, w)
			began := time.Now()
			got, err := exchange(nc, data)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back of %d, or others: %v", len(got), len(data), err)
			}
			took, p := time.Since(began), x.passed()
			if p.Bytes != 2*int64(len(data)) || p.Conns != 1 || p.Cuts != 0 || p.Flips != 0 {
				t.Errorf("%+v", p)
			}
			if w.Delay > 0 && (took < 20*time.Millisecond || p.Delays[0] < 10*time.Millisecond || p.Delays[1] < 10*time.Millisecond) {
				t.Errorf("it took %v, %+v", took, p)
			}
			if w.Rate[0] > 0 && took < 10*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestProxyFlips(t *testing.T) {
	x, nc := echoThrough(t, weather{Flip: 1000})
	data := make([]byte, 100_000)
	got, err := exchange(nc, data)
	if err != nil || len(got) != len(data) {
		t.Fatalf("%d bytes came back of %d: %v", len(got), len(data), err)
	}
	ones := 0
	for _, b := range got {
		ones += bits.OnesCount8(b)
	}
	// Two flips may meet in one bit.
	if p := x.passed(); p.Flips == 0 || ones == 0 || int64(ones) > p.Flips || (p.Flips-int64(ones))%2 != 0 {
		t.Errorf("%d bits differ, %+v", ones, p)
	}
}

func TestProxyCuts(t *testing.T) {
	x, nc := echoThrough(t, weather{Cut: 1000})
	data := make([]byte, 1_000_000)
	got, err := exchange(nc, data)
	if len(got) >= len(data) || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes came back of %d: %v, want a reset", len(got), len(data), err)
	}
	if p := x.passed(); p.Cuts == 0 {
		t.Errorf("%+v", p)
	}
}
