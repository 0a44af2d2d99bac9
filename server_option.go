package anser

import (
	"fmt"
	"math"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// ServerOption configures a [Server].
type ServerOption interface{ applyServer(*serverOptions) }

// HandleOption configures one method of a [Server].
type HandleOption interface{ applyHandle(*handleOptions) }

type serverOption func(*serverOptions)

func (f serverOption) applyServer(o *serverOptions) { f(o) }

type handleOption func(*handleOptions)

func (f handleOption) applyHandle(o *handleOptions) { f(o) }

func (s sides) applyHandle(o *handleOptions) { o.sides = s }

type serverOptions struct {
	sideOptions
	maxInFlight   int
	queueTime     time.Duration // 0: no limit
	adaptive      *limitBounds  // nil: no limit
	maxCalls      int
	maxConns      int
	maxHandshakes int
	maxStreams    int
	maxMemory     int // 0: a part of the process's memory
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
	authorizer     Authorizer // nil: every client may call every method
	addresses      addressRules
	protocols      []Protocol
	forwarder      callForwarder // nil: calls of other methods are refused
	samplers       samplers
}

func defaultServerOptions() serverOptions {
	return serverOptions{
		sideOptions: defaultSideOptions(), maxInFlight: 10_000, maxCalls: 10_000, maxConns: 100_000, maxHandshakes: 256, maxStreams: int(wire.DefaultSettings().MaxStreams),
		grace: 30 * time.Second, signals: true, describe: true, minPing: 5 * time.Second, sessionGrace: 30 * time.Second,
		compressors: compress.BuiltIn(), replies: newCompression(nil, nil), memory: defaultReplyMemory,
	}
}

type handleOptions struct {
	only        *codecSet // nil: all codecs of the server
	idempotent  bool
	mode        runMode
	aliases     []string
	deprecated  []string
	params      []string
	once        bool          // duplicates are answered from memory
	maxInFlight int           // 0: no limit
	queueTime   time.Duration // 0: the server's
	adaptive    *limitBounds  // nil: the server's
	sides       sides         // of a stream method
	contract    *contract.Source
	mistakes    []error // invalid options
}

// wants returns ok, and records a mistake if it is false.
func (o *handleOptions) wants(ok bool, format string, args ...any) bool {
	if !ok {
		o.mistakes = append(o.mistakes, fmt.Errorf(format, args...))
	}
	return ok
}

// MaxStreams sets how many streams may be open at once on one connection of the server; the default
// is 1,000. A further one is refused with ResourceExhausted. With 0 the server offers no streams.
func MaxStreams(n int) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(n >= 0, "anser.MaxStreams(%d): want at least 0", n) {
			o.maxStreams = n
		}
	})
}

// MaxInFlight sets how many calls the server runs at once; the default is 10,000. A further one is
// refused with ResourceExhausted. An open stream counts as one. Calls that run on the reader
// goroutine of their connection do not count: there is at most one per connection.
//
// Given to a method, it bounds the calls of that method, wherever they run; there is no default.
// Calls that wait for their turn under an [AdaptiveLimit] count too.
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

// MaxCalls sets how many calls a client may have open at once on one connection; the default is
// 10,000. A client opens another connection before it reaches the limit, up to eight, and fails
// calls beyond that. The limit for all connections together is [MaxInFlight].
func MaxCalls(n int) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(n >= 1 && n <= math.MaxInt32, "anser.MaxCalls(%d): want 1 to %d", n, math.MaxInt32) {
			o.maxCalls = n
		}
	})
}

// MaxConns sets how many connections the server holds; the default is 100,000. A further one is
// closed with the reason OVERLOAD.
func MaxConns(n int) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(n >= 1, "anser.MaxConns(%d): want at least 1", n) {
			o.maxConns = n
		}
	})
}

// MaxHandshakes sets how many connections may be in their handshake at once; the default is 256. A
// further connection replaces the one that has kept the server waiting longest, if that is more
// than 50 ms for its first bytes, or 500 ms for later messages of a TLS handshake; the replaced
// connection is closed with the reason OVERLOAD. Until one can be replaced, further connections
// wait in the listener's queue.
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

// MinPing sets the minimum time between the pings of a client; the default is 5 s. A client that
// sends more than three in a row faster than that is disconnected.
func MinPing(d time.Duration) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(d >= 0, "anser.MinPing(%v): want at least 0", d) {
			o.minPing = d
		}
	})
}

// InsecurePublic lets the server listen on addresses other than loopback without TLS or without
// authentication; see [Protection] for what counts as either. Without authentication, any client
// that reaches the address can call every method. Without TLS, an attacker on the network path can
// read and change what clients send, including their credentials.
func InsecurePublic() ServerOption {
	return serverOption(func(o *serverOptions) { o.insecure = true })
}

// ReusePort lets several processes listen on one TCP address (SO_REUSEPORT). Each has a queue of
// its own, and Linux distributes new connections over them; on macOS the process that started to
// listen last gets all. A process that replaces another one can thus start before that one ends. On
// other systems Listen fails.
func ReusePort() ServerOption {
	return serverOption(func(o *serverOptions) { o.reusePort = true })
}

