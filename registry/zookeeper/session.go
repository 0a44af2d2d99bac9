package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
)

const (
	// dialTimeout bounds one try to connect, and what ZooKeeper has for its first answer: the library would
	// wait ten times longer than for any other.
	dialTimeout = 3 * time.Second
	// closeTimeout is what ZooKeeper has to end a session.
	closeTimeout = 5 * time.Second
	// maxPacket is the most bytes of an answer, in which the names of 300,000 instances have room.
	maxPacket = 16 << 20
	// sendBuffer has room for the largest document.
	sendBuffer = registry.MaxDocument + 64<<10
)

// errOver is what a session that does not resume says to the library when that connects again.
var errOver = errors.New("the connection is not resumed")

// session is a connection of the library's, which connects again by itself and keeps its session when it can.
type session struct {
	*config
	resumes bool           // false: the first loss of the connection is its end
	onEvent func(zk.Event) // hears of watches, and that there is a session; does not block
	ctx     context.Context
	cancel  context.CancelFunc // ends dialling
	hosts   hosts
	calls   sync.WaitGroup // the goroutines of do

	mu        sync.Mutex // guards what follows
	conn      *zk.Conn
	events    <-chan zk.Event // closed when the library's goroutines are gone
	socket    *socket         // the last one
	connected bool            // there is a session and a connection
	had       bool            // there was one at some time
	refused   time.Time       // since when servers answer without giving the session back; zero: not at all
	closed    bool
	reason    error         // why there is no connection, once that is known
	changed   chan struct{} // closed and replaced by each change
}

// openSession returns at once. The session connects until it is closed, or where it does not resume, until it
// has been connected once.
func openSession(cfg *config, resumes bool, onEvent func(zk.Event)) (*session, error) {
	s := &session{config: cfg, resumes: resumes, onEvent: onEvent, changed: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mu.Lock() // until conn is there, for the events
	defer s.mu.Unlock()
	var err error
	s.conn, s.events, err = zk.Connect(cfg.endpoints, cfg.ttl,
		zk.WithDialer(s.dial), zk.WithHostProvider(&s.hosts), zk.WithEventCallback(s.event),
		zk.WithLogger(log.New(io.Discard, "", 0)), zk.WithLogInfo(false),
		zk.WithMaxBufferSize(maxPacket), zk.WithMaxConnBufferSize(sendBuffer))
	return s, err
}

// state returns whether there is a connection, what is closed when that changes, and why there is none.
func (s *session) state() (connected bool, changed <-chan struct{}, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected, s.changed, s.reason
}

// hopeless reports whether servers have refused to give the session back for longer than it lives. A server that
// has lost its data does so for ever: it will not serve one who has seen more than it has.
func (s *session) hopeless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.had && !s.connected && !s.refused.IsZero() && time.Since(s.refused) > s.ttl
}

func (s *session) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// dial connects for the library, whose own way knows no TLS and does not end with Close.
func (s *session) dial(_, address string, _ time.Duration) (net.Conn, error) {
	s.mu.Lock()
	over := s.closed || s.had && !s.resumes
	s.mu.Unlock()
	if over {
		return nil, errOver
	}
	ctx, cancel := context.WithTimeout(s.ctx, dialTimeout)
	defer cancel()
	conn, err := s.connect(ctx, address)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.reason = fmt.Errorf("zookeeper at %s: %w", address, err)
		s.changeLocked()
		return nil, err
	}
	s.socket = &socket{Conn: conn}
	return s.socket, nil
}

func (s *session) connect(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	if s.tls == nil {
		return dialer.DialContext(ctx, "tcp", address)
	}
	cfg := s.tls.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(address)
	}
	return (&tls.Dialer{NetDialer: &dialer, Config: cfg}).DialContext(ctx, "tcp", address)
}

