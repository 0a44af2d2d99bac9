package anser

import (
	"crypto/tls"
	"log/slog"
	"math"
	"reflect"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// Option configures a [Server] or a [Client].
type Option interface {
	ServerOption
	DialOption
}

// Logger sets the logger of the side; the default is slog.Default(). Arguments, replies, metadata
// and credentials are never logged.
func Logger(l *slog.Logger) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(l != nil, "anser.Logger: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)") {
			o.log = l
		}
	})
}

// Intercept appends interceptors; the first one is the outermost.
func Intercept(in ...Interceptor) Option {
	return sideOption(func(o *sideOptions) {
		for _, i := range in {
			if o.wants(i != nil, "anser.Intercept: an interceptor is nil") {
				o.interceptors = append(o.interceptors, i)
			}
		}
	})
}

// Codecs adds codecs to raw, binary, JSON, protobuf and MessagePack, which are always available. A
// codec replaces another one with the same number. A client prefers the added ones if they fit the
// types of a call.
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

// TLS makes the side use TLS with the given configuration, which must not be changed afterwards.
// The minimum version is TLS 1.3 unless the configuration sets one; less than TLS 1.2 is refused.
// Both sides use the protocol [ALPN] unless the configuration sets protocols. A client verifies the
// server by the name or IP address that it dials, unless the configuration has a ServerName; a
// VerifyConnection function finds either in the ServerName of the connection state.
//
// On the server, connections that already use TLS, such as those of QUIC or of a listener of
// crypto/tls, get no second TLS. Package transport/tlsfiles makes configurations that follow files
// on disk.
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

// MaxMessage sets the largest encoded message that the side accepts, in bytes; the default is 4
// MiB. A compressed message counts with its decompressed size. A sender is limited by what its peer
// accepts.
func MaxMessage(bytes int) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(bytes >= 1 && bytes <= maxMaxMessage, "anser.MaxMessage(%d): want 1 to %d bytes", bytes, maxMaxMessage) {
			o.maxMessage = bytes
		}
	})
}

// maxMaxMessage leaves a frame a length that fits a signed 32-bit integer.
const maxMaxMessage = math.MaxInt32 - frameOverhead

// Keepalive sets the time without received data after which the side sends a ping (default 30 s),
// and the time that it waits for an answer before it closes the connection (default 10 s).
func Keepalive(idle, answer time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(idle > 0 && answer > 0, "anser.Keepalive(%v, %v): want times above 0", idle, answer) {
			o.keepaliveIdle, o.keepaliveAnswer = idle, answer
		}
	})
}

// HandshakeTimeout bounds the handshake of a connection, including TLS; the default is 5 s.
func HandshakeTimeout(d time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(d > 0, "anser.HandshakeTimeout(%v): want a time above 0", d) {
			o.handshakeTimeout = d
		}
	})
}

// IdleTimeout closes a connection that has had no open call for the time d; 0, the default, keeps
// it open. The peer makes no new connection before it needs one. The connection is closed up to two
// seconds late. Connections of a client with handlers are kept: the server may call over them.
func IdleTimeout(d time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(d >= 0, "anser.IdleTimeout(%v): want at least 0", d) {
			o.idleTimeout = d
		}
	})
}

// WriteStall sets how long a write may make no progress before the connection is closed; the
// default is 10 s.
func WriteStall(d time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(d > 0, "anser.WriteStall(%v): want a time above 0", d) {
			o.writeStall = d
		}
	})
}

// ReadTimeout bounds the time from the first byte of a frame to its last one; 0, the default, sets
// no limit. When it expires, the connection is closed with TIMEOUT, and the calls on it fail. A
// frame carries a whole request or reply, or one message of a stream, so the time must suffice for
// a message of [MaxMessage] bytes on the slowest link that is served. The time in which this side
// does not read, as the other side is slow to take what it is sent, does not count. The connection
// is closed up to a second late.
//
// [WriteStall] ends frames that arrive at less than 4 KiB per second in any case. ReadTimeout does
// not apply to a connection between frames: [Keepalive] detects a dead peer, [IdleTimeout] closes
// unused connections, and [HandshakeTimeout] bounds the time before the first call.
func ReadTimeout(d time.Duration) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(d >= 0, "anser.ReadTimeout(%v): want at least 0", d) {
			o.readTimeout = d
		}
	})
}

// FlowControlWindows sets how many bytes of messages may arrive before the application receives
// them: per stream, and for all streams of a connection together, each from 4 KiB to 2 GiB - 1. The
// defaults are 256 KiB and 1 MiB, where the windows of up to about ten streams of a connection grow
// to 1 MiB each while their readers are fast; windows that are set explicitly do not grow. A larger
// window lets a stream go faster over a long path: it transfers at most one window per round trip.
// To keep a stream with a slow reader from delaying others, the side allows more for the connection
// if necessary; the limit of each stream is kept.
func FlowControlWindows(stream, connection int) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(min(stream, connection) >= minWindow && max(stream, connection) <= wire.MaxWindow,
			"anser.FlowControlWindows(%d, %d): want from %d to %d bytes each", stream, connection, minWindow, wire.MaxWindow) {
			o.streamWindow, o.connWindow, o.windowsGrow = stream, connection, false
		}
	})
}

const minWindow = 4 << 10

// IdempotentOption is valid for a method, a client and a call.
type IdempotentOption interface {
	DialCallOption
	HandleOption
}

// Idempotent declares that running a call twice has the same effect as running it once, so that it
// may be sent again when its outcome is unknown. If it is given to a method on the server, clients
// learn it from the method's first reply; if it is given to a client or a call, it applies at once.
// A small call that needs a connection is then sent with its first bytes, which saves a round trip.
func Idempotent() IdempotentOption { return idempotentOption{} }

// Checksums protects every frame of the side's connections with a CRC-32C, in both directions. It
// is for connections without TLS over networks that corrupt data; with TLS it is a waste, as TLS
// already authenticates every byte.
//
// It is enough to give the option to one of the two sides. A peer of this version adds and verifies
// checksums when asked. A peer that cannot is refused: calls of a client fail with Unavailable and
// the reason, and were not sent. So the option never results in a connection without checksums.
//
// A frame with a wrong checksum, or without one, ends its connection (BAD_CHECKSUM): the outcome of
// the calls that were open on it is unknown, unless they had not been sent. Data that is exchanged
// before both sides have sent their settings, including credentials, has no checksum: see
// docs/security.md.
func Checksums() Option {
	return sideOption(func(o *sideOptions) { o.checksums = true })
}

// Observe adds observers to a side. An observer without any function is an error. A client with
// observers does not share its connections with other clients.
func Observe(list ...Observer) Option {
	return sideOption(func(o *sideOptions) {
		for i := range list {
			o.wants(!reflect.ValueOf(list[i]).IsZero(), "anser.Observe: an observer has no functions; that of a meter or exporter needs its constructor, such as telemetry.New")
		}
		o.observers = newObservers(o.observers, list)
	})
}

// MaxExpansion sets the limit for the size of a message after decompression, relative to its
// compressed size; the default is 100 times. A message may have up to 1 MiB in any case, and
// MaxMessage is the upper limit. Senders that use this package send a message uncompressed if
// compression would make it more than 100 times smaller.
func MaxExpansion(times int) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(times >= 1, "anser.MaxExpansion(%d): want at least 1", times) {
			o.maxExpansion = times
		}
	})
}
