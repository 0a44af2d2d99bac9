package rpcx

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/stubwire"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
)

// request is a request of a client, before its payload has arrived.
type request struct {
	c      *conn
	head   rpcxwire.Head
	path   string
	name   string           // in the path
	method *exchange.Method // nil: Admit says why
	codec  codec.Codec
	conn   *anser.ProtocolConn
	token  string
	call   anser.ProtocolRequest
	runs   *anser.ProtocolCall // once it has been admitted
}

var (
	messagePack codec.Codec = msgpack.New()
	raw         codec.Codec = codec.Raw{}
	gzip                    = compress.Gzip()
)

// codecOf returns the codec of a serialization for the messages of a method, or nil.
func codecOf(s rpcxwire.Serialization, m *exchange.Method) codec.Codec {
	if m != nil && m.Forwarded && (s == rpcxwire.Raw || s == rpcxwire.MessagePack && !m.Packs) {
		return nil // it cannot be translated
	}
	switch s {
	case rpcxwire.Raw:
		return raw
	case rpcxwire.JSON:
		return exchange.JSON
	case rpcxwire.Protobuf:
		if m == nil {
			return exchange.Protobuf
		}
		return m.ProtobufCodec()
	case rpcxwire.MessagePack:
		return messagePack
	}
	return nil
}

// forwardedForms returns the serializations of a method that is forwarded.
func forwardedForms(m *exchange.Method) string {
	if m.Packs {
		return "MessagePack, JSON or protobuf"
	}
	return "protobuf or JSON"
}

// begin returns the request of a message, and why it is refused before its payload is read, or nil.
func (c *conn) begin(h *rpcxwire.Head, f *rpcxwire.Front) (*request, *anser.Error) {
	name := string(f.Path) + "." + string(f.Method)
	q := &request{c: c, head: *h, path: name[:len(f.Path)], name: name[len(f.Path)+1:], method: c.methods.FindName(name)}
	metadata, err := rpcxwire.Pairs(f.Metadata)
	q.token = metadata[rpcxwire.AuthKey]
	q.codec = codecOf(h.Serialization, q.method)
	q.call = anser.ProtocolRequest{
		Method: name, Priority: anser.Normal, Size: f.Payload, Codec: q.codec, Oneway: h.Has(rpcxwire.Oneway) || q.method != nil && q.method.Oneway,
	}
	if ms, err := strconv.ParseInt(metadata[rpcxwire.TimeoutKey], 10, 64); err == nil {
		q.call.Deadline = time.Now().Add(time.Duration(min(ms, maxMilliseconds)) * time.Millisecond)
	}
	q.call.Metadata, q.call.Trace = metadataOf(metadata)
	var fault *anser.Error
	if q.conn, fault = c.login(q.token); fault == nil {
		fault = exchange.Known(q.conn, &q.call)
	}
	if fault != nil {
		return q, fault
	}
	if err == nil {
		err = h.CheckCompression()
	}
	switch {
	case err != nil:
		return q, q.reject(anser.InvalidArgument, "%v", err)
	case q.method != nil && q.method.Own:
		return q, q.reject(anser.Unimplemented, "method %q is not served to rpcx clients", name)
	case q.codec == nil && h.Serialization < rpcxwire.Thrift && q.method != nil:
		return q, q.reject(anser.Unimplemented, "%v is not served for method %q, which a gateway forwards: use %s (client.Option.SerializeType)", h.Serialization, name, forwardedForms(q.method))
	case q.codec == nil:
		return q, q.reject(anser.Unimplemented, "%v is not served: use MessagePack, JSON, protobuf or raw bytes (client.Option.SerializeType)", h.Serialization)
	case f.Payload > c.most: // Admit says it, in the words of the server
		return q, q.reject(anser.ResourceExhausted, "the request of %d bytes is over the limit of %d (anser.MaxMessage)", f.Payload, c.most)
	}
	return q, nil
}

// reject returns why a request does not run: what the server says, or else the given error, which
// the server counts.
func (q *request) reject(code anser.Code, format string, args ...any) *anser.Error {
	call, fault := q.conn.Admit(&q.call)
	if fault != nil {
		return fault
	}
	why := anser.Refuse(code, format, args...)
	call.Refuse(why)
	return why
}

const maxMilliseconds = int64(100 * 365 * 24 * time.Hour / time.Millisecond)

// login returns the connection at the server for calls with a token. rpcx sends it as it is, or as
// the value of a header authorization.
func (c *conn) login(token string) (*anser.ProtocolConn, *anser.Error) {
	if token != "" && !(len(token) > 7 && strings.EqualFold(token[:7], "Bearer ")) {
		token = "Bearer " + token
	}
	return c.host.Login(token)
}

// metadataOf returns what a handler gets of the metadata of a request. Keys are in lower case.
func metadataOf(all map[string]string) (md anser.Metadata, trace anser.Trace) {
	for k, v := range all {
		switch k = strings.ToLower(k); {
		case strings.HasPrefix(k, "__"), k == stubwire.ValuesKey, k == stubwire.HeadersKey, k == stubwire.AcceptsKey: // rpcx's own, and of stubs
		case k == "traceparent":
			trace, _ = exchange.ParseTrace(v)
		default:
			if md == nil {
				md = make(anser.Metadata)
			}
			md[k] = v
		}
	}
	return md, trace
}

