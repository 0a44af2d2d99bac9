package ansertest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Network is an in-memory network. Addresses are arbitrary strings; those of the form host:port
// can be used with anser.Dial. The zero value is an empty network; all methods are safe for
// concurrent use. Inside a synctest bubble it must have been created in that bubble.
type Network struct {
	// Buffer is the number of bytes that each direction of a connection buffers before writes
	// block; 0 means DefaultBuffer. It must be set before the first use.
	Buffer int

	mu        sync.Mutex // guards the fields below
	listeners map[string]*Listener
}

// DefaultBuffer is the buffer size of a Network whose Buffer is 0.
const DefaultBuffer = 256 << 10

// backlog is the number of connections that wait for Accept before Dial blocks.
const backlog = 128

// Listen returns a listener for the address. It panics if the address is in use: two servers at
// one address are a mistake in the test. Closing the listener frees the address.
func (n *Network) Listen(address string) *Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] != nil {
		panic(fmt.Sprintf("ansertest: %q is in use: close its listener first", address))
	}
	if n.listeners == nil {
		n.listeners = make(map[string]*Listener)
	}
	l := &Listener{network: n, address: Addr(address), queue: make(chan *Conn, backlog), done: make(chan struct{}), conns: make(map[*Conn]struct{})}
	n.listeners[address] = l
	return l
}

// Dial connects to the listener of the address, and ignores network; it can be passed to
// anser.Dialer. As in TCP, the connection is established before it is accepted, and refused
// without a listener. If too many connections wait to be accepted, Dial blocks until ctx is done.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, dialError(address, err)
	}
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, dialError(address, syscall.ECONNREFUSED)
	}
	client, server := pipe(n.Buffer, Addr("client of "+address), l.address)
	if !l.keep(server) {
		return nil, dialError(address, syscall.ECONNREFUSED)
	}
	select {
	case l.queue <- server:
		select {
		case <-l.done: // Close may have emptied the queue before this connection was added
			l.empty()
		default:
		}
		return client, nil
	case <-ctx.Done():
		server.Close()
		return nil, dialError(address, ctx.Err())
	case <-l.done:
		server.Close()
		return nil, dialError(address, syscall.ECONNREFUSED)
	}
}

func dialError(address string, err error) error {
	return &net.OpError{Op: "dial", Net: networkName, Addr: Addr(address), Err: err}
}

// Listener accepts the connections of one address of a Network.
type Listener struct {
	network *Network
	address Addr
	queue   chan *Conn
	done    chan struct{} // closed by Close

	mu     sync.Mutex // guards the fields below
	closed bool
	conns  map[*Conn]struct{} // the open server ends
}

// keep registers the server's end of a connection for Kill. It reports false if the listener is
// closed.
func (l *Listener) keep(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.conns[c] = struct{}{}
	c.onClose = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, c)
	}
	return true
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
	default:
		select {
		case c := <-l.queue:
			return c, nil
		case <-l.done:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: networkName, Addr: l.address, Err: net.ErrClosed}
}

// Close implements net.Listener: it ends Accept, frees the address and closes the connections that
// were not accepted. It may be called more than once.
func (l *Listener) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return nil
	}
	l.network.mu.Lock()
	delete(l.network.listeners, string(l.address))
	l.network.mu.Unlock()
	close(l.done)
	l.empty()
	return nil
}

// empty closes the connections that will never be accepted.
func (l *Listener) empty() {
	for {
		select {
		case c := <-l.queue:
			c.Close()
		default:
			return
		}
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.address }

// Kill has the effect of a crash of the server's process on its clients: it closes the listener
// and at once every connection accepted by it, dropping the data in flight to the server. Data in
// flight to the client still arrives.
func (l *Listener) Kill() {
	l.Close()
	l.mu.Lock()
	conns := make([]*Conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

const networkName = "memory"

// Addr is the address of a listener or connection in memory.
type Addr string

// Network returns "memory".
func (Addr) Network() string { return networkName }

// String returns the address passed to Listen.
func (a Addr) String() string { return string(a) }
