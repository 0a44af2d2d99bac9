package exchange

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
)

// timeoutHeader has the time that a call in JSON has.
const timeoutHeader = "Request-Timeout"

// Prepare sets what the headers of a request in JSON say of a call of the method: the deadline,
// metadata, trace and idempotency key.
func (d *Directory) Prepare(call *anser.ProtocolRequest, m *Method, r *http.Request) *anser.Error {
	var md Metadata
	for k, values := range r.Header {
		k = strings.ToLower(k)
		if k == "authorization" && d.server.Authenticates() || k == "content-type" {
			continue
		}
		for _, v := range values {
			md.Add(k, v)
		}
	}
	if text := r.Header.Get(timeoutHeader); text != "" {
		if fault := SetTimeout(call, timeoutHeader, text); fault != nil {
			return fault
		}
	}
	call.Method, call.Codec, call.Priority = m.Name, JSON, anser.Normal
	call.Oneway, call.Stream = m.Oneway, m.Stream
	call.Metadata, call.Trace, call.Values = md.Map(), md.Trace, WithRequest(r)
	return RequireKey(call, m, r.Header.Values(KeyHeader), r.Header.Values(RepeatedHeader))
}

// SetTimeout gives a call its deadline, in seconds from now. name is where text comes from.
func SetTimeout(call *anser.ProtocolRequest, name, text string) *anser.Error {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "0123456789.") != "" || !(seconds > 0 && seconds < 1e9) {
		return anser.Refuse(anser.InvalidArgument, "the value of %s is not a number of seconds", name)
	}
	call.Deadline = time.Now().Add(time.Duration(seconds * float64(time.Second)))
	return nil
}

// Coding returns the content coding of the body of a request, or "".
func Coding(r *http.Request) string {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ",")))
	if coding == "identity" {
		return ""
	}
	return coding
}

// CheckBody returns why a body with this content type and coding is not read, or nil.
func CheckBody(w http.ResponseWriter, r *http.Request, readable, whole bool) *anser.Error {
	if !readable {
		return anser.Refuse(anser.Unimplemented, "JSON is in UTF-8: leave the charset out")
	}
	if coding := Coding(r); coding != "" && (coding != "gzip" || !whole) {
		w.Header().Set("Accept-Encoding", Compressions)
		return anser.Refuse(anser.Unimplemented, "the coding of the body is not served: use gzip for a single message, or none")
	}
	return nil
}
