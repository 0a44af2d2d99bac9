package anser

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// ServerOption configures a [Server].
type ServerOption interface{ applyServer(*serverOptions) }

// DialOption configures a [Client]. Besides the options of this package, a [registry.Scheme] is one:
// it teaches Dial another scheme.
type DialOption interface{ DialOption() }

// Option configures a [Server] or a [Client].
type Option interface {
	ServerOption
	DialOption
}

// CallOption configures one call.
type CallOption interface{ applyCall(*callOptions) }

// HandleOption configures one method of a [Server].
type HandleOption interface{ applyHandle(*handleOptions) }

// DialCallOption configures all calls of a [Client], or one call.
type DialCallOption interface {
	DialOption
	CallOption
}

type serverOption func(*serverOptions)

func (f serverOption) applyServer(o *serverOptions) { f(o) }

type dialOption func(*dialOptions)

func (dialOption) DialOption() {}

type callOption func(*callOptions)

func (f callOption) applyCall(o *callOptions) { f(o) }

type handleOption func(*handleOptions)

func (f handleOption) applyHandle(o *handleOptions) { f(o) }

type sideOption func(*sideOptions)

func (sideOption) DialOption()                    {}
func (f sideOption) applyServer(o *serverOptions) { f(&o.sideOptions) }

type dialCallOption func(*callOptions)

func (dialCallOption) DialOption()                {}
func (f dialCallOption) applyCall(o *callOptions) { f(o) }

// sideOptions are what both sides have.
type sideOptions struct {
	log              *slog.Logger
	interceptors     []Interceptor
	codecs           []codec.Codec
	tls              *tls.Config
	maxMessage       int
	maxExpansion     int
	handshakeTimeout time.Duration
	keepaliveIdle    time.Duration
	keepaliveAnswer  time.Duration
	writeStall       time.Duration
	readTimeout      time.Duration // 0: none
	streamWindow     int
	connWindow       int
	windowsGrow      bool
	idleTimeout      time.Duration // 0: none
	checksums        bool
	observers        *observers
	mistakes         []error // options that cannot work
}

// wants reports ok, and notes a mistake if it is false.
func (o *sideOptions) wants(ok bool, format string, args ...any) bool {
	if !ok {
		o.mistakes = append(o.mistakes, fmt.Errorf(format, args...))
	}
	return ok
}

func defaultSideOptions() sideOptions {
	return sideOptions{
		log: slog.Default(), maxMessage: 4 << 20, maxExpansion: defaultExpansion, handshakeTimeout: 5 * time.Second,
		keepaliveIdle: 30 * time.Second, keepaliveAnswer: 10 * time.Second, writeStall: 10 * time.Second,
		streamWindow: int(wire.DefaultSettings().StreamWindow), connWindow: int(wire.DefaultSettings().ConnWindow), windowsGrow: true,
	}
}

type serverOptions struct {
	sideOptions
	maxInFlight   int
	queueTime     time.Duration // 0: no bound
	adaptive      *limitBounds  // nil: no limit
	maxCalls      int
	maxConns      int
	maxHandshakes int
	maxStreams    int
	maxMemory     int // 0: a part of what the process has
	grace         time.Duration
	insecure      bool
	reusePort     bool
	signals       bool
	describe      bool
	minPing       time.Duration
	announcements []announcement
	sessionGrace  time.Duration
	onSession     func(*Session)
	compressors   []compress.Compressor
	replies       *compression
	calls         *compression // of the server's own calls to its clients
	once          bool         // for every method; see Deduplicate
	memory        ReplyCacheLimits

	authenticators []Authenticator
	authorizer     Authorizer // nil: everybody may call everything
	addresses      addressRules
}

type dialOptions struct {
	sideOptions
	call           callOptions
	schemes        []registry.Scheme
	transports     []Transport
	balancer       balance.Balancer
	conns          int // 0: the default of the transport
	connectTimeout time.Duration
	dialer         func(ctx context.Context, network, address string) (net.Conn, error)
	slowStart      time.Duration
	breaker        Breaker
	ejection       OutlierDetection
	subset         subset
	snapshotDir    string
	noSnapshot     bool
	budgetRatio    float64
	budgetRate     float64
	backupShare    float64
	failback       FailbackLimits
	handlers       *Server
	newRouter      func(*RouterContext) (Router, error)
	credentials    *credentials // nil: none
	inTheClear     bool         // they may travel unprotected
}

