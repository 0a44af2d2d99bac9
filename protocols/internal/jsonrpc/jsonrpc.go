// Package jsonrpc serves JSON-RPC 2.0 over HTTP: POST of a request or a batch.
package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/tuple"
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
	uncounted  = 4 << 10 // bytes of an answer that do not count for the memory of the server
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
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "405 JSON-RPC is called with POST", http.StatusMethodNotAllowed)
		return
	case kind != "application/json" && kind != "application/json-rpc":
		w.Header().Set("Accept-Post", "application/json")
		http.Error(w, "415 JSON-RPC needs the content type application/json", http.StatusUnsupportedMediaType)
		return
	}
	control := http.NewResponseController(w)
	exchange.BoundBody(control)
	at := &calls{Handler: h, r: r, host: host.FromContext(r.Context())}
	most := h.most
	at.conn, at.refused = at.host.Login(r.Header.Get("Authorization"))
	if at.refused != nil || at.conn.NeedsLogin() {
		most = min(most, maxUnknown)
	}
	body, fault := exchange.ReadBody(r, control, most)
	if fault != nil {
		http.Error(w, fault.Message, exchange.HTTPStatus(fault.Code))
		return
	}
	out := at.serve(body)
	defer func() { at.host.Release(int(at.held.Load())) }()
	if out == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	exchange.BoundAnswer(control, len(out))
	w.Write(out)
}

// calls is what the calls of a request of HTTP share.
type calls struct {
	*Handler
	r       *http.Request
	host    *host.Conn
	conn    *anser.ProtocolConn
	refused *anser.Error // why there is no conn
	held    atomic.Int64 // bytes of answers that the server's memory counts
}

// hold counts an answer, and reports whether there is room for it: a batch is small, and its answers
// may not be.
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

// serve returns the answer to a body, or nil if there is none.
func (h *calls) serve(body []byte) []byte {
	body = bytes.TrimSpace(body)
	var answer any
	switch {
	case !json.Valid(body) || codec.CheckJSON(body) != nil:
		answer = failed(codeParse, "Parse error")
	case body[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(body, &list); err != nil {
			answer = failed(codeParse, "Parse error")
			break
		}
		if h.r.Header.Get(exchange.KeyHeader) != "" {
			answer = failed(codeInvalidRequest, "a batch has no idempotency key: send the request by itself")
			break
		}
		if len(list) == 0 || len(list) > maxBatch {
			answer = failed(codeInvalidRequest, "Invalid Request")
			break
		}
		if answers := h.batch(list); len(answers) > 0 {
			answer = answers
		}
	default:
		if one := h.one(body); one != nil {
			answer = one
		}
	}
	if answer == nil {
		return nil
	}
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
			answers[i] = h.one(raw)
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

// one serves a request, and returns its answer, or nil for a notification.
func (h *calls) one(raw json.RawMessage) *response {
	var q request
	if err := json.Unmarshal(raw, &q); err != nil || q.Version != "2.0" || q.Method == nil || !validID(q.ID) {
		return failed(codeInvalidRequest, "Invalid Request")
	}
	answer := failed(codeInvalidParams, "Invalid params")
	if validParams(q.Params) {
		answer = h.call(&q)
	}
	if q.ID == nil {
		return nil
	}
	answer.Version, answer.ID = "2.0", q.ID
	return answer
}

// validID reports whether an id is a text, a number or null.
func validID(id json.RawMessage) bool {
	return len(id) == 0 || id[0] != '{' && id[0] != '[' && id[0] != 't' && id[0] != 'f'
}

// validParams reports whether parameters are an object or an array.
func validParams(p json.RawMessage) bool { return len(p) == 0 || p[0] == '{' || p[0] == '[' }

// call runs the method.
func (h *calls) call(q *request) *response {
	r := h.r
	m := h.methods.FindName(*q.Method)
	if m == nil || m.Own || m.Stream {
		return failed(codeMethodNotFound, "Method not found")
	}
	if h.refused != nil {
		return &response{Error: faultOf(h.refused)}
	}
	var md exchange.Metadata
	for k, values := range r.Header {
		if k = strings.ToLower(k); k == "content-type" || k == "authorization" && h.methods.Server().Authenticates() {
			continue
		}
		for _, v := range values {
			md.Add(k, v)
		}
	}
	ctx := r.Context()
	call := anser.ProtocolRequest{
		Method: m.Name, Metadata: md.Map(), Trace: md.Trace, Priority: anser.Normal, Size: len(q.Params), Codec: exchange.JSON,
		Oneway: m.Oneway, Values: exchange.WithRequest(r),
	}
	if e := exchange.RequireKey(&call, m, r.Header.Values(exchange.KeyHeader), r.Header.Values(exchange.RepeatedHeader)); e != nil {
		return &response{Error: faultOf(e)}
	}
	if q.ID == nil { // the caller does not wait: its end does not cancel the call
		ctx = context.WithoutCancel(ctx)
	}
	invalid := false
	reply, _, e := exchange.Call(ctx, h.conn, &call, func(_ *anser.ProtocolCall, into any) ([]byte, *anser.Error) {
		e := decode(m, q.Params, into)
		invalid = e != nil
		return q.Params, e
	})
	if e != nil {
		f := faultOf(e)
		switch {
		case invalid:
			f.Code = codeInvalidParams
		case e.Code == anser.Unimplemented && e.Outcome == anser.Refused:
			f.Code = codeMethodNotFound
		}
		return &response{Error: f}
	}
	if reply == nil {
		return &response{Result: null}
	}
	out, e := m.Encode(exchange.JSON, nil, tuple.Single(reply))
	if e != nil {
		return &response{Error: faultOf(e)}
	}
	if !h.hold(len(out)) {
		return &response{Error: faultOf(errNoMemory)}
	}
	return &response{Result: out}
}

var errNoMemory = anser.Errorf(anser.ResourceExhausted, "the server has no memory for the answer (anser.MaxMemory): ask for less at once")

// decode decodes parameters. A method with one message takes it by itself or as the only element of
// an array.
func decode(m *exchange.Method, params json.RawMessage, into any) *anser.Error {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	e := m.Decode(exchange.JSON, params, into)
	if e == nil || params[0] != '[' {
		return e
	}
	var list []json.RawMessage
	if json.Unmarshal(params, &list) != nil || len(list) != 1 {
		return e
	}
	return m.Decode(exchange.JSON, list[0], into)
}

func faultOf(e *anser.Error) *fault {
	return &fault{Code: codeServer, Message: e.Message, Data: &data{Code: exchange.CodeName(e.Code), Outcome: e.Outcome.String(), Details: e.Details}}
}
