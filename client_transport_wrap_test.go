package anser_test

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
)

// writer counts the writes that callers make themselves.
type writer struct {
	net.Conn
	tries *atomic.Int32
}

func (w *writer) TryWrite(p []byte) (int, error) {
	w.tries.Add(1)
	return w.Write(p)
}

// A transport that wraps its connections is given them connected, with the address that was dialed,
// and callers use its TryWrite.
func TestTransportWrap(t *testing.T) {
	address := strings.TrimPrefix(serveNames(t, 1), "tcp://")
	var tries atomic.Int32
	var dialed atomic.Value
	transport := anser.Transport{Scheme: "wrapped", Wrap: func(nc net.Conn, address string) (net.Conn, error) {
		dialed.Store(address)
		return &writer{nc, &tries}, nil
	}}
	c := dial(t, "wrapped://"+address, transport, anser.Conns(1))
	if out := servedBy(t, t.Context(), c, "x"); out != "server 0" {
		t.Errorf("the answer is %q", out)
	}
	if dialed.Load() != address || tries.Load() == 0 {
		t.Errorf("wrapped for %v, and %d writes without blocking", dialed.Load(), tries.Load())
	}
}

// The error of Wrap is that of the call, and ends the connection.
func TestTransportWrapFails(t *testing.T) {
	address := strings.TrimPrefix(serveNames(t, 1), "tcp://")
	var wrapped atomic.Pointer[net.Conn]
	transport := anser.Transport{Scheme: "wrapped", Wrap: func(nc net.Conn, _ string) (net.Conn, error) {
		wrapped.CompareAndSwap(nil, &nc)
		return nil, errors.New("not today")
	}}
	c := dial(t, "wrapped://"+address, transport)
	_, err := call(t.Context(), c, "Echo.Who", "x", anser.WithFailMode(anser.Failfast), anser.Timeout(patience))
	if err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("the error is %v", err)
	}
	if nc := wrapped.Load(); nc == nil {
		t.Error("Wrap was not called")
	} else if _, err := (*nc).Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
}