// defaultConns is how many connections there are to an address where nothing says otherwise.
const defaultConns = 2

type callOptions struct {
	codec       codec.Codec
	compression *compression // nil: none
	timeout     time.Duration
	mode        FailMode
	attempts    int
	idempotent  bool
	oneway      bool
	atOnce      bool // or not at all: a oneway call does not wait
	retryOn     []Code
	trailer     *Metadata
	inv         *Invocation // learns which instance answered; nil without interceptors
	hashKey     uint64      // of balance.Hash; 0: none
	key         string      // of idempotency, if keyed
	keyed       bool
	at          string // key of the one instance to go to, if pinned
	pinned      bool
	forks       int
	backupAfter time.Duration // 0: learned
	earlier     uint8         // attempts of the same call that were sent before
	hashBy      func(ctx context.Context, method string, request any) string
	mistake     error // the first option that cannot work, which the call or Dial returns
}

// wants reports ok, and notes a mistake if it is false.
func (o *callOptions) wants(ok bool, format string, args ...any) bool {
	if !ok && o.mistake == nil {
		o.mistake = fmt.Errorf(format, args...)
	}
	return ok
}

// add adds the options of a call.
func (o *callOptions) add(opts []CallOption) {
	for _, opt := range opts {
		if o.wants(opt != nil, "an option of the call is nil") {
			opt.applyCall(o)
		}
	}
}

type handleOptions struct {
	only        *codecSet // nil: all of the server's
	idempotent  bool
	mode        runMode
	aliases     []string
	deprecated  []string
	params      []string
	once        bool          // duplicates are answered from memory
	maxInFlight int           // 0: no limit
	queueTime   time.Duration // 0: that of the server
	adaptive    *limitBounds  // nil: that of the server
	mistakes    []error       // options that cannot work
}

// wants reports ok, and notes a mistake if it is false.
func (o *handleOptions) wants(ok bool, format string, args ...any) bool {
	if !ok {
		o.mistakes = append(o.mistakes, fmt.Errorf(format, args...))
	}
	return ok
}

// Logger sets where the side logs to; the default is slog.Default(). Arguments, replies, metadata and
// credentials are never logged.
func Logger(l *slog.Logger) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(l != nil, "anser.Logger: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)") {
			o.log = l
		}
	})
}

// Intercept appends interceptors, the first being the outermost.
func Intercept(in ...Interceptor) Option {
	return sideOption(func(o *sideOptions) {
		for _, i := range in {
			if o.wants(i != nil, "anser.Intercept: an interceptor is nil") {
				o.interceptors = append(o.interceptors, i)
			}
		}
	})
}

// Codecs adds codecs, beside raw, binary, JSON, protobuf and MessagePack, which are always there.
// One with the number of another replaces it. A client prefers them where they fit a call's types.
func Codecs(c ...codec.Codec) Option {
	return sideOption(func(o *sideOptions) {
		for _, c := range c {
			if o.wants(c != nil, "anser.Codecs: a codec is nil") &&
				o.wants(c.ID() != 0, "anser.Codecs: codec %q has the number 0: use %d to 255", c.Name(), codec.FirstFree) {
				o.codecs = append(o.codecs, c)
			}
		}
	})
}

// TLS makes the side speak TLS with the given configuration, which must not be changed afterwards.
// Unless it states a version, TLS 1.3 is the least; less than TLS 1.2 is refused. Unless it states
// protocols, both sides say [ALPN]. A client proves the server by the name or IP address that it dials,
// unless the configuration has a ServerName; a VerifyConnection of the configuration finds either
// in the state's ServerName.
//
// Connections that are TLS already, such as those of QUIC or of a listener of crypto/tls, get no second
// TLS on the server. Package transport/tlsfiles makes configurations that follow files on disk.
func TLS(config *tls.Config) Option {
	if config != nil && (config.MinVersion == 0 || config.NextProtos == nil) {
		config = config.Clone()
		if config.MinVersion == 0 {
			config.MinVersion = tls.VersionTLS13
		}
		if config.NextProtos == nil {
			config.NextProtos = []string{ALPN}
		}
	}
	return sideOption(func(o *sideOptions) {
		if o.wants(config != nil, "anser.TLS: the configuration is nil: leave the option out for a side without TLS") &&
			o.wants(config.MinVersion >= tls.VersionTLS12, "anser.TLS: the configuration allows %s: set MinVersion to tls.VersionTLS12 or more", tls.VersionName(config.MinVersion)) {
			o.tls = config
		}
	})
}

