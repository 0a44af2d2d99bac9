package anser

import (
	"fmt"
	"math"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/registry"
)

// ServerOption configures a [Server].
type ServerOption interface{ applyServer(*serverOptions) }

// HandleOption configures one method of a [Server].
type HandleOption interface{ applyHandle(*handleOptions) }

type serverOption func(*serverOptions)

func (f serverOption) applyServer(o *serverOptions) { f(o) }

type handleOption func(*handleOptions)

func (f handleOption) applyHandle(o *handleOptions) { f(o) }

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

// Authenticate has the server take connections only of clients that one of the authenticators knows. They are
// asked in their order until one says who it is; several options add up. A client shows a credential with the
// option [Credentials], or else its certificate, if TLS demands one. All others are refused in their handshake with the
// same words, before any of their calls is looked at; [ServerStats.Unauthenticated] and the log say why.
//
// When an identity ends that the client does not renew, its further calls are refused at once with Unauthenticated. What
// is open ends within two seconds: streams, calls that run, whose callers get Unauthenticated with the outcome Unknown,
// and the contexts of their handlers. The client is sent nothing either: calls of its [Session] fail with
// Unauthenticated until it renews. After [HandshakeTimeout] more the connection is closed. [IdentityFrom] tells a
// handler who calls. Calls of servers to their clients (see [Handlers]) are another thing: there TLS has proven the server.
func Authenticate(a ...Authenticator) ServerOption {
	return serverOption(func(o *serverOptions) {
		for _, a := range a {
			if o.wants(a != nil, "anser.Authenticate: an authenticator is nil") {
				o.authenticators = append(o.authenticators, a)
			}
		}
	})
}

// Authorize has the server refuse, with PermissionDenied and before the message is looked at, what a does not
// allow. That holds for [MethodsName] too, which lists only what its caller may call. A change of the
// Version ends what is open and no longer allowed within two seconds, calls that run as well as streams: the caller gets
// PermissionDenied with the outcome Unknown, and the context of the handler ends. A renewed identity that allows less
// does the same at once. It needs [Authenticate].
func Authorize(a Authorizer) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(a != nil, "anser.Authorize: the authorizer is nil") &&
			o.wants(o.authorizer == nil, "anser.Authorize is given twice: combine the two into one Authorizer") {
			o.authorizer = a
		}
	})
}

func (f sideOption) applyServer(o *serverOptions) { f(&o.sideOptions) }

func (idempotentOption) applyHandle(o *handleOptions) { o.idempotent = true }
