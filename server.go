package anser

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/accept"
	"github.com/anser-rpc/anser/internal/handshakes"
	"github.com/anser-rpc/anser/internal/loglimit"
	"github.com/anser-rpc/anser/internal/membudget"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/replycache"
	"github.com/anser-rpc/anser/internal/spelling"
	"github.com/anser-rpc/anser/internal/striped"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/internal/workers"
	"github.com/anser-rpc/anser/wire"
)

// ErrServerClosed is returned by Serve and ListenAndServe after Shutdown or Close.
var ErrServerClosed = errors.New("the server is closed")

// Server serves methods on listeners. Make one with [NewServer], add methods, then call
// ListenAndServe or Serve. More methods may be added while it serves; see [Handle].
type Server struct {
	o        serverOptions
	log      *slog.Logger
	settings wire.Settings
	codecs   [256]codec.Codec

	compressors [256]compress.Compressor

	table methodTable

	stopping     atomic.Bool
	httpSeen     loglimit.Seldom // HTTP requests
	acceptFailed loglimit.Seldom
	lanes        atomic.Uint32 // given to connections so far
	inFlight     striped.Limit // calls that do not run on the reader goroutine of their connection
	streams      atomic.Int64  // streams among them
	handshakes   *handshakes.Places
	monitor      monitor
	workers      workers.Pools[job]
	gate         *waitQueue  // the adaptive limit's queue for all methods together, or nil
	queues       atomic.Bool // a method limits how long its calls may wait
	stats        stats
	memory       membudget.Budget // of large requests; see MaxMemory
	sessions     sessions
	addresses    atomic.Pointer[addressRules] // from which clients may connect; see SetAddresses
	replies      *replycache.Cache[*callContext]
	policySeen   atomic.Uint64 // the version of the policy that open calls were checked against; see server_cutoff.go
	orphans      orphans
	upkeep       upkeep.Schedule // of the connections, and of duties
	duties       upkeep.Task     // runs tend
	unseen       atomic.Bool     // tend has not run since duties were added
	conns        sync.WaitGroup  // goroutines of connections
	reportEnd    sync.Once       // tells the observers that the server has ended

	mu         sync.Mutex // guards the fields below
	mistakes   []error    // of options and methods until serving is set
	serving    bool
	closed     bool
	closesBy   time.Time                  // when the last Shutdown ends, if closed and if that is known
	listeners  map[*net.Listener]struct{} // by pointer, since a listener need not be comparable
	live       map[*serverConn]struct{}
	attached   map[*calleeHalf]struct{}         // of clients that were given the server; see Handlers
	raw        map[*handshakes.Pending]net.Conn // in their handshake
	announced  announcer
	announcing bool          // announced was started
	empty      chan struct{} // closed when live and raw are empty after closed; nil until Shutdown
	tended     bool          // duties are in the schedule
}

// NewServer returns a server without methods. It cannot fail: Serve returns the mistakes in
// options and methods.
func NewServer(opts ...ServerOption) *Server {
	s := &Server{
		listeners: make(map[*net.Listener]struct{}), live: make(map[*serverConn]struct{}), raw: make(map[*handshakes.Pending]net.Conn),
	}
	s.o = defaultServerOptions()
	s.o.made = callerOf()
	for _, opt := range opts {
		if s.o.wants(opt != nil, "an option of the server is nil") {
			opt.applyServer(&s.o)
		}
	}
	s.log = s.o.log
	s.settings = wire.DefaultSettings()
	s.settings.MaxFrame = uint64(s.o.maxMessage) + frameOverhead
	s.settings.MinPing = uint64(s.o.minPing.Milliseconds())
	s.settings.MaxStreams = uint64(s.o.maxStreams)
	s.settings.StreamWindow, s.settings.ConnWindow = uint64(s.o.streamWindow), uint64(s.o.connWindow)
	s.settings.MaxCalls = uint64(s.o.maxCalls)
	s.settings.Features = wire.FeatureParts | offerChecksums(s.o.checksums)
	s.handshakes = handshakes.New(handshakes.Config{
		Places: s.o.maxHandshakes, Timeout: s.o.handshakeTimeout,
		Evicted: func() { s.stats.hit(limitHandshakes) },
	})
	if s.o.tls != nil {
		s.o.tls = handshakes.ObserveHello(s.o.tls) // a copy
		s.offerProtocols()
	}
	s.replies = replycache.New[*callContext](replycache.Config(s.o.memory))
	if s.o.forwarder == nil { // a repeated call may be forwarded to another server, which does not know its key
		s.settings.Life, s.settings.KeyAge = newLife(), uint64(s.o.memory.Age.Milliseconds())
	}
	s.memory.SetLimit(memoryLimit(&s.o))
	s.mistakes = s.o.mistakes
	for _, c := range append([]codec.Codec{codec.Raw{}, codec.Binary{}, sharedJSON, sharedProtobuf, sharedMsgpack}, s.o.codecs...) {
		s.codecs[c.ID()] = c
	}
	for _, c := range s.o.compressors {
		s.compressors[c.ID()] = c
		s.settings.AddCompression(c.ID())
	}
	for _, a := range s.o.announcements {
		if err := a.check(); err != nil {
			s.mistakes = append(s.mistakes, err)
		}
	}
	if s.o.adaptive != nil {
		s.gate = newWaitQueue("", s.o.adaptive, s.o.queueTime)
	}
	if s.o.describe {
		s.addDescribe()
		s.addContractMethod()
	}
	if s.o.authorizer != nil && len(s.o.authenticators) == 0 {
		s.mistakes = append(s.mistakes, errors.New("anser.Authorize needs anser.Authenticate: otherwise no caller has an identity, which the policy needs"))
	}
	s.addresses.Store(&s.o.addresses)
	parts := striped.Stripes()
	s.inFlight.Init(s.o.maxInFlight, parts)
	s.workers = workers.New(parts, (*job).execute, &s.duties)
	s.o.observers.made(s)
	return s
}