// MaxMessage sets the largest encoded message that the side accepts, in bytes; the default is 4 MiB.
// A compressed message counts with its size after decompression.
// What a side sends is bounded by what the other accepts.
func MaxMessage(bytes int) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(bytes >= 1 && bytes <= maxMaxMessage, "anser.MaxMessage(%d): want 1 to %d bytes", bytes, maxMaxMessage) {
			o.maxMessage = bytes
		}
	})
}

// maxMaxMessage leaves a frame a length that fits a signed integer everywhere.
const maxMaxMessage = math.MaxInt32 - frameOverhead

// Keepalive sets after how much silence the side asks whether the other is there (default 30 s), and how long
// it waits for an answer before it gives the connection up (default 10 s).
func Keepalive(idle, answer time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(idle > 0 && answer > 0, "anser.Keepalive(%v, %v): want times above 0", idle, answer) {
			o.keepaliveIdle, o.keepaliveAnswer = idle, answer
		}
	})
}

// HandshakeTimeout bounds the handshake of a connection, TLS included; the default is 5 s.
func HandshakeTimeout(d time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(d > 0, "anser.HandshakeTimeout(%v): want a time above 0", d) {
			o.handshakeTimeout = d
		}
	})
}

// IdleTimeout closes a connection on which no call is open and none was made for so long; 0, the
// default, keeps it open. The other side makes no new connection before it needs one. Connections are
// looked at about once a second. Those of a client with handlers stay: they are there for calls of the server.
func IdleTimeout(d time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(d >= 0, "anser.IdleTimeout(%v): want at least 0", d) {
			o.idleTimeout = d
		}
	})
}

// WriteStall sets how long a write may make no progress before the connection is given up; the
// default is 10 s.
func WriteStall(d time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(d > 0, "anser.WriteStall(%v): want a time above 0", d) {
			o.writeStall = d
		}
	})
}

// ReadTimeout bounds the time from the first byte of a frame to its last one; 0, the default, sets no bound. It
// closes the connection with TIMEOUT, and the calls on it fail. A frame carries a whole request or reply, or one
// message of a stream, so the time must suffice for a message of [MaxMessage] bytes on the slowest link that is
// served. Connections are looked at about once a second.
//
// [WriteStall] ends slower frames in any case, those that arrive with less than 4 KiB a second. A connection without
// a frame under way is not the concern of this option: [Keepalive] finds the other side dead, [IdleTimeout]
// closes what is not used, and [HandshakeTimeout] bounds what comes before the first call.
func ReadTimeout(d time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(d >= 0, "anser.ReadTimeout(%v): want at least 0", d) {
			o.readTimeout = d
		}
	})
}

// FlowControlWindows sets how many bytes of messages the side lets arrive that nobody has received yet: for each stream and
// for all streams of a connection together, each from 4 KiB to 2 GiB - 1. The default is 256 KiB and 1 MiB,
// where the windows of up to about ten streams of a connection grow to 1 MiB each while their readers are fast;
// windows that are set stay as they are. A larger window lets a stream go faster over a long way: the most
// is a window for each round trip. So that a stream whose reader is slow never holds up others, the side
// allows more for the connection where it has to; each stream keeps its bound.
func FlowControlWindows(stream, connection int) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(min(stream, connection) >= minWindow && max(stream, connection) <= wire.MaxWindow,
			"anser.FlowControlWindows(%d, %d): want from %d to %d bytes each", stream, connection, minWindow, wire.MaxWindow) {
			o.streamWindow, o.connWindow, o.windowsGrow = stream, connection, false
		}
	})
}

