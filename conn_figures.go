package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// connFigures are what a connection has done so far, and what it must still do.
type connFigures struct {
	sent, received uint64 // bytes
	waiting        int    // bytes to write
	credit         int64  // bytes that may be sent on streams
	quiet          time.Duration
}

func (c *conn) figuresLocked(now mono.Time) connFigures {
	f := connFigures{sent: c.handed + c.beside, received: uint64(c.progress.received.Load()), waiting: len(c.buf), credit: c.streams.credit}
	if last := c.progress.lastRead.Load(); last != 0 {
		f.quiet = max(now.Sub(last), 0)
	}
	return f
}
