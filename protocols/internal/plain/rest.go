// Package plain serves calls in JSON over HTTP, for callers without any library: POST
// /Service.Method with a message, answered with a message, or with several for a stream of the
// server.
package plain

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// Handler serves the calls.
type Handler struct {
	// Routes are the paths of annotations.
	Routes *Routes
	// PingEvery is how often a silent client of a WebSocket is asked whether it is there.
	PingEvery time.Duration
	// Cache says how replies to GET may be kept.
	Cache exchange.Cacher

	methods *exchange.Directory
	most    int // bytes of a message
}

// New returns a handler for the methods of a server.
func New(methods *exchange.Directory) *Handler {
	return &Handler{Routes: NewRoutes(methods), PingEvery: 30 * time.Second, methods: methods, most: methods.Server().MaxMessageSize()}
}

// Serves reports whether the path is that of a method, such as "/orders.v1.Orders.Place".
func (h *Handler) Serves(r *http.Request) bool { return h.find(r) != nil }

func (h *Handler) find(r *http.Request) *exchange.Method {
	path := r.URL.EscapedPath()
	if len(path) < 2 || strings.Contains(path, "%") {
		return nil
	}
	if m := h.methods.FindName(path[1:]); m != nil && !m.Own {
		return m
	}
	return nil
}

// The types of content.
const (
	typeJSON   = "application/json"
	typeLines  = "application/x-ndjson"
	typeEvents = "text/event-stream"
)

// request is one request.
type request struct {
	handler *Handler
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	method  *exchange.Method
	route   *Route   // nil: the path is the name of the method
	values  []string // of the route's variables
	bare    bool     // there is no content type
	call    anser.ProtocolRequest
}

func (h *Handler) request(w http.ResponseWriter, r *http.Request) *request {
	return &request{handler: h, w: w, r: r, control: http.NewResponseController(w)}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := h.request(w, r)
	q.method = h.find(r)
	if wantsSocket(r) {
		q.socket()
		return
	}
	q.serve()
}

// serve serves the request to its method.
func (q *request) serve() {
	exchange.BoundBody(q.r, q.control)
	kind, readable := exchange.ContentType(q.r.Header.Get("Content-Type"))
	q.bare = kind == ""
	readable = readable || kind != typeJSON && kind != typeLines
	if q.route == nil && q.r.Method == http.MethodOptions {
		q.w.Header().Set("Allow", "OPTIONS, POST")
		q.w.WriteHeader(http.StatusNoContent)
		return
	}
	if fault := exchange.CheckBody(q.w, q.r, readable, kind != typeLines); fault != nil {
		q.problem(http.StatusUnsupportedMediaType, fault)
		return
	}
	if status, fault := q.check(kind); fault != nil {
		q.problem(status, fault)
		return
	}
	if fault := q.prepare(); fault != nil {
		q.fail(fault, nil)
		return
	}
	pc, fault := host.FromContext(q.r.Context()).Login(q.r.Header.Get("Authorization"))
	if fault == nil {
		fault = exchange.Known(pc, &q.call)
	}
	if fault != nil {
		q.fail(fault, nil)
		return
	}
	if q.method.Stream {
		q.stream(pc, kind == typeLines)
		return
	}
	q.unary(pc)
}

// check returns why a request with this content type is not accepted, with its status.
func (q *request) check(kind string) (int, *anser.Error) {
	switch {
	case q.route == nil && q.r.Method != http.MethodPost:
		q.w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, anser.Refuse(anser.Unimplemented, "the method is called with POST")
	case q.method.ClientStream && kind == typeLines:
		return 0, nil
	case q.method.ClientStream:
		return http.StatusUnsupportedMediaType, anser.Refuse(anser.Unimplemented, "the client of the method sends several messages: use application/x-ndjson, with a message on each line")
	case q.route != nil:
		return q.checkRoute(kind)
	case kind == typeJSON || isCurl(kind, q.r):
		return 0, nil
	}
	q.w.Header().Set("Accept-Post", typeJSON)
	return http.StatusUnsupportedMediaType, anser.Refuse(anser.Unimplemented, "the content type is not served: use application/json")
}

// prepare reads the headers.
func (q *request) prepare() *anser.Error {
	return q.handler.methods.Prepare(&q.call, q.method, q.r)
}