// event is called by the library, on the goroutine that reads from the connection.
func (s *session) event(ev zk.Event) {
	if ev.Type != zk.EventSession || ev.State == zk.StateHasSession {
		defer s.onEvent(ev)
	}
	if ev.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch ev.State {
	case zk.StateHasSession:
		s.socket.established.Store(true)
		s.connected, s.had, s.reason, s.refused = true, true, nil, time.Time{}
	case zk.StateExpired:
		s.reason = fmt.Errorf("zookeeper at %s has ended the session", ev.Server)
		s.hosts.Connected() // it is there: a new session need not wait
	case zk.StateDisconnected:
		if !s.connected && s.socket != nil && !s.socket.established.Load() {
			s.reason = fmt.Errorf("zookeeper at %s gave no session: %w", ev.Server, s.socket.why())
			if s.refused.IsZero() {
				s.refused = time.Now()
			}
		}
		s.connected = false
	default:
		return
	}
	s.changeLocked()
}

// do runs f, which makes requests that know no context, until ctx is done. It then leaves f to itself, so that
// the caller must not touch what f writes.
func (s *session) do(ctx context.Context, f func(*zk.Conn) error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return zk.ErrClosing
	}
	done := make(chan error, 1)
	s.calls.Go(func() { done <- f(s.conn) })
	s.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the session and waits for the library's goroutines. It reports whether ZooKeeper has confirmed it.
func (s *session) close() (confirmed bool) {
	s.mu.Lock()
	s.closed = true
	connected, socket := s.connected, s.socket
	s.mu.Unlock()
	if !connected {
		s.cancel()
		if socket != nil {
			socket.Close() // it may wait for an answer
		}
	}
	timeout := time.AfterFunc(closeTimeout, func() {
		s.cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.socket != nil {
			s.socket.broken.Store(true)
			s.socket.Close()
		}
	})
	defer timeout.Stop()
	s.conn.Close()
	for range s.events { // closed at the end
	}
	s.cancel()
	s.calls.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return connected && s.socket == socket && !socket.broken.Load()
}

// socket is a connection that remembers what went wrong with it.
type socket struct {
	net.Conn
	established atomic.Bool // a session has come
	broken      atomic.Bool // it failed before this side closed it
	err         atomic.Pointer[error]
}

// Read implements net.Conn.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		s.broken.Store(true)
		s.err.Store(&err)
	}
	return n, err
}

// SetReadDeadline implements net.Conn.
func (s *socket) SetReadDeadline(t time.Time) error {
	if limit := time.Now().Add(dialTimeout); !s.established.Load() && t.After(limit) {
		t = limit
	}
	return s.Conn.SetReadDeadline(t)
}

func (s *socket) why() error {
	if err := s.err.Load(); err != nil && *err != io.EOF {
		return *err
	}
	return errors.New("it closed the connection")
}

// hosts tells the library which server to try next: each one at once after a connection was lost, then each
// one once a second. The library's own resolves names once, and waits before it comes back to the only server.
type hosts struct {
	mu      sync.Mutex // guards what follows
	servers []string
	next    int
	tried   int // since the last connection
}

// Init implements zk.HostProvider.
func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider.
func (h *hosts) Next() (server string, pause bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pause = h.tried > 0 && h.tried%len(h.servers) == 0
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	h.tried++
	return server, pause
}

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}

// disconnected reports whether a request failed for want of a connection, so that another one may do.
func disconnected(err error) bool {
	for _, e := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrClosing, zk.ErrSessionExpired, zk.ErrSessionMoved} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// hopeless reports whether the same request would fail again: it was refused for what it is or who makes it.
func hopeless(err error) bool {
	return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) || errors.Is(err, zk.ErrInvalidACL)
}

// explain adds to an error of a request what was asked for and what to do.
func (c *config) explain(what string, err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, registry.ErrClosed):
		return err
	case errors.Is(err, zk.ErrNoAuth) && c.user == "":
		return fmt.Errorf("zookeeper refuses access to %s: use the option zookeeper.Digest: %w", what, err)
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("zookeeper refuses the user %q access to %s: look at the node's ACL (getAcl): %w", c.user, what, err)
	}
	return fmt.Errorf("zookeeper at %s, %s: %w", strings.Join(c.endpoints, ","), what, err)
}
