package protocols

import (
	"net/http"
	"strings"

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

// NotFound answers a request that is no call of a method that the server has, for handlers of
// [Handler]; without one it is what answers. A POST gets the error that the server has for unknown
// methods in all protocols, which may name the method that was meant, with the status 404. Other
// requests get [http.NotFound].
func NotFound(w http.ResponseWriter, r *http.Request) {
	h := host.FromContext(r.Context())
	if r.Method != http.MethodPost || h == nil {
		http.NotFound(w, r)
		return
	}
	pc, fault := h.Login(r.Header.Get("Authorization"))
	if fault == nil {
		path := r.URL.EscapedPath()
		name, ok := exchange.NameOf(path)
		if !ok {
			name = strings.TrimPrefix(path, "/")
		}
		fault = exchange.NotServed(pc, name)
	}
	if fault.Code == anser.Unimplemented {
		exchange.WriteProblem(w, http.StatusNotFound, fault)
		return
	}
	exchange.Fail(w, fault)
}

// WriteError answers an HTTP request with an error, as calls in JSON are answered.
func WriteError(w http.ResponseWriter, err error) { exchange.Fail(w, asFault(err)) }

func asFault(err error) *anser.Error {
	if e, ok := err.(*anser.Error); ok {
		return e
	}
	return anser.Errorf(anser.CodeOf(err), "%v", err)
}
