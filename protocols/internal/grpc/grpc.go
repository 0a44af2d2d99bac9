// Package grpc serves gRPC over HTTP/2.
package grpc

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// Conn serves the gRPC requests on one connection.
type Conn struct {
	Host    *host.Conn
	Methods *exchange.Directory
	most    int             // bytes of a message
	values  context.Context // of handlers, with host
	host    string          // that the last request has asked for; owned by the reader, as values is
}

// NewConn returns the gRPC side of a connection.
func NewConn(h *host.Conn, methods *exchange.Directory) *Conn {
	return &Conn{Host: h, Methods: methods, most: h.Server.MaxMessageSize(), values: host.NewContext(context.Background(), h)}
}

// valuesOf returns the values of the handler of a request for a host. Most clients ask for one.
func (c *Conn) valuesOf(authority string) context.Context {
	if authority != c.host {
		c.host, c.values = authority, exchange.WithHost(host.NewContext(context.Background(), c.Host), authority)
	}
	return c.values
}

// Is reports whether a content type is that of gRPC.
func Is(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// prefixSize is the size of the flag and the length before a message.
const prefixSize = 5

// request is what the header of a request says.
type request struct {
	conn           *Conn
	st             *h2.Stream
	method         *exchange.Method
	codec          codec.Codec
	kind           string              // content type of the answer
	packed         compress.Compressor // of the client's messages, or nil
	unknownPacking bool                // the client's compression is not served
	packing        compress.Compressor // of the answers, or nil
	encoding       string
	call           anser.ProtocolRequest
	token          string
}

// Request handles the header of a request; see [h2.Config].
func (c *Conn) Request(st *h2.Stream, r *h2.Request, end bool) h2.Receiver {
	q := &request{conn: c, st: st, kind: "application/grpc", token: r.Authorization}
	if fault := q.parse(r); fault != nil {
		q.refuse(fault)
		return nil
	}
	if q.method.Stream {
		s := newStream(q)
		s.open()
		if end {
			s.Data(nil, true)
		}
		return s
	}
	u := &unary{request: q}
	if !u.login() {
		return nil
	}
	if end {
		u.Data(nil, true)
	}
	return u
}

// parse reads the header.
func (q *request) parse(r *h2.Request) *anser.Error {
	if r.Method != "POST" {
		return anser.Refuse(anser.Unimplemented, "gRPC needs POST, and not %s", r.Method)
	}
	if q.method = q.conn.Methods.Find(r.Path); q.method == nil {
		name, ok := exchange.NameOf(r.Path)
		if !ok {
			return anser.Refuse(anser.Unimplemented, "the path has not the form /Service/Method")
		}
		q.method = &exchange.Method{MethodType: anser.MethodType{Name: name}} // the server refuses it
	}
	kind, _, _ := strings.Cut(r.ContentType, ";")
	kind = strings.TrimSpace(kind)
	_, sub, _ := strings.Cut(kind, "+")
	switch sub {
	case "", "proto":
		q.codec = q.method.ProtobufCodec()
		if !q.method.HasProtobuf() && q.method.Request != nil {
			return anser.Refuse(anser.Unimplemented, "method %q has no protobuf messages: use JSON (application/grpc+json)", q.method.Name)
		}
	case "json":
		if q.codec = q.method.JSONCodec(); q.method.Own {
			return anser.Refuse(anser.Unimplemented, "method %q is served in protobuf only", q.method.Name)
		}
	default:
		return anser.Refuse(anser.Unimplemented, "the content type is not served: use application/grpc+proto or application/grpc+json")
	}
	q.kind = kind
	if r.Encoding != "" && r.Encoding != "identity" {
		if q.packed = exchange.Compressor(r.Encoding); q.packed == nil {
			q.unknownPacking = true
			return anser.Refuse(anser.Unimplemented, "the compression is not served: use %s", exchange.Compressions)
		}
	}
	if q.packed != nil && (r.Accept == "" || exchange.Accepts(r.Accept, r.Encoding)) {
		q.packing, q.encoding = q.packed, r.Encoding
	} else if r.Accept != "" && r.Accept != "identity" {
		q.packing, q.encoding = exchange.Choose(r.Accept)
	}
	if r.Timeout != "" {
		d, ok := exchange.ParseTimeout(r.Timeout)
		if !ok {
			return anser.Refuse(anser.Internal, "the value of grpc-timeout is malformed")
		}
		q.call.Deadline = time.Now().Add(d)
	}
	if len(r.Header) > 0 || q.method.Stream || r.Authorization != "" {
		var md exchange.Metadata
		for _, f := range r.Header {
			md.Add(f.Name, f.Value)
		}
		if r.Authorization != "" && !q.conn.Host.Server.Authenticates() {
			md.Add("authorization", r.Authorization)
		}
		if q.method.Stream && q.method.Protobuf {
			md.AcceptHeaders()
		}
		q.call.Metadata, q.call.Trace = md.Map(), md.Trace
	}
	q.call.Method, q.call.Codec, q.call.Priority = q.method.Name, q.codec, anser.Normal
	q.call.Oneway, q.call.Stream, q.call.Values = q.method.Oneway, q.method.Stream, q.conn.valuesOf(r.Authority)
	if !q.method.Deduplicates {
		return nil
	}
	var keys, repeated []string
	for _, f := range r.Header {
		switch f.Name {
		case exchange.KeyHeader:
			keys = append(keys, f.Value)
		case exchange.RepeatedHeader:
			repeated = append(repeated, f.Value)
		}
	}
	return exchange.SetKey(&q.call, q.method, keys, repeated)
}

// refuse answers a request that was not admitted.
func (q *request) refuse(e *anser.Error) {
	if e.Code == anser.Unavailable {
		// The client may send it again at once, over another connection.
		q.st.Reset(h2.RefusedStream)
		return
	}
	q.fail(e, nil)
}

// fail answers with an error.
func (q *request) fail(e *anser.Error, trailers anser.Metadata) {
	headers, fields := exchange.Trailers(trailers)
	fields = append(exchange.StatusFields(e), fields...)
	if len(headers) > 0 {
		q.st.Respond(&h2.Header{Status: "200", Type: q.kind, Fields: headers}, nil, fields)
		return
	}
	if q.packed == nil && q.unknownPacking {
		fields = append(fields, hpack.HeaderField{Name: "grpc-accept-encoding", Value: exchange.Compressions})
	}
	q.st.Respond(&h2.Header{Status: "200", Type: q.kind, Fields: fields}, nil, nil)
}

// okStatus is the status of a call that succeeded.
var okStatus = []hpack.HeaderField{{Name: "grpc-status", Value: "0"}}

// appendMessage appends a message with its prefix. A panic of a message that encodes itself is an
// error.
func (q *request) appendMessage(b []byte, msg any) ([]byte, error) {
	b = append(b, 0, 0, 0, 0, 0)
	b, fault := q.method.Encode(q.codec, b, msg)
	if fault != nil {
		return b, fault
	}
	if q.packing != nil && len(b) > packAbove {
		packed, err := q.packing.Append(make([]byte, prefixSize, len(b)), b[prefixSize:])
		if err == nil && len(packed) < len(b) {
			packed[0] = 1
			b = append(b[:0], packed...)
		}
	}
	n := len(b) - prefixSize
	b[1], b[2], b[3], b[4] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return b, nil
}

// packAbove is the size in bytes from which answers are compressed.
const packAbove = 512

// header returns the header of the answer.
func (q *request) header() *h2.Header {
	h := &h2.Header{Status: "200", Type: q.kind}
	if q.packing != nil {
		h.Fields = []hpack.HeaderField{{Name: "grpc-encoding", Value: q.encoding}}
	}
	return h
}

// unpack returns the message of a payload with this flag.
func (q *request) unpack(flag byte, payload []byte) ([]byte, *anser.Error) {
	switch {
	case flag == 0:
		return payload, nil
	case flag != 1:
		return nil, anser.Refuse(anser.Internal, "a message has an unknown flag")
	case q.packed == nil:
		return nil, anser.Refuse(anser.Internal, "a message is compressed, and grpc-encoding names no compression")
	}
	return q.conn.Methods.Unpack(q.packed, payload)
}

func (q *request) tooLarge() *anser.Error { return exchange.TooLarge(q.conn.most) }

// decode decodes a message.
func (q *request) decode(payload []byte, into any) (fault *anser.Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = anser.Refuse(anser.Internal, "the codec panicked on the message")
		}
	}()
	if err := q.codec.Unmarshal(payload, into); err != nil {
		return anser.Refuse(anser.InvalidArgument, "decode the message with %s: %v", q.codec.Name(), err)
	}
	return nil
}

// buffers are for encoding answers.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is the size of a buffer that is kept.
const maxKept = 64 << 10
