package anser

import (
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// Another caller may find a connection, and read it, while the caller that has made it still enters
// it: the goroutine of the connection must not read then, too.
func TestOneReaderOfANewConnection(t *testing.T) {
	for range 300 {
		h := newHost(new(pool), hostOptions{connectTimeout: time.Minute, handshakeTimeout: time.Minute, maxMessage: 1 << 10}, greetedPipe)
		var wg sync.WaitGroup
		var other *callerHalf
		wg.Go(func() {
			for len(*h.ready.Load()) == 0 {
				runtime.Gosched()
			}
			if c := (*h.ready.Load())[0]; c.role.who.CompareAndSwap(nobodyReads, callerReads) {
				other = c
			}
		})
		h.mu.Lock()
		h.beginLocked()
		h.wg.Add(1)
		h.mu.Unlock()
		h.makeForCaller()
		wg.Wait()
		if other == nil { // so late that the sweep has found the connection unread
			h.close()
			continue
		}
		started := other.role.started
		other.passToReader()
		h.close()
		if started {
			t.Fatal("the goroutine of the connection was started while a caller reads")
		}
	}
}

// greetedPipe dials a server that sends its settings and nothing else.
func greetedPipe(context.Context, string, string) (net.Conn, error) {
	nc, far := net.Pipe()
	go func() {
		defer far.Close()
		p := wirepeer.New(far)
		p.ReadHello()
		p.Send(wirepeer.Hello(wire.DefaultSettings()))
		p.NextOf(wire.TypeClose)
	}()
	return nc, nil
}