// read reads the body of a request of one message.
func (q *request) read() ([]byte, *anser.Error) {
	data, fault := exchange.ReadBody(q.r, q.control, q.handler.most)
	if fault == nil && q.bare && len(data) > 0 {
		return nil, anser.Refuse(anser.InvalidArgument, "the body has no content type: use application/json")
	}
	return data, fault
}

// unpack returns the message of a body, after its call was admitted.
func (q *request) unpack(data []byte) ([]byte, *anser.Error) {
	coding := exchange.Coding(q.r)
	if coding == "" {
		return data, nil
	}
	return q.handler.methods.Unpack(exchange.Compressor(coding), data)
}

// addressSize is the number of bytes of the message that are not in the body.
func (q *request) addressSize() int {
	if q.route == nil {
		return 0
	}
	return len(q.r.URL.RawPath) + len(q.r.URL.Path) + len(q.r.URL.RawQuery)
}

// identity returns what distinguishes the message from others.
func (q *request) identity(body []byte) []byte {
	if q.route == nil || q.call.IdempotencyKey == "" {
		return body
	}
	return append([]byte(q.r.Method+" "+q.r.URL.EscapedPath()+"?"+q.r.URL.RawQuery+"\n"), body...)
}

func (q *request) tooLarge() *anser.Error { return exchange.TooLarge(q.handler.most) }

// unary serves a call.
func (q *request) unary(pc *anser.ProtocolConn) {
	if _, ok := exchange.Prefer(q.r.Header.Values("Accept"), typeJSON); !ok && !(q.route != nil && q.route.RawReply()) {
		q.notAcceptable(typeJSON)
		return
	}
	data, fault := q.read()
	if fault != nil {
		q.fail(fault, nil)
		return
	}
	q.call.Size = len(data) + q.addressSize()
	reply, trailers, fault := exchange.Call(q.r.Context(), pc, &q.call, func(call *anser.ProtocolCall, into any) ([]byte, *anser.Error) {
		message, fault := q.unpack(data)
		if fault == nil && exchange.Coding(q.r) != "" {
			fault = call.Received(len(message) + q.addressSize())
		}
		if fault != nil {
			return nil, fault
		}
		return q.identity(message), q.decode(message, into)
	})
	if fault != nil {
		q.fail(fault, trailers)
		return
	}
	exchange.SetTrailers(q.w.Header(), trailers)
	if reply == nil {
		q.w.WriteHeader(http.StatusAccepted)
		return
	}
	out, contentType, fault := q.encode(reply)
	if fault != nil {
		q.fail(fault, trailers)
		return
	}
	q.write(out, contentType)
}

// packAbove is the size in bytes from which replies are compressed.
const packAbove = 512

// write sends the reply of a call.
func (q *request) write(out []byte, contentType string) {
	h := q.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	coding := ""
	plain := out
	if len(out) > packAbove {
		if q.r.Method != http.MethodGet && q.r.Method != http.MethodHead {
			h.Add("Vary", "Accept-Encoding")
		}
		if exchange.AcceptsCoding(q.r.Header.Values("Accept-Encoding"), "gzip") {
			if packed, err := exchange.Compressor("gzip").Append(nil, out); err == nil && len(packed) < len(out) {
				out, coding = packed, "gzip"
				h.Set("Content-Encoding", coding)
			}
		}
	}
	if q.r.Method == http.MethodGet || q.r.Method == http.MethodHead {
		if !q.method.Safe {
			h.Set("Cache-Control", "no-store")
		} else if exchange.Cached(q.w, q.r, plain, coding, q.handler.Cache.Control(q.method)) {
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(out)))
	exchange.BoundAnswer(q.control, len(out))
	q.w.Write(out)
}

// notAcceptable refuses a client that accepts none of the content types.
func (q *request) notAcceptable(kinds ...string) {
	q.problem(http.StatusNotAcceptable, anser.Refuse(anser.Unimplemented, "the client accepts none of the forms of the answer: accept %s", strings.Join(kinds, " or ")))
}

// sendTrailers sends the trailers of the handler after the messages.
func (q *request) sendTrailers(trailers anser.Metadata) {
	_, fields := exchange.Trailers(trailers)
	for _, f := range fields {
		q.w.Header().Add(http.TrailerPrefix+f.Name, f.Value)
	}
}

// fail answers with an error.
func (q *request) fail(e *anser.Error, trailers anser.Metadata) {
	exchange.SetTrailers(q.w.Header(), trailers)
	exchange.Fail(q.w, e)
}

func (q *request) problem(status int, e *anser.Error) { exchange.WriteProblem(q.w, status, e) }
