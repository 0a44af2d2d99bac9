package doctor

import (
	"net"
	"sync"
)

// asking is a connection of an HTTP client, on which nothing is read before something was written.
// Package http prints what a server says first, as those of SSH and Anser do, to the standard
// logger.
type asking struct {
	net.Conn
	asked chan struct{} // closed by the first Write, or Close
	once  sync.Once
}

func newAsking(nc net.Conn) *asking { return &asking{Conn: nc, asked: make(chan struct{})} }

func (a *asking) ask() { a.once.Do(func() { close(a.asked) }) }

// Read implements net.Conn.
func (a *asking) Read(b []byte) (int, error) {
	<-a.asked
	return a.Conn.Read(b)
}

// Write implements net.Conn.
func (a *asking) Write(b []byte) (int, error) {
	a.ask()
	return a.Conn.Write(b)
}

// Close implements net.Conn.
func (a *asking) Close() error {
	a.ask()
	return a.Conn.Close()
}
