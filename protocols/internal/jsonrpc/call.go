package jsonrpc

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// one serves a request, and returns its answer, or nil for a notification, and the trailers of the
// handler.
func (h *calls) one(raw json.RawMessage) (answer *response, trailers anser.Metadata) {
	var q request
	if err := json.Unmarshal(raw, &q); err != nil || q.Version != "2.0" || q.Method == nil || !validID(q.ID) {
		return failed(codeInvalidRequest, "Invalid Request"), nil
	}
	if err := h.checkMembers(raw); err != nil {
		return failed(codeInvalidRequest, "Invalid Request: "+err.Error()), nil
	}
	answer = failed(codeInvalidParams, "Invalid params")
	if validParams(q.Params) {
		answer, trailers = h.call(&q)
	}
	if q.ID == nil {
		return nil, nil
	}
	answer.Version, answer.ID = "2.0", q.ID
	return answer, trailers
}

// checkMembers returns which member a request should not have: with a mistake in its name, params
// would be lost.
func (h *calls) checkMembers(raw json.RawMessage) error {
	if h.methods.IgnoreUnknown {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for name := range members {
		if !slices.Contains(memberNames, name) {
			return exchange.JSONMember(name, memberNames...)
		}
	}
	return nil
}

// memberNames are those of a request.
var memberNames = []string{"jsonrpc", "method", "params", "id"}

// validID reports whether an id is a text, a number or null.
func validID(id json.RawMessage) bool {
	return len(id) == 0 || id[0] != '{' && id[0] != '[' && id[0] != 't' && id[0] != 'f'
}

// validParams reports whether parameters are an object or an array.
func validParams(p json.RawMessage) bool { return len(p) == 0 || p[0] == '{' || p[0] == '[' }

// notFound returns the error for a method that cannot be called here, or is unknown if m is nil.
func (h *calls) notFound(name string, m *exchange.Method) *fault {
	var e *anser.Error
	if m != nil && m.Own {
		e = anser.Refuse(anser.Unimplemented, "method %q is served in protobuf only", name)
	} else {
		e = exchange.NotServed(h.conn, name)
	}
	f := faultOf(e)
	if e.Code == anser.Unimplemented {
		f.Code = codeMethodNotFound
	}
	return f
}

// call runs the method.
func (h *calls) call(q *request) (*response, anser.Metadata) {
	r := h.r
	if h.refused != nil {
		return &response{Error: faultOf(h.refused)}, nil
	}
	m := h.methods.FindName(*q.Method)
	if m == nil || m.Own || m.Stream {
		return &response{Error: h.notFound(*q.Method, m)}, nil
	}
	ctx := r.Context()
	call := anser.ProtocolRequest{Size: len(q.Params)}
	if e := h.methods.Prepare(&call, m, r); e != nil {
		return &response{Error: faultOf(e)}, nil
	}
	if q.ID == nil { // the caller does not wait: its end does not cancel the call
		ctx = context.WithoutCancel(ctx)
	}
	invalid := false
	reply, trailers, e := exchange.Call(ctx, h.conn, &call, func(_ *anser.ProtocolCall, into any) ([]byte, *anser.Error) {
		e := h.decode(m, q.Params, into)
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
		return &response{Error: f}, trailers
	}
	if reply == nil {
		return &response{Result: null}, trailers
	}
	out, e := m.Encode(exchange.JSON, nil, m.Single(reply))
	if e != nil {
		return &response{Error: faultOf(e)}, trailers
	}
	if !h.hold(len(out)) {
		return &response{Error: faultOf(errNoRoom)}, trailers
	}
	return &response{Result: out}, trailers
}

var (
	errNoMemory = anser.Refuse(anser.ResourceExhausted, "the server has no memory for the request (anser.MaxMemory)")
	errNoRoom   = anser.Errorf(anser.ResourceExhausted, "the server has no memory for the answer (anser.MaxMemory): ask for less at once")
)

// decode decodes parameters. A method with one message takes it by itself or as the only element of
// an array.
func (h *calls) decode(m *exchange.Method, params json.RawMessage, into any) *anser.Error {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	var e *anser.Error
	if params[0] != '[' || !m.Forwarded || m.TakesList() { // a message that is forwarded is not decoded here
		if e = m.Decode(h.methods.RequestJSON(), params, into); e == nil || params[0] != '[' {
			return e
		}
	}
	var list []json.RawMessage
	if json.Unmarshal(params, &list) != nil || len(list) != 1 {
		return cmp.Or(e, errOneMessage)
	}
	return m.Decode(h.methods.RequestJSON(), list[0], into)
}

var errOneMessage = anser.Refuse(anser.InvalidArgument, "the parameters are an array, and the method takes one message: send an object, or it alone in an array")

func faultOf(e *anser.Error) *fault {
	return &fault{Code: codeServer, Message: e.Message, Data: &data{Code: exchange.CodeName(e.Code), Outcome: e.Outcome.String(), Details: e.Details}}
}