const minWindow = 4 << 10

// MaxStreams sets how many streams may be open at once on one connection of the server; the default is
// 1,000. One more is refused with ResourceExhausted. With 0 the server offers no streams.
func MaxStreams(n int) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(n >= 0, "anser.MaxStreams(%d): want at least 0", n) {
			o.maxStreams = n
		}
	})
}

// MaxInFlight sets how many calls the server runs at once; the default is 10,000. One more is
// refused with ResourceExhausted. An open stream counts as one. Calls that run on the goroutine that reads
// their connection do not count: there is at most one for a connection.
//
// Given to a method, it bounds the calls of that method, wherever they run; there is no default. Calls that
// wait for their turn under an [AdaptiveLimit] count too.
func MaxInFlight(n int) ServerHandleOption {
	return serverHandleOption{
		func(o *serverOptions) {
			if o.wants(n >= 1, "anser.MaxInFlight(%d): want at least 1", n) {
				o.maxInFlight = n
			}
		},
		func(o *handleOptions) {
			if o.wants(n >= 1, "anser.MaxInFlight(%d): want at least 1", n) {
				o.maxInFlight = n
			}
		},
	}
}

// MaxCalls sets how many calls a client may have open at once on one connection; the default is 10,000. A
// client opens another connection before it reaches the limit, up to eight of them, and fails what is over.
// The limit for all connections together is [MaxInFlight].
func MaxCalls(n int) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(n >= 1 && n <= math.MaxInt32, "anser.MaxCalls(%d): want 1 to %d", n, math.MaxInt32) {
			o.maxCalls = n
		}
	})
}

// MaxConns sets how many connections the server holds; the default is 100,000. One more is closed
// with the reason OVERLOAD.
func MaxConns(n int) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(n >= 1, "anser.MaxConns(%d): want at least 1", n) {
			o.maxConns = n
		}
	})
}

// MaxHandshakes sets how many connections may be in their handshake at once; the default is 256. A further
// one gets the place of the one that has kept the server waiting longest, if that is more than 50 ms for its
// first words, or 500 ms for what follows them in a handshake of TLS; that one is closed with the reason
// OVERLOAD. Until there is such a one, further ones wait in the listener's queue.
func MaxHandshakes(n int) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(n >= 1, "anser.MaxHandshakes(%d): want at least 1", n) {
			o.maxHandshakes = n
		}
	})
}

// DrainGrace sets how long ListenAndServe lets calls finish after a signal; the default is 30 s.
func DrainGrace(d time.Duration) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(d >= 0, "anser.DrainGrace(%v): want at least 0", d) {
			o.grace = d
		}
	})
}

// MinPing sets the least time between the pings of a client; the default is 5 s. A client that sends more than
// three in a row faster than that is disconnected.
func MinPing(d time.Duration) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(d >= 0, "anser.MinPing(%v): want at least 0", d) {
			o.minPing = d
		}
	})
}

// InsecurePublic lets the server listen on other addresses than loopback without TLS or without
// authentication; see [Protection] for what counts as either. Without authentication everybody who reaches the address can call every method; without TLS,
// read and change what others send, their credentials too.
func InsecurePublic() ServerOption {
	return serverOption(func(o *serverOptions) { o.insecure = true })
}

// ReusePort lets several processes listen on one address of TCP (SO_REUSEPORT). Each has a queue of its own, and
// Linux spreads new connections over them; on macOS the process that began to listen last gets all. A
// process that takes over from another can so begin before that one ends. Elsewhere listening fails.
func ReusePort() ServerOption {
	return serverOption(func(o *serverOptions) { o.reusePort = true })
}

// NoSignals keeps ListenAndServe from draining the server on SIGTERM and SIGINT.
func NoSignals() ServerOption {
	return serverOption(func(o *serverOptions) { o.signals = false })
}

// NoDescribe switches the method Anser.Methods off, which tells a caller what the server offers.
func NoDescribe() ServerOption {
	return serverOption(func(o *serverOptions) { o.describe = false })
}

