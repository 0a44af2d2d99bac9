package anser

import (
	"crypto/tls"
	"log/slog"
	"math"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// Option configures a [Server] or a [Client].
type Option interface {
	ServerOption
	DialOption
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
// default, keeps it open. The other side makes no new connection before it needs one. The
// connection is closed up to two seconds late. Those of a client with handlers stay: they are there
// for calls of the server.
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
// served. The connection is closed up to a second late.
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

// IdempotentOption is valid for a method, a client and a call.
type IdempotentOption interface {
	DialCallOption
	HandleOption
}

// Idempotent declares that running a call twice does the same as running it once, so that it may
// be sent again when its outcome is unknown. Given to a method on the server, clients learn it from
// the method's first reply; given to a client or a call, it holds at once.
func Idempotent() IdempotentOption { return idempotentOption{} }

// Checksums has every frame of the side's connections carry a CRC-32C, in both directions. It is for networks
// that do not keep bytes as they are and connections without TLS: TLS proves every byte already, so with it
// checksums are a waste.
//
// One of the two sides has to be given the option. Every other one of this version puts checksums on its frames
// and checks those it gets when asked; one that cannot is refused: calls of a client fail with Unavailable and
// say why, and were not sent. So there is no connection without checksums that was to have them.
//
// A frame with a wrong checksum, or without one, ends its connection (BAD_CHECKSUM): of the calls that were open
// on it nobody knows whether they ran, unless they had not been sent. What is said before both sides have
// introduced themselves, credentials among it, has no checksum: see docs/security.md.
func Checksums() Option {
	return sideOption(func(o *sideOptions) { o.checksums = true })
}

// Observe adds observers to a side. A client with observers does not share its connections with others.
func Observe(list ...Observer) Option {
	return sideOption(func(o *sideOptions) {
		all := new(observers)
		if o.observers != nil {
			*all = append(*all, *o.observers...)
		}
		if *all = append(*all, list...); len(*all) > 0 {
			o.observers = all
		}
	})
}

// MaxExpansion sets how many times its size a message of more than 1 MiB may have after
// decompression; the default is 100. A message may have 1 MiB and MaxMessage bounds it in any case. Senders that
// are made with this package send a message uncompressed that would gain more than 100 times.
func MaxExpansion(times int) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(times >= 1, "anser.MaxExpansion(%d): want at least 1", times) {
			o.maxExpansion = times
		}
	})
}