// Serve accepts connections from l, which it finally closes, until Shutdown or Close. It always
// returns an error; after Shutdown or Close that is ErrServerClosed.
//
// A listener that other machines reach, or whose address is not known, must pass the checks of
// ListenAndServe, which take its [Protection] into account.
func (s *Server) Serve(l net.Listener) error {
	if l == nil {
		return errNilServe
	}
	if err := s.usable(); err != nil {
		l.Close()
		return err
	}
	err := s.checkProtocols()
	var p Protection
	if err == nil {
		p, err = s.begin(&l)
	}
	if err != nil {
		l.Close()
		return err
	}
	defer func() {
		s.mu.Lock()
		delete(s.listeners, &l)
		s.restLocked()
		s.mu.Unlock()
		l.Close()
	}()
	var retry accept.Retry
	for {
		nc, err := l.Accept()
		wait, passes := retry.After(err)
		switch {
		case err == nil:
			s.accept(nc, p.EachConn)
		case s.stopping.Load():
			return ErrServerClosed
		case passes:
			if n := s.acceptFailed.Note(mono.Now()); n > 0 {
				s.log.Warn("accept failed, trying again", "err", err, "wait", wait, "failures", n)
			}
			time.Sleep(wait)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// begin checks that the server can serve on *l.
func (s *Server) begin(l *net.Listener) (Protection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Protection{}, ErrServerClosed
	}
	if len(s.mistakes) > 0 {
		return Protection{}, fmt.Errorf("the server cannot serve: %w", errors.Join(s.mistakes...))
	}
	p, err := s.checkListener(*l)
	if err != nil {
		return p, err
	}
	s.serving = true
	s.listeners[l] = struct{}{}
	s.beginTendingLocked()
	if !s.announcing {
		s.announcing = true
		list := slices.Clone(s.o.announcements)
		for i := range list {
			s.addContractTags(&list[i].instance)
		}
		s.announced.start(list, (*l).Addr(), &s.o.sideOptions)
	}
	return p, nil
}

// beginTendingLocked starts the maintenance of the server.
func (s *Server) beginTendingLocked() {
	if s.tended {
		return
	}
	s.tended = true
	s.unseen.Store(true)
	due := upkeep.Never
	if s.o.authorizer != nil {
		due = mono.Now()
	}
	s.upkeep.Add(&s.duties, due, s.tend)
	s.workers.Rest(false)
}

// accept starts the goroutine of a new connection. check says that the protection of this
// connection is not known yet, because the connections of the listener differ.
func (s *Server) accept(nc net.Conn, check bool) {
	if !s.addresses.Load().allow(nc.RemoteAddr()) {
		s.stats.wrongAddress.Add(1)
		nc.Close()
		return
	}
	g := s.handshakes.Enter(nc, s.stopping.Load)
	if g == nil {
		nc.Close()
		return
	}
	s.mu.Lock()
	if s.closed {
		if s.isEmptyLocked() {
			s.mu.Unlock()
			g.Leave()
			nc.Close()
			return
		}
		nc.SetReadDeadline(time.Now().Add(lastWord)) // as stop does
	}
	full := len(s.live)+len(s.raw) >= s.o.maxConns
	s.raw[g] = nc
	s.conns.Add(1)
	s.mu.Unlock()
	s.stats.accepted.Add(1)
	go func() {
		defer s.conns.Done()
		c, st, err := s.handshake(nc, g, full, check)
		g.Leave()
		if err == nil && st.protocol != nil {
			s.serveProtocol(st.protocol, nc, st, c, g)
			return
		}
		if err != nil {
			s.stats.handshakeFailed.Add(1)
			s.o.observers.connFailed(ConnInfo{Server: true, Peer: Peer{Addr: nc.RemoteAddr(), Local: nc.LocalAddr()}}, err)
			s.log.Debug("handshake failed", "peer", nc.RemoteAddr(), "err", err)
			s.mu.Lock()
			delete(s.raw, g)
			s.checkEmptyLocked()
			s.mu.Unlock()
			nc.Close()
			return
		}
		// The handshake has made the stack of this goroutine larger than an idle connection needs.
		s.conns.Go(func() { c.serve(st) })
	}()
}

// remove removes a connection that has ended.
func (s *Server) remove(c *serverConn) {
	s.mu.Lock()
	delete(s.live, c)
	s.checkEmptyLocked()
	s.restLocked()
	s.mu.Unlock()
	s.upkeep.Remove(&c.upkeep)
}

// restLocked ends the maintenance of the server, and the idle workers, if there is neither a
// connection nor a listener: a server that is only given connections may never be shut down.
func (s *Server) restLocked() {
	if !s.tended || s.closed || len(s.live)+len(s.raw)+len(s.listeners) > 0 {
		return
	}
	s.tended = false
	s.upkeep.Remove(&s.duties)
	s.workers.Rest(true)
}

func (s *Server) checkEmptyLocked() {
	if s.empty != nil && len(s.live)+len(s.raw) == 0 && !s.isEmptyLocked() {
		close(s.empty)
	}
}

// isEmptyLocked reports whether the server, which is closed, has had its last connection.
func (s *Server) isEmptyLocked() bool {
	select {
	case <-s.empty:
		return true
	default:
		return false
	}
}

// tend does the maintenance that is due for the server as a whole, and returns when it is due
// next: in a second while there are idle workers, idempotency keys or a policy.
func (s *Server) tend(now, _ mono.Time) (due mono.Time) {
	changed := s.policyChanged()
	// The policy may have changed after the first call was admitted and before this first run.
	if s.unseen.Swap(false) {
		changed = true
	}
	if changed {
		for _, c := range s.liveConns() {
			if c.auth != nil {
				c.tendTrust(now, true)
			}
		}
	}
	active := s.orphans.tend(now, changed)
	active = s.replies.Tick(now) || active
	active = s.workers.Trim() || active
	if active || s.o.authorizer != nil {
		return now.Add(upkeep.Interval)
	}
	return upkeep.Never
}

func (s *Server) liveConns() []*serverConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*serverConn, 0, len(s.live))
	for c := range s.live {
		list = append(list, c)
	}
	return list
}

