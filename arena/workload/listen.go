package workload

import (
	"context"
	"net"
	"sync"
)

// Listen serves each connection to addr on a goroutine of its own until ctx ends. Then it closes
// them all, waits for serve to return and returns nil. It is for peers whose framework has no
// server.
func Listen(ctx context.Context, addr string, serve func(net.Conn)) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	var (
		mu    sync.Mutex // guards conns
		conns = make(map[net.Conn]struct{})
		wg    sync.WaitGroup
	)
	stop := context.AfterFunc(ctx, func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for c := range conns {
			c.Close()
		}
	})
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			wg.Wait()
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		mu.Lock()
		conns[c] = struct{}{}
		if ctx.Err() != nil { // it was accepted before the others were closed and added after
			c.Close()
		}
		mu.Unlock()
		wg.Go(func() {
			serve(c)
			mu.Lock()
			delete(conns, c)
			mu.Unlock()
			c.Close()
		})
	}
}
