package say

import (
	"fmt"
	"net"
	"sync"

	"github.com/anser-rpc/anser/internal/wirepeer"
)

// Idle opens n connections to the address, shakes hands on each and leaves them alone. It returns
// when all of them are there; closing is up to the caller.
func Idle(addr string, n int) ([]net.Conn, error) {
	const dialers = 64
	var wg sync.WaitGroup
	var mu sync.Mutex // guards what follows
	var conns []net.Conn
	var failed error
	left := n
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		return left >= 0 && failed == nil
	}
	for range dialers {
		wg.Go(func() {
			for next() {
				nc, err := net.Dial("tcp", addr)
				if err == nil {
					_, err = wirepeer.New(nc).Handshake()
				}
				mu.Lock()
				if nc != nil {
					conns = append(conns, nc)
				}
				if err != nil && failed == nil {
					failed = fmt.Errorf("connection %d: %w", len(conns), err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return conns, failed
}