// NoSignals keeps ListenAndServe from draining the server on SIGTERM and SIGINT.
func NoSignals() ServerOption {
	return serverOption(func(o *serverOptions) { o.signals = false })
}

// NoDescribe keeps the server from describing its methods to clients: it disables [MethodsName] and
// [ContractName], and what the server's [Protocols] say of the methods, such as reflection and
// OpenAPI. Errors about an unknown method name no similar one.
func NoDescribe() ServerOption {
	return serverOption(func(o *serverOptions) { o.describe = false })
}

// Announce registers the server while it serves. Service is required; an empty Address is replaced
// by the listener's. It may be given several times, for several registries or services.
func Announce(r registry.Registrar, in registry.Instance) ServerOption {
	return serverOption(func(o *serverOptions) {
		if !o.wants(r != nil, "anser.Announce: the registrar is nil: leave the option out") {
			return
		}
		o.announcements = append(o.announcements, announcement{r, in.Clone()})
	})
}

// Alias gives a method additional names.
func Alias(names ...string) HandleOption {
	return handleOption(func(o *handleOptions) { o.aliases = append(o.aliases, names...) })
}

// DeprecatedAlias gives a method additional names whose use is counted: see [Server.Stats].
func DeprecatedAlias(names ...string) HandleOption {
	return handleOption(func(o *handleOptions) { o.deprecated = append(o.deprecated, names...) })
}

// OnlyCodecs restricts the method to calls in these codecs. The codecs themselves are those of the
// server: see [Codecs].
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

// Inline runs the method on the reader goroutine of its connection, whatever it costs. It is meant
// for methods that never block. A handler that blocks nevertheless is moved to another goroutine
// after a few milliseconds.
func Inline() HandleOption {
	return handleOption(func(o *handleOptions) { o.mode = runInline })
}

// Concurrent runs every call of the method on a goroutine of its own.
func Concurrent() HandleOption {
	return handleOption(func(o *handleOptions) { o.mode = runConcurrent })
}

// Authenticate makes the server accept only clients that one of the authenticators accepts. They
// are called in order until one returns an identity; several options add up. A client presents a
// credential with the option [Credentials], or else its certificate, if TLS requires one. Other
// clients are refused in their handshake, all with the same message, before any call is read;
// [ServerStats.Unauthenticated] and the log have the reasons.
//
// When an identity ends and the client has not renewed it, further calls are refused at once with
// Unauthenticated. Everything open ends within two seconds: streams, running calls, whose callers
// get Unauthenticated with the outcome Unknown, and the contexts of their handlers. Nothing more is
// sent to the client either: calls of its [Session] fail with Unauthenticated until it renews. The
// connection is closed [HandshakeTimeout] later. [IdentityFrom] returns a handler's client. Calls
// of servers to their clients (see [Handlers]) are not affected: there TLS has verified the server.
func Authenticate(a ...Authenticator) ServerOption {
	return serverOption(func(o *serverOptions) {
		for _, a := range a {
			if o.wants(a != nil, "anser.Authenticate: an authenticator is nil") {
				o.authenticators = append(o.authenticators, a)
			}
		}
	})
}

// Authorize makes the server refuse calls that a does not allow, with PermissionDenied and before
// the message is decoded. This includes [MethodsName], which lists only the methods that its caller
// may call. After a change of Version, open calls and streams that are no longer allowed end within
// two seconds: the caller gets PermissionDenied with the outcome Unknown, and the context of the
// handler ends. A renewed identity that allows less has the same effect at once. Authorize requires
// [Authenticate].
func Authorize(a Authorizer) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(a != nil, "anser.Authorize: the authorizer is nil") &&
			o.wants(o.authorizer == nil, "anser.Authorize is given twice: combine the two into one Authorizer") {
			o.authorizer = a
		}
	})
}

// Sampled adds an interceptor for a part of the server's calls: those for which choose returns
// true. The others do not pay for it; with no other interceptor they allocate nothing. It is
// outside of the interceptors of [Intercept]. It may be given several times, eight at most; the
// first one is the outermost.
//
// choose gets the canonical name of the method. It is called for each call, concurrently and often
// on the goroutine that reads a connection, so it must be fast. Calls of the built-in methods, and
// calls that are forwarded (see [Forward]), are not offered to it.
func Sampled(choose func(method string) bool, in Interceptor) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(choose != nil, "anser.Sampled: the function is nil") &&
			o.wants(in != nil, "anser.Sampled: the interceptor is nil") &&
			o.wants(len(o.samplers) < maxSamplers, "anser.Sampled: it is given more than %d times", maxSamplers) {
			o.samplers = append(o.samplers, sampler{choose, in})
		}
	})
}

func (f sideOption) applyServer(o *serverOptions) { f(&o.sideOptions) }

func (idempotentOption) applyHandle(o *handleOptions) { o.idempotent = true }