// Announce registers the server while it serves. Service is required; an empty Address is filled
// in with the listener's. May be given several times, for several registries or services.
func Announce(r registry.Registrar, in registry.Instance) ServerOption {
	return serverOption(func(o *serverOptions) {
		if !o.wants(r != nil, "anser.Announce: the registrar is nil: leave the option out") {
			return
		}
		o.announcements = append(o.announcements, announcement{r, in.Clone()})
	})
}

// Balancer sets how instances are chosen; the default is balance.P2C.
func Balancer(b balance.Balancer) DialOption {
	return dialOption(func(o *dialOptions) {
		if !o.wants(b != nil, "anser.Balancer: the balancer is nil: leave the option out for balance.P2C") {
			return
		}
		o.balancer = b
		if v, ok := b.(interface{ Validate() error }); ok {
			err := v.Validate()
			o.wants(err == nil, "anser.Balancer: %q: %w", b.Name(), err)
		}
	})
}

// SlowStart lets an instance that is new, or that could not be reached for a while, begin with a tenth of
// its weight, which grows to the whole in d; the default is 0, which means at once. It works with every
// balancer that looks at weights. The instances of the first list, of which the client cannot know how
// long they have been there, count in full.
func SlowStart(d time.Duration) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(d >= 0, "anser.SlowStart(%v): want at least 0", d) {
			o.slowStart = d
		}
	})
}

// Conns sets how many connections to an address all clients of the process share at first; the
// default is 2, or what a [Transport] says. More are made when these are saturated. Clients with different values share the largest.
func Conns(n int) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(n >= 1, "anser.Conns(%d): want at least 1", n) {
			o.conns = n
		}
	})
}

// ConnectTimeout bounds the making of a connection, with everything that belongs to it: asking [Credentials], looking up
// the name, dialing, and the handshakes of TLS and of Anser, which [HandshakeTimeout] bounds by themselves. The default is
// 5 s. A call waits no longer than 250 ms for an instance while others may do; see docs/governance/failmodes.md.
func ConnectTimeout(d time.Duration) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(d > 0, "anser.ConnectTimeout(%v): want a time above 0", d) {
			o.connectTimeout = d
		}
	})
}

// Dialer replaces the way connections are made. A client with a dialer of its own shares its
// connections with no other.
func Dialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) DialOption {
	return dialOption(func(o *dialOptions) {
		o.wants(dial != nil, "anser.Dialer: the function is nil: leave the option out for net.Dialer")
		o.dialer = dial
	})
}

// SnapshotDir sets the folder in which the client keeps the last list of instances that its registry
// gave it, for a start while the registry is down. The default is "anser" in the user's cache folder.
func SnapshotDir(dir string) DialOption {
	return dialOption(func(o *dialOptions) { o.snapshotDir = dir })
}

// NoSnapshot keeps the list of instances in memory only.
func NoSnapshot() DialOption {
	return dialOption(func(o *dialOptions) { o.noSnapshot = true })
}

// RetryBudget sets how many retries the client may make: a share of its calls plus a number a
// second, remembered for ten seconds. The default is 0.2 and 10. Retries of calls that were never
// sent are free.
func RetryBudget(ratio, perSecond float64) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(ratio >= 0 && perSecond >= 0 && ratio <= math.MaxFloat64 && perSecond <= math.MaxFloat64,
			"anser.RetryBudget(%v, %v): want numbers of at least 0, and finite ones", ratio, perSecond) {
			o.budgetRatio, o.budgetRate = ratio, perSecond
		}
	})
}

// Codec sets the codec of requests and replies. The default depends on the types: protobuf for
// protobuf messages, raw for []byte, binary for types that marshal themselves, else MessagePack.
func Codec(c codec.Codec) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.codec = c })
}

// Timeout bounds calls whose context has no deadline; the default is 10 s. 0 means no bound, and with
// a negative one the time of a call is over at once. Streams have
// no bound unless Timeout is given to [Open]; that of the client bounds their opening.
func Timeout(d time.Duration) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.timeout = d })
}

// WithFailMode sets the fail mode; the default is Failover.
func WithFailMode(m FailMode) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.setMode("anser.WithFailMode", m) })
}

