package accept_test

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/accept"
)

func TestAfter(t *testing.T) {
	var r accept.Retry
	full := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	for _, want := range []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		if d, ok := r.After(full); d != want || !ok {
			t.Errorf("%v, %v; want %v", d, ok, want)
		}
	}
	for range 10 {
		r.After(full)
	}
	if d, ok := r.After(full); d != 250*time.Millisecond || !ok {
		t.Errorf("%v, %v; want 250 ms at most", d, ok)
	}
	r.After(nil)
	if d, _ := r.After(full); d != 5*time.Millisecond {
		t.Errorf("%v after a success, want the first wait", d)
	}
	for _, err := range []error{net.ErrClosed, io.EOF, &net.OpError{Op: "accept", Err: syscall.EBADF}} {
		if _, ok := r.After(err); ok {
			t.Errorf("%v passes", err)
		}
	}
}