// run decodes the message and makes the server run the call. An error ends the connection.
func (q *request) run(payload []byte) error {
	call, fault := q.admit()
	if fault != nil {
		if fault.Code == anser.Unavailable && q.c.drains() {
			return errLeaves
		}
		q.refuse(fault)
		return nil
	}
	if q.method == nil { // it was registered just now
		q.method = q.c.methods.FindName(q.call.Method)
		q.codec = codecOf(q.head.Serialization, q.method)
	}
	plain := payload
	if q.head.IsGzip() {
		if plain, fault = q.c.methods.Unpack(gzip, payload); fault == nil {
			fault = call.Received(len(plain))
		}
	}
	in := call.NewRequest()
	if fault == nil {
		fault = q.method.Decode(q.codec, plain, in)
	}
	if fault != nil {
		call.Refuse(fault)
		q.refuse(fault)
		return nil
	}
	q.c.mu.Lock()
	q.c.open++
	q.c.mu.Unlock()
	q.runs = call
	call.Run(in, q.respond)
	return nil
}

// admit asks the server whether the call may run. A connection of a credential that drains, because
// its identity ends, is replaced by a new one.
func (q *request) admit() (*anser.ProtocolCall, *anser.Error) {
	call, fault := q.conn.Admit(&q.call)
	if fault == nil || fault.Code != anser.Unavailable || q.token == "" || q.c.drains() {
		return call, fault
	}
	if q.conn, fault = q.c.login(q.token); fault != nil {
		return nil, fault
	}
	return q.conn.Admit(&q.call)
}

// drains reports whether the client should use another server.
func (c *conn) drains() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

// respond sends the answer of a call.
func (q *request) respond(r anser.ProtocolReply) error {
	err := q.answer(r)
	q.c.mu.Lock()
	if q.c.open--; q.c.open == 0 {
		q.c.idle.Broadcast()
	}
	q.c.mu.Unlock()
	return err
}

func (q *request) answer(r anser.ProtocolReply) error {
	if q.head.Has(rpcxwire.Oneway) {
		return nil
	}
	if fault := r.Err; fault != nil {
		q.fail(fault, r.Trailers)
		return nil
	}
	h := rpcxwire.Head{Flags: rpcxwire.Response, Serialization: q.head.Serialization, Seq: q.head.Seq}
	var payload []byte
	if r.Message != nil {
		var fault *anser.Error
		if payload, fault = q.method.Encode(q.codec, nil, q.method.Single(r.Message)); fault != nil {
			q.fail(fault, r.Trailers)
			return fault
		}
	}
	if q.head.IsGzip() && len(payload) > leastPacked {
		if packed, err := gzip.Append(nil, payload); err == nil {
			payload, h.Flags = packed, h.Flags|rpcxwire.Gzip
		}
	}
	var dropped *anser.Error
	hold := func() error {
		if dropped = q.runs.HoldReply(len(payload), q.c.link.Out.Waits()); dropped != nil {
			return dropped
		}
		return nil
	}
	q.c.write(hold, func(b []byte) []byte { return rpcxwire.Append(b, h, q.path, q.name, r.Trailers, payload) })
	if dropped != nil {
		q.fail(dropped, r.Trailers)
		return dropped
	}
	return nil
}

// leastPacked is the size from which rpcx compresses a payload.
const leastPacked = 1024

// refuse answers a call that does not run.
func (q *request) refuse(e *anser.Error) {
	if !q.head.Has(rpcxwire.Oneway) {
		q.fail(e, nil)
	}
}

// fail answers a call with an error. Besides its text, which is all that rpcx knows of one, the
// metadata has the code and whether the call may have run.
func (q *request) fail(e *anser.Error, trailers anser.Metadata) {
	metadata := make(map[string]string, len(trailers)+3)
	for k, v := range trailers {
		metadata[k] = v
	}
	metadata[rpcxwire.ErrorKey] = textOf(e)
	metadata[rpcxwire.CodeKey], metadata[rpcxwire.OutcomeKey] = exchange.CodeName(e.Code), e.Outcome.String()
	h := rpcxwire.Head{Flags: rpcxwire.Response | rpcxwire.Failed, Serialization: q.head.Serialization, Seq: q.head.Seq}
	q.c.write(nil, func(b []byte) []byte { return rpcxwire.Append(b, h, q.path, q.name, metadata, nil) })
}

// textOf returns the text of an error: that of a handler as it is.
func textOf(e *anser.Error) string {
	text := e.Message
	if inner := errors.Unwrap(e); inner != nil && !errors.Is(inner, anser.ErrTooLarge) {
		text = inner.Error()
	}
	if text == "" {
		text = exchange.CodeName(e.Code)
	}
	return text
}

// write appends a message to what leaves. It waits while the client does not read; hold is called
// before that, unless it is nil.
func (c *conn) write(hold func() error, message func([]byte) []byte) error {
	err := c.link.Out.AppendHeld(hold, func(b *bytes.Buffer) error {
		b.Write(message(b.AvailableBuffer()))
		return nil
	})
	if err == nil {
		c.link.Out.Flush()
	}
	return err
}