func (o *callOptions) setMode(name string, m FailMode) {
	if o.wants(int(m) < len(failModeNames), "%s(%d): want one of the fail modes, anser.Failover (0) to anser.Fork (%d)", name, m, Fork) {
		o.mode = m
	}
}

// Attempts sets how often a call is sent at most: 1 to 5, the default is 3. Attempts that were not
// sent do not count.
func Attempts(n int) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.setAttempts("anser.Attempts", n) })
}

func (o *callOptions) setAttempts(name string, n int) {
	if o.wants(n >= 1 && n <= maxAttempts, "%s(%d): want 1 to %d", name, n, maxAttempts) {
		o.attempts = n
	}
}

// RetryOn lists codes of executed calls after which an idempotent method is tried again.
func RetryOn(codes ...Code) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.retryOn = codes })
}

// HashKey says what the call is about, for balancers that send calls with the same key to the same
// instance, such as balance.ConsistentHash. An empty key is none.
func HashKey(key string) CallOption {
	var hash uint64
	if key != "" {
		hash = balance.Hash(key)
	}
	return callOption(func(o *callOptions) { o.hashKey = hash })
}

// HashBy computes the key of calls without a HashKey; an empty one is none. The function is called
// once a call, on its caller's goroutine, with what the caller passed: it must not keep or change the
// request, which is nil for a stream that opens without a message. Calls without any key go by their method and encoded request, never by the address of a
// value. As a map may be encoded in another order each time, calls with maps need a key. HashBy(nil) takes
// the function of the client away from a call.
func HashBy(key func(ctx context.Context, method string, request any) string) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.hashBy = key })
}

// HashMetadata takes the key of calls without a HashKey from the metadata that they carry: the value of
// name, see [WithMetadata]. It replaces [HashBy].
func HashMetadata(name string) DialCallOption {
	name = strings.ToLower(name)
	return HashBy(func(ctx context.Context, _ string, _ any) string {
		return outgoing(ctx)[name]
	})
}

// Trailer stores what the server sent beside the reply or error in *md.
func Trailer(md *Metadata) CallOption {
	return callOption(func(o *callOptions) { o.trailer = md })
}

type idempotentOption struct{}

func (idempotentOption) DialOption()                  {}
func (idempotentOption) applyCall(o *callOptions)     { o.idempotent = true }
func (idempotentOption) applyHandle(o *handleOptions) { o.idempotent = true }

// IdempotentOption is valid for a method, a client and a call.
type IdempotentOption interface {
	DialCallOption
	HandleOption
}

// Idempotent declares that running a call twice does the same as running it once, so that it may
// be sent again when its outcome is unknown. Given to a method on the server, clients learn it from
// the method's first reply; given to a client or a call, it holds at once.
func Idempotent() IdempotentOption { return idempotentOption{} }

// Alias gives a method further names.
func Alias(names ...string) HandleOption {
	return handleOption(func(o *handleOptions) { o.aliases = append(o.aliases, names...) })
}

// DeprecatedAlias gives a method further names whose use is counted: see [Server.Stats].
func DeprecatedAlias(names ...string) HandleOption {
	return handleOption(func(o *handleOptions) { o.deprecated = append(o.deprecated, names...) })
}

// OnlyCodecs has the method take calls in these codecs and in no other that the server has. The codecs
// themselves are the server's: see [Codecs].
func OnlyCodecs(c ...codec.Codec) HandleOption {
	return handleOption(func(o *handleOptions) {
		if o.only == nil {
			o.only = new(codecSet)
		}
		for _, c := range c {
			if o.wants(c != nil, "anser.OnlyCodecs: a codec is nil") {
				o.only[c.ID()] = true
			}
		}
	})
}

// codecSet is a set of codecs by their numbers.
type codecSet [256]bool

// Inline runs the method on the goroutine that reads its connection, whatever it costs. Right for
// methods that never block. A handler that blocks all the same is moved away after a few milliseconds.
func Inline() HandleOption {
	return handleOption(func(o *handleOptions) { o.mode = runInline })
}

// Concurrent runs every call of the method on a goroutine of its own.
func Concurrent() HandleOption {
	return handleOption(func(o *handleOptions) { o.mode = runConcurrent })
}