// codecNames lists the codecs for an error message: the codecs of a set, or all.
func (s *Server) codecNames(only *codecSet) string {
	var names []string
	for id, c := range s.codecs {
		if c != nil && (only == nil || only[id]) {
			names = append(names, fmt.Sprintf("%d %s", id, c.Name()))
		}
	}
	return strings.Join(names, ", ")
}

// maxCompared is the length in bytes up to which names of methods are compared.
const maxCompared = 256

// suggest returns which method the caller of an unknown method may have meant, or nothing if the
// server does not describe its methods. foreign says that the call came over another protocol.
func (s *Server) suggest(name string, foreign bool) string {
	if !s.o.describe {
		return ""
	}
	best, distance := "", len(name)/2+1
	name = strings.ToLower(name)
	s.table.each(func(known string, m *method, _ *alias) {
		if m.foreign && !foreign || m.builtin && foreign {
			return
		}
		d := spelling.Distance(name, strings.ToLower(known), maxCompared)
		if i := strings.LastIndexByte(known, '.'); i > 0 && !strings.Contains(name, ".") { // the service is missing
			d = min(d, spelling.Distance(name, strings.ToLower(known[i+1:]), maxCompared))
		}
		if d < distance || d == distance && known < best {
			best, distance = known, d
		}
	})
	if best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ": " + MethodsName + " lists what is"
}

// Addrs returns the addresses that the server listens on.
func (s *Server) Addrs() []net.Addr {
	if s.usable() != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var addrs []net.Addr
	for l := range s.listeners {
		addrs = append(addrs, (*l).Addr())
	}
	slices.SortFunc(addrs, func(a, b net.Addr) int { return strings.Compare(a.String(), b.String()) })
	return addrs
}

var errNoServer = errors.New("the server is nil or was not made by anser.NewServer")

var errNilServe = errors.New("serve: the listener is nil")

// A server that is not usable returns an error wherever a method can return one, and never
// panics: see the comment of the package.
var (
	errNilEnd = errors.New("shutdown: the context is nil: pass context.Background()")
)

// usable returns an error for a server that is nil or the zero value.
func (s *Server) usable() error {
	if s == nil || s.listeners == nil {
		return errNoServer
	}
	return nil
}

// newLife returns the number by which clients distinguish the lives of a server. It need not be
// secret.
func newLife() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}
