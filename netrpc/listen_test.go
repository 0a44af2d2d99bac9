package netrpc_test

import (
	"net"
	"net/rpc"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/netrpc"
)

// full is a listener that lacks file descriptors for some calls of Accept.
type full struct {
	net.Listener
	left int // owned by the goroutine that accepts
}

func (l *full) Accept() (net.Conn, error) {
	if l.left > 0 {
		l.left--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A server that cannot accept connections tries again, and logs that once.
func TestAcceptErrors(t *testing.T) {
	log := new(testlog.Buffer)
	s := &netrpc.Server{Logger: log.Logger()}
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(&full{l, 4}, nil) }()
	c, err := rpc.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Call("None.Such", 1, new(int)); err == nil || !strings.Contains(err.Error(), "None.Such") {
		t.Error(err)
	}
	c.Close()
	s.Close()
	if err := <-served; err != anser.ErrServerClosed {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "accept failed"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, log)
	}
}
