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
	// dialTimeout bounds one attempt to connect, and the wait for ZooKeeper's first answer: the
	// library's own limit is ten times longer there than for other answers.
	dialTimeout = 3 * time.Second
	// closeTimeout bounds how long ZooKeeper may take to end a session.
	closeTimeout = 5 * time.Second
	// maxPacket is the maximum size of an answer in bytes, enough for the names of 300,000
	// instances.
	maxPacket = 16 << 20
	// sendBuffer is enough for the largest document.
	sendBuffer = registry.MaxDocument + 64<<10
)

// errOver is the library's error for a reconnect of a session that does not resume.
var errOver = errors.New("the connection is not resumed")

// session is a connection of the library, which reconnects by itself and keeps its session if
// possible.
type session struct {
	*config
	resumes bool           // false: the session ends with its first connection
	onEvent func(zk.Event) // receives the events of watches and sessions; does not block
	ctx     context.Context
	cancel  context.CancelFunc // cancels dialling
	hosts   hosts
	calls   sync.WaitGroup // the goroutines of do

	mu        sync.Mutex // guards the fields below
	conn      *zk.Conn
	events    <-chan zk.Event // closed when the library's goroutines have ended
	socket    *socket         // the latest one
	connected bool            // there is a session and a connection
	had       bool            // there was one before
	refused   time.Time       // since when servers answer without restoring the session; zero: they do not
	closed    bool
	reason    error         // why there is no connection, if known
	changed   chan struct{} // closed and replaced by each change
}

// openSession returns at once. The session keeps connecting until it is closed or, if it does not
// resume, until its first connection is lost.
func openSession(cfg *config, resumes bool, onEvent func(zk.Event)) (*session, error) {
	s := &session{config: cfg, resumes: resumes, onEvent: onEvent, changed: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mu.Lock() // until conn is set, because of events
	defer s.mu.Unlock()
	var err error
	s.conn, s.events, err = zk.Connect(cfg.endpoints, cfg.ttl,
		zk.WithDialer(s.dial), zk.WithHostProvider(&s.hosts), zk.WithEventCallback(s.event),
		zk.WithLogger(log.New(io.Discard, "", 0)), zk.WithLogInfo(false),
		zk.WithMaxBufferSize(maxPacket), zk.WithMaxConnBufferSize(sendBuffer))
	return s, err
}

// state returns whether there is a connection, a channel that is closed when that changes, and why
// there is none.
func (s *session) state() (connected bool, changed <-chan struct{}, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected, s.changed, s.reason
}

// hopeless reports whether servers have refused to restore the session for longer than its
// timeout. A server that has lost its data refuses forever: it does not serve a client that has
// seen a later transaction.
func (s *session) hopeless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.had && !s.connected && !s.refused.IsZero() && time.Since(s.refused) > s.ttl
}

func (s *session) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// dial connects for the library, whose own dialer has no TLS and does not end with Close.
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
	s.socket = &socket{Conn: conn, hides: !s.resumes}
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

// event is called by the library on the goroutine that reads from the connection.
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
		s.hosts.Connected() // the server answers: a new session need not wait
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

// do runs f, whose requests take no context, until ctx is done. It then leaves f running, so the
// caller must not access variables that f writes.
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

// close ends the session and waits for the library's goroutines. It reports whether ZooKeeper has
// confirmed the end.
func (s *session) close() (confirmed bool) {
	s.mu.Lock()
	s.closed = true
	connected, socket := s.connected, s.socket
	s.mu.Unlock()
	if !connected {
		s.cancel()
		if socket != nil {
			socket.Close() // it may be waiting for an answer
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

// socket is a connection that remembers its error.
type socket struct {
	net.Conn
	hides       bool        // answers reach the library without their transaction ids
	answers     answers     // of the goroutine that reads
	established atomic.Bool // a session was established
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
	if s.hides {
		s.answers.hide(b[:n])
	}
	return n, err
}

// answers clears the transaction ids of answers. The library stores the last one without a lock,
// while another goroutine of its own may read it to set watches again. Only a session that resumes
// needs it.
type answers struct {
	begun bool  // the answer to the first request, which has no header, was read
	at    int64 // in the current answer, its length of 4 bytes included
	size  int64 // of the current answer, without its length
}

// hide changes the next bytes that were read.
func (a *answers) hide(b []byte) {
	const from, to = 8, 16 // the id: it follows the length and the number of the request
	for len(b) > 0 {
		if a.at < 4 {
			a.size = a.size<<8 | int64(b[0])
			a.at++
			b = b[1:]
			continue
		}
		n := min(int64(len(b)), 4+a.size-a.at)
		if first, last := max(from-a.at, 0), min(to-a.at, n); a.begun && first < last {
			clear(b[first:last])
		}
		a.at += n
		b = b[n:]
		if a.at == 4+a.size {
			*a = answers{begun: true}
		}
	}
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

// hosts tells the library which server to try next: each one immediately after a connection was
// lost, then each one once per second. The library's own implementation resolves names only once,
// and waits before it returns to the only server.
type hosts struct {
	mu      sync.Mutex // guards the fields below
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

// disconnected reports whether a request failed because of its connection, so that it may succeed
// on another one.
func disconnected(err error) bool {
	for _, e := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrClosing, zk.ErrSessionExpired, zk.ErrSessionMoved} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// hopeless reports whether the same request would fail again: ZooKeeper rejected its content or
// its user.
func hopeless(err error) bool {
	return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) || errors.Is(err, zk.ErrInvalidACL)
}

// explain adds the subject of the request and advice to its error.
func (c *config) explain(what string, err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, registry.ErrClosed):
		return err
	case errors.Is(err, zk.ErrNoAuth) && c.user == "":
		return fmt.Errorf("zookeeper refuses access to %s: use the option zookeeper.Digest: %w", what, err)
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("zookeeper refuses the user %q access to %s: check the node's ACL (getAcl): %w", c.user, what, err)
	}
	return fmt.Errorf("zookeeper at %s, %s: %w", strings.Join(c.endpoints, ","), what, err)
}
