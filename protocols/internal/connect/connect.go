// Package connect serves the Connect protocol and gRPC-Web with a handler of net/http.
package connect

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// Handler serves the calls of both protocols.
type Handler struct {
	// Cache says how replies to GET may be kept.
	Cache exchange.Cacher

	methods *exchange.Directory
	most    int // bytes of a message
}

// New returns a handler for the methods of a server.
func New(methods *exchange.Directory) *Handler {
	return &Handler{methods: methods, most: methods.Server().MaxMessageSize()}
}

// Serves reports whether a request is one of Connect or gRPC-Web: it has the path of a method,
// such as "/orders.v1.Orders/Place", or a content type of these protocols.
func (h *Handler) Serves(r *http.Request) bool {
	if h.methods.Find(r.URL.EscapedPath()) != nil {
		return true
	}
	kind := mediaType(r.Header.Get("Content-Type"))
	return r.Method == http.MethodPost && (strings.HasPrefix(kind, "application/connect+") || strings.HasPrefix(kind, "application/grpc-web") || kind == "application/proto")
}

// mediaType returns a content type without parameters.
func mediaType(kind string) string {
	kind, _, _ = strings.Cut(kind, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{handler: h, w: w, r: r, control: http.NewResponseController(w)}
	q.method = h.methods.Find(r.URL.EscapedPath())
	exchange.BoundBody(r, q.control)
	kind := r.Header.Get("Content-Type")
	media := mediaType(kind)
	switch {
	case r.Method != http.MethodPost && (r.Method != http.MethodGet || q.method == nil || !q.method.Safe):
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "the method is called with POST", http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet:
		q.get()
	case strings.HasPrefix(media, "application/grpc-web"):
		q.web(media)
	case strings.HasPrefix(media, "application/connect+"):
		q.connectStream(strings.TrimPrefix(media, "application/connect+"))
	case media == "application/proto" || media == "application/json":
		q.unary(strings.TrimPrefix(media, "application/"))
	default:
		w.Header().Set("Accept-Post", "application/proto, application/json, application/connect+proto, application/connect+json")
		http.Error(w, "the content type is not served", http.StatusUnsupportedMediaType)
	}
}

// request is one request with what its headers say.
type request struct {
	handler *Handler
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	method  *exchange.Method // nil: not served
	codec   codec.Codec
	call    anser.ProtocolRequest
}

// prepare finds the codec, and collects the metadata. timeout is in milliseconds, or in the form of
// gRPC.
func (q *request) prepare(name string, stream bool) *anser.Error {
	if q.method == nil {
		return q.notServed()
	}
	if q.method.Stream != stream && !stream {
		return anser.Refuse(anser.Unimplemented, "method %q is a stream: use application/connect+proto or application/connect+json", q.method.Name)
	}
	switch name {
	case "proto":
		q.codec = q.method.ProtobufCodec()
		if !q.method.HasProtobuf() {
			return anser.Refuse(anser.Unimplemented, "method %q has no protobuf messages: use JSON", q.method.Name)
		}
	case "json":
		if q.codec = q.method.JSONCodec(); q.method.Own {
			return anser.Refuse(anser.Unimplemented, "method %q is served in protobuf only", q.method.Name)
		}
	}
	var md exchange.Metadata
	for k, values := range q.r.Header {
		k = strings.ToLower(k)
		if k == "authorization" && q.handler.methods.Server().Authenticates() || k == "content-type" {
			continue
		}
		for _, v := range values {
			md.Add(k, v)
		}
	}
	if q.method.Stream && q.method.Protobuf {
		md.AcceptHeaders()
	}
	q.call.Method, q.call.Codec, q.call.Priority = q.method.Name, q.codec, anser.Normal
	q.call.Oneway, q.call.Stream = q.method.Oneway, q.method.Stream
	q.call.Metadata, q.call.Trace = md.Map(), md.Trace
	q.call.Values = exchange.WithRequest(q.r)
	return exchange.SetKey(&q.call, q.method, q.r.Header.Values(exchange.KeyHeader), q.r.Header.Values(exchange.RepeatedHeader))
}

// notServed returns the server's error for a path of no method.
func (q *request) notServed() *anser.Error {
	name, ok := exchange.NameOf(q.r.URL.EscapedPath())
	if !ok {
		return anser.Refuse(anser.Unimplemented, "the path has not the form /Service/Method")
	}
	pc, fault := q.conn()
	if fault != nil {
		return fault
	}
	return exchange.NotServed(pc, name)
}

// deadline reads Connect-Timeout-Ms.
func (q *request) deadline() *anser.Error {
	text := q.r.Header.Get("Connect-Timeout-Ms")
	if text == "" {
		return nil
	}
	ms, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > 10 {
		return anser.Refuse(anser.InvalidArgument, "the value of Connect-Timeout-Ms is malformed")
	}
	q.call.Deadline = time.Now().Add(time.Duration(ms) * time.Millisecond)
	return nil
}

// conn returns the connection at the server with the identity of the caller.
func (q *request) conn() (*anser.ProtocolConn, *anser.Error) {
	h := host.FromContext(q.r.Context())
	if h == nil {
		return nil, anser.Refuse(anser.Internal, "the request has no connection")
	}
	return h.Login(q.r.Header.Get("Authorization"))
}

// compression returns the compression of a header, or why it is not served.
func compression(name string) (compress.Compressor, *anser.Error) {
	if name == "" || name == "identity" {
		return nil, nil
	}
	c := exchange.Compressor(name)
	if c == nil {
		return nil, anser.Refuse(anser.Unimplemented, "the compression is not served: use %s", exchange.Compressions)
	}
	return c, nil
}

func (q *request) tooLarge() *anser.Error { return exchange.TooLarge(q.handler.most) }

// setFields adds header fields, with a prefix before their names.
func setFields(h http.Header, prefix string, list []hpack.HeaderField) {
	for _, f := range list {
		h.Add(prefix+f.Name, f.Value)
	}
}

// packAbove is the size in bytes from which answers are compressed.
const packAbove = 512
