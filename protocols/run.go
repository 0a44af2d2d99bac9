package protocols

import (
	"net/http"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// RunRequest makes the server run an HTTP request as a call of a method, for handlers of
// [Before] and
// [Handler]: the request then passes the authentication, policies, limits, interceptors and
// observers of calls, and the server waits for it when it drains. The method is one of
// HandleDynamic, is Foreign, and has requests of type [anser.None]; its handler finds the request
// with [RequestFrom], and in the values of its context those of the request's. RunRequest returns
// when the handler has returned. The error is for [WriteError] if the handler did not run, or has
// returned it.
func RunRequest(r *http.Request, method string) error {
	h := host.FromContext(r.Context())
	if h == nil {
		return anser.Errorf(anser.Internal, "the request did not come in by this server")
	}
	pc, fault := h.Login(r.Header.Get("Authorization"))
	if fault != nil {
		return fault
	}
	call := &anser.ProtocolRequest{Method: method, Priority: anser.Normal, Codec: exchange.JSON, Values: exchange.WithRequest(r)}
	if trace, ok := exchange.ParseTrace(r.Header.Get("Traceparent")); ok {
		call.Trace = trace
	}
	_, _, fault = exchange.Call(r.Context(), pc, call, func(*anser.ProtocolCall, any) ([]byte, *anser.Error) { return nil, nil })
	if fault != nil {
		return fault
	}
	return nil
}

// WriteError answers an HTTP request with an error, as calls in JSON are answered.
func WriteError(w http.ResponseWriter, err error) { exchange.Fail(w, asFault(err)) }

func asFault(err error) *anser.Error {
	if e, ok := err.(*anser.Error); ok {
		return e
	}
	return anser.Errorf(anser.CodeOf(err), "%v", err)
}
