package plain

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/transcode"
)

// ServeRoute serves a request whose path is that of an annotation, and reports whether it is.
func (h *Handler) ServeRoute(w http.ResponseWriter, r *http.Request) bool {
	if wantsSocket(r) {
		return h.serveSocket(w, r)
	}
	router := &h.Routes.table().router
	route, values, ok, allowed := router.Match(r.Method, r.URL.EscapedPath())
	if !ok && r.Method == http.MethodHead {
		route, values, ok, _ = router.Match(http.MethodGet, r.URL.EscapedPath())
	}
	if !ok && allowed == nil {
		return false
	}
	q := h.request(w, r)
	if !ok {
		allowed = allMethods(allowed)
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return true
		}
		q.problem(http.StatusMethodNotAllowed, anser.Refuse(anser.Unimplemented, "the path is called with %s", strings.Join(allowed, " or ")))
		return true
	}
	q.method, q.route, q.values = route.Method, route, values
	q.serve()
	return true
}

// serveSocket is ServeRoute for a WebSocket, whose handshake says nothing of the HTTP method: a
// path is that of a stream with whatever method.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) bool {
	q := h.request(w, r)
	for _, verb := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		route, values, ok, _ := h.Routes.table().router.Match(verb, r.URL.EscapedPath())
		if ok && (q.route == nil || route.Method.Stream && !q.method.Stream) {
			q.method, q.route, q.values = route.Method, route, values
		}
	}
	if q.route == nil {
		return false
	}
	q.socket()
	return true
}

// allMethods adds the HTTP methods that are served besides those of the annotations.
func allMethods(bound []string) []string {
	list := append(bound, http.MethodOptions)
	if slices.Contains(bound, http.MethodGet) {
		list = append(list, http.MethodHead)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// checkRoute returns why a request for a route is not accepted, with its status.
func (q *request) checkRoute(kind string) (int, *anser.Error) {
	switch {
	case kind == "" && q.mayBeForeign():
		return http.StatusForbidden, anser.Refuse(anser.PermissionDenied, "a page of another site can send this request: give it the content type application/json, or the method idempotency_level = NO_SIDE_EFFECTS")
	case kind == "" || kind == typeJSON, q.route.RawRequest() && !isForm(kind):
		return 0, nil
	}
	return http.StatusUnsupportedMediaType, anser.Refuse(anser.Unimplemented, "the content type is not served: use application/json")
}

// isForm reports whether forms of any page can have this content type.
func isForm(kind string) bool {
	return kind == "text/plain" || kind == "application/x-www-form-urlencoded" || kind == "multipart/form-data"
}

// isCurl reports whether a request has the content type of forms only because curl sends it with
// -d. A page cannot give its requests this name without asking the server first.
func isCurl(kind string, r *http.Request) bool {
	return kind == "application/x-www-form-urlencoded" && strings.HasPrefix(r.Header.Get("User-Agent"), "curl/") &&
		r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Referer") == ""
}

// mayBeForeign reports whether a page of another site can make a browser send the request without
// asking the server first, so that the call must not have effects. Browsers have names that begin
// with Mozilla, which a page cannot change without asking first.
func (q *request) mayBeForeign() bool {
	switch q.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		return false
	}
	site := q.r.Header.Get("Sec-Fetch-Site")
	switch {
	case q.method.Safe, q.r.Header.Get("Origin") != "": // whose page was checked
		return false
	case site != "":
		return site != "same-origin" && site != "none"
	}
	if u, err := url.Parse(q.r.Header.Get("Referer")); err == nil && u.Host != "" && strings.EqualFold(u.Host, q.r.Host) {
		return false
	}
	return strings.Contains(q.r.Header.Get("User-Agent"), "Mozilla")
}

// decode decodes a message of the client.
func (q *request) decode(data []byte, into any) *anser.Error {
	if q.route == nil {
		return q.method.Decode(q.handler.methods.RequestJSON(), data, into)
	}
	return q.fill(data, into)
}

// fill sets the fields of a message as the annotation says. A panic is an error, as in Decode.
func (q *request) fill(data []byte, into any) (fault *anser.Error) {
	defer func() {
		if recover() != nil {
			fault = anser.Refuse(anser.Internal, "the codec panicked on the message")
		}
	}()
	m := q.method.NewMessage(into)
	if m == nil {
		return anser.Refuse(anser.Internal, "the message is not one of protobuf")
	}
	query, err := url.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return anser.Refuse(anser.InvalidArgument, "the query: %v", err)
	}
	if err := q.route.Fill(q.handler.methods.RequestJSON(), m, &transcode.Request{
		Body: data, ContentType: q.r.Header.Get("Content-Type"), Query: query, Values: q.values,
	}); err != nil {
		return anser.Refuse(anser.InvalidArgument, "%v", err)
	}
	if err := q.method.Pack(m, into); err != nil {
		return anser.Refuse(anser.InvalidArgument, "%v", err)
	}
	return nil
}

// encode encodes a message for the client, with its content type.
func (q *request) encode(msg any) (data []byte, contentType string, fault *anser.Error) {
	if q.route == nil {
		data, fault = q.method.Encode(exchange.JSON, nil, msg)
		return data, typeJSON, fault
	}
	defer func() {
		if recover() != nil {
			data, fault = nil, anser.Errorf(anser.Internal, "the codec panicked on the reply")
		}
	}()
	m, err := q.method.Unpacked(msg)
	if err == nil {
		data, contentType, err = q.route.Reply(exchange.JSON, m)
	}
	if err != nil {
		return nil, "", anser.Errorf(anser.Internal, "encode the reply: %v", err)
	}
	return data, contentType, nil
}
