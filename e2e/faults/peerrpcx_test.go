package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	rpcx "github.com/smallnest/rpcx/client"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// rpcx's error for an address without a listener proves that the call was not sent, and so does
// the breaker that opens then.
func TestRPCXNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var attempts atomic.Int64
	x, err := newRPCXCaller(config{Target: address, Timeout: time.Minute, Keepalive: peerKeepalive["rpcx"]}, &attempts)
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	for _, idempotent := range []bool{false, true} {
		open := false
		for range 5 {
			_, err := x.call(t.Context(), idempotent, heldEntry())
			open = open || errors.Is(err, rpcx.ErrBreakerOpen)
			if outcome, code := x.outcome(err); outcome != ledger.NotSent || code != anser.Unavailable {
				t.Errorf("idempotent %v: %v is %s, %s", idempotent, err, outcome, code)
			}
		}
		if !open && !idempotent { // what fails over has opened it in its first call, and returns the first error
			t.Error("the breaker did not open")
		}
	}
	if n := attempts.Load(); n != 0 {
		t.Errorf("%d attempts reached a connection", n)
	}
}

// Everything else may have been executed.
func TestRPCXUnknown(t *testing.T) {
	for _, c := range []struct {
		err  error
		code anser.Code
	}{
		{rpcx.ErrShutdown, anser.Unavailable},
		{io.ErrUnexpectedEOF, anser.Unavailable},
		{errors.New("net.OpError: connection reset by peer"), anser.Unavailable},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, anser.Unavailable},
		{rpcx.NewServiceError("rpcx: can't find method Set"), anser.Unknown},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), anser.DeadlineExceeded},
	} {
		if outcome, code := new(rpcxCaller).outcome(c.err); outcome != ledger.Unknown || code != c.code {
			t.Errorf("%v is %s, %s, want unknown, %s", c.err, outcome, code, c.code)
		}
	}
}
