package otel

import (
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/semconv"
)

// The keys of the semantic conventions for RPC that spans and metrics have.
const (
	KeySystem      = attribute.Key("rpc.system.name")
	KeyMethod      = attribute.Key("rpc.method")
	KeyStatus      = attribute.Key("rpc.status_code")
	KeyErrorType   = attribute.Key("error.type")
	KeyServer      = attribute.Key("server.address")
	KeyServerPort  = attribute.Key("server.port")
	KeyPeer        = attribute.Key("network.peer.address")
	KeyPeerPort    = attribute.Key("network.peer.port")
	ClientDuration = "rpc.client.call.duration" // name of the metric of clients
	ServerDuration = "rpc.server.call.duration" // name of the metric of servers
)

// The keys of Anser's own attributes. Times are in seconds.
const (
	KeyOutcome  = attribute.Key("anser.outcome")          // of a call or an attempt that failed
	KeyAttempt  = attribute.Key("anser.attempt")          // number of the last attempt, from 0
	KeyReason   = attribute.Key("anser.pick.reason")      // why an attempt went to its instance; see package balance
	KeyBalancer = attribute.Key("anser.pick.balancer")    // name of the client's balancer
	KeyRoute    = attribute.Key("anser.pick.route")       // name of the router's choice of instances
	KeyStream   = attribute.Key("anser.stream")           // true for a stream
	KeyOneway   = attribute.Key("anser.oneway")           // true for a oneway call
	KeyForward  = attribute.Key("anser.forward")          // true for a call that a server forwards
	KeyReplayed = attribute.Key("anser.replayed")         // true for the reply of an earlier call
	KeyTail     = attribute.Key("anser.sampled_by_tail")  // true for a span that [Tail] recorded
	KeyQueue    = attribute.Key("anser.queue.duration")   // until a call began to run
	KeyDecode   = attribute.Key("anser.decode.duration")  // decoding of the request
	KeyHandle   = attribute.Key("anser.handle.duration")  // interceptors and handler
	KeyEncode   = attribute.Key("anser.encode.duration")  // encoding of the reply
	KeyTook     = attribute.Key("anser.attempt.duration") // of an attempt
	KeyBackoff  = attribute.Key("anser.attempt.backoff")  // after an attempt, until the next one
	KeyRequest  = attribute.Key("anser.request.size")     // bytes on the wire
	KeyReply    = attribute.Key("anser.reply.size")       // bytes on the wire

	// AttemptEvent is the name of the event that a client's span has for each attempt of a call
	// with more than one.
	AttemptEvent = "anser.attempt"

	system = "anser" // value of KeySystem
	scope  = "github.com/anser-rpc/anser/telemetry/otel"
)

// StatusOf returns a code as the conventions and gRPC write it, such as DEADLINE_EXCEEDED.
func StatusOf(c anser.Code) string { return semconv.Status(uint8(c)) }

// isError reports whether a code is a failure, as the conventions for gRPC have it: on a client
// every one but OK, on a server the codes of its own failures.
func isError(c anser.Code, server bool) bool {
	if !server {
		return c != anser.OK
	}
	switch c {
	case anser.Unknown, anser.DeadlineExceeded, anser.Unimplemented, anser.Internal, anser.Unavailable, anser.DataLoss:
		return true
	}
	return false
}

// MethodOf returns the name of a method as the conventions write it: Arith.Mul is Arith/Mul. The
// name of a method that a server does not serve is "_OTHER". The result is valid UTF-8.
func MethodOf(name string) string { return clean(semconv.Method(name)) }

// maxText is the size of a text that others may choose, in bytes, from which on it is cut.
const maxText = 1024

// clean returns a text that protobuf can encode, and that is not too long: callers of a server that
// forwards calls choose names, a registry addresses and rules. Otherwise one text would cost all
// spans and metrics that are sent together with it.
func clean(text string) string {
	if len(text) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// serverOf returns the address and the port of the target of a client. What a registry resolves has
// the name of the service as its address; the port is 0 if there is none.
func serverOf(target string) (address string, port int) {
	if scheme, rest, ok := strings.Cut(target, "://"); ok {
		u, err := url.Parse(target)
		switch {
		case err != nil: // without what may be a password
			return rest[strings.LastIndexByte(rest, '@')+1:], 0
		case scheme == "unix":
			return u.Path, 0
		}
		if name := path.Base(u.Path); name != "." && name != "/" {
			return name, 0
		}
		target = u.Host
	}
	if strings.Contains(target, ",") {
		return target, 0
	}
	return semconv.Address(target)
}

// appendServer appends the attributes of a target.
func appendServer(attrs []attribute.KeyValue, target string) []attribute.KeyValue {
	return appendAddress(attrs, KeyServer, KeyServerPort, target, serverOf)
}

// targetAttributes are the attributes of a target, as appendServer returns them.
type targetAttributes struct {
	target string
	list   []attribute.KeyValue
}

// appendTarget is appendServer for the spans of one client after the other: it keeps the attributes
// of the latest target, as a target takes long to parse.
func (o *Exporter) appendTarget(attrs []attribute.KeyValue, target string) []attribute.KeyValue {
	known := o.target.Load()
	if known == nil || known.target != target {
		known = &targetAttributes{target, appendServer(nil, target)}
		o.target.Store(known)
	}
	return append(attrs, known.list...)
}

// appendPeer appends the attributes of the address of the other side.
func appendPeer(attrs []attribute.KeyValue, address string) []attribute.KeyValue {
	return appendAddress(attrs, KeyPeer, KeyPeerPort, address, semconv.Address)
}

func appendAddress(attrs []attribute.KeyValue, key, portKey attribute.Key, s string, split func(string) (string, int)) []attribute.KeyValue {
	address, port := split(s)
	if address == "" {
		return attrs
	}
	attrs = append(attrs, key.String(clean(address)))
	if port != 0 {
		attrs = append(attrs, portKey.Int(port))
	}
	return attrs
}
