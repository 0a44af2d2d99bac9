// Package jsonrpc serves JSON-RPC 2.0 over HTTP: POST of a request or a batch.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// Path is where the handler is served.
const Path = "/jsonrpc"

// The codes of JSON-RPC 2.0.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeServer         = -32000 // the method returned an error, or the server did not run it
)

const (
	maxBatch = 1000
	inBatch  = 16 // calls of a batch that run at once
	// maxUnknown is the size of the body of a client that has not authenticated itself: it gets the
	// errors of its calls.
	maxUnknown = 64 << 10
	uncounted  = 4 << 10 // bytes that do not count for the memory of the server
)

// Handler serves the calls.
type Handler struct {
	methods *exchange.Directory
	most    int // bytes of a body
}

// New returns a handler for the methods of a server.
func New(methods *exchange.Directory) *Handler {
	return &Handler{methods: methods, most: methods.Server().MaxMessageSize()}
}

// request is a request object.
type request struct {
	Version string          `json:"jsonrpc"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      json.RawMessage `json:"id"`
}

// response is a response object.
type response struct {
	Version string          `json:"jsonrpc"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *fault          `json:"error,omitempty"`
	ID      json.RawMessage `json:"id"`
}

type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    *data  `json:"data,omitempty"`
}

// data is what Anser knows of an error besides the code of JSON-RPC.
type data struct {
	Code    string `json:"code"`
	Outcome string `json:"outcome"`
	Details []byte `json:"details,omitempty"` // base64
}

var null = json.RawMessage("null")

func failed(code int, message string) *response {
	return &response{Version: "2.0", Error: &fault{Code: code, Message: message}, ID: null}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, readable := exchange.ContentType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		exchange.WriteProblem(w, http.StatusMethodNotAllowed, anser.Refuse(anser.Unimplemented, "JSON-RPC is called with POST"))
		return
	case kind != "application/json" && kind != "application/json-rpc":
		w.Header().Set("Accept-Post", "application/json")
		exchange.WriteProblem(w, http.StatusUnsupportedMediaType, anser.Refuse(anser.Unimplemented, "JSON-RPC needs the content type application/json"))
		return
	}
	if fault := exchange.CheckBody(w, r, readable, true); fault != nil {
		exchange.WriteProblem(w, http.StatusUnsupportedMediaType, fault)
		return
	}
	control := http.NewResponseController(w)
	exchange.BoundBody(r, control)
	at := &calls{Handler: h, r: r, host: host.FromContext(r.Context())}
	at.conn, at.refused = at.host.Login(r.Header.Get("Authorization"))
	defer func() { at.host.Release(int(at.held.Load())) }()
	body, fault := at.read(control)
	if fault != nil {
		exchange.SetFailure(w.Header(), fault)
		at.answer(w, exchange.HTTPStatusOf(fault), encode(&response{Version: "2.0", Error: faultOf(fault), ID: null}))
		return
	}
	status, out := at.serve(body)
	exchange.SetTrailers(w.Header(), at.trailers)
	at.answer(w, status, out)
}

// calls is what the calls of an HTTP request share.
type calls struct {
	*Handler
	r        *http.Request
	host     *host.Conn
	conn     *anser.ProtocolConn
	refused  *anser.Error   // why there is no conn
	held     atomic.Int64   // bytes of requests and answers that the server's memory counts
	trailers anser.Metadata // of a request that is not a batch
}

// answer sends an answer, or that there is none.
func (h *calls) answer(w http.ResponseWriter, status int, out []byte) {
	if out != nil {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(out)))
		exchange.BoundAnswer(http.NewResponseController(w), len(out))
	}
	w.WriteHeader(status)
	w.Write(out)
}

// read reads the body. One that was compressed counts for the memory of the server until its calls
// are answered: its bytes cost the client little.
func (h *calls) read(control *http.ResponseController) ([]byte, *anser.Error) {
	most, coding := h.most, exchange.Coding(h.r)
	if h.refused != nil || h.conn.NeedsLogin() {
		most = min(most, maxUnknown)
		if coding != "" {
			exchange.DropBody(control)
			return nil, h.unknown()
		}
	}
	body, fault := exchange.ReadBody(h.r, control, most)
	if fault != nil || coding == "" {
		return body, fault
	}
	body, fault = h.methods.Unpack(exchange.Compressor(coding), body)
	if fault == nil && !h.hold(len(body)) {
		fault = errNoMemory
	}
	return body, fault
}

// unknown returns why the calls of a client that has not authenticated itself are refused.
func (h *calls) unknown() *anser.Error {
	if h.refused != nil {
		return h.refused
	}
	return exchange.Known(h.conn, &anser.ProtocolRequest{Values: h.r.Context()})
}

// hold counts n bytes, and reports whether there is room for them. A batch is small, and its
// answers may not be.
func (h *calls) hold(n int) bool {
	if n <= uncounted {
		return true
	}
	if !h.host.Hold(n) {
		return false
	}
	h.held.Add(int64(n))
	return true
}

// serve returns the answer to a body with the status, or nil if there is none.
func (h *calls) serve(body []byte) (status int, out []byte) {
	body = bytes.TrimSpace(body)
	if !json.Valid(body) {
		return http.StatusOK, encode(failed(codeParse, "Parse error"))
	}
	if err := codec.CheckJSON(body); err != nil {
		return http.StatusOK, encode(failed(codeParse, "Parse error: "+err.Error()))
	}
	if body[0] == '[' {
		return h.serveBatch(body)
	}
	if one, trailers := h.one(body); one != nil {
		h.trailers = trailers
		return http.StatusOK, encode(one)
	}
	return http.StatusNoContent, nil
}

// serveBatch is serve for a batch.
func (h *calls) serveBatch(body []byte) (status int, out []byte) {
	var list []json.RawMessage
	switch err := json.Unmarshal(body, &list); {
	case err != nil:
		return http.StatusOK, encode(failed(codeParse, "Parse error"))
	case h.r.Header.Get(exchange.KeyHeader) != "":
		return http.StatusOK, encode(failed(codeInvalidRequest, "a batch has no idempotency key: send the request by itself"))
	case len(list) == 0:
		return http.StatusOK, encode(failed(codeInvalidRequest, "Invalid Request"))
	case len(list) > maxBatch:
		return http.StatusRequestEntityTooLarge, encode(failed(codeInvalidRequest, fmt.Sprintf("Invalid Request: the batch has %d requests: send %d at most", len(list), maxBatch)))
	}
	if answers := h.batch(list); len(answers) > 0 {
		return http.StatusOK, encode(answers)
	}
	return http.StatusNoContent, nil
}

// encode encodes an answer.
func encode(answer any) []byte {
	out, err := json.Marshal(answer)
	if err != nil { // the codec of the message has written no JSON
		out, _ = json.Marshal(failed(codeInternal, "Internal error"))
	}
	return out
}

// batch serves the requests of a batch, several at once, and returns the answers in their order.
func (h *calls) batch(list []json.RawMessage) []*response {
	answers := make([]*response, len(list))
	var running sync.WaitGroup
	places := make(chan struct{}, inBatch)
	for i, raw := range list {
		places <- struct{}{}
		running.Go(func() {
			answers[i], _ = h.one(raw)
			<-places
		})
	}
	running.Wait()
	var out []*response
	for _, a := range answers {
		if a != nil {
			out = append(out, a)
		}
	}
	return out
}
