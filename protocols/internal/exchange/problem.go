package exchange

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser"
)

// Problem is an error as in RFC 9457.
type Problem struct {
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail,omitempty"`
	Code    string `json:"code"`
	Outcome string `json:"outcome"`
	// Details are those of the error, in base64.
	Details string `json:"details,omitempty"`
}

// ProblemOf returns an error as a problem.
func ProblemOf(status int, e *anser.Error) *Problem {
	p := &Problem{Title: e.Code.String(), Status: status, Detail: strings.ToValidUTF8(e.Message, "�"), Code: CodeName(e.Code), Outcome: e.Outcome.String()}
	if len(e.Details) > 0 {
		p.Details = base64.StdEncoding.EncodeToString(e.Details)
	}
	return p
}

// Fail answers a request with an error.
func Fail(w http.ResponseWriter, e *anser.Error) { WriteProblem(w, HTTPStatusOf(e), e) }

// WriteProblem answers a request with an error and a status.
func WriteProblem(w http.ResponseWriter, status int, e *anser.Error) {
	data, _ := json.Marshal(ProblemOf(status, e))
	SetFailure(w.Header(), e)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	w.Write(data)
}

// Final returns the bytes of the last answer of a connection of HTTP/1.1, with an error.
func Final(status int, e *anser.Error) []byte {
	data, _ := json.Marshal(ProblemOf(status, e))
	r := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true, Header: make(http.Header),
		ContentLength: int64(len(data)), Body: io.NopCloser(bytes.NewReader(data)),
	}
	SetFailure(r.Header, e)
	r.Header.Set("Content-Type", "application/problem+json")
	var b bytes.Buffer
	_ = r.Write(&b) // which a buffer takes
	return b.Bytes()
}

// SetFailure sets the headers of an answer with an error.
func SetFailure(h http.Header, e *anser.Error) {
	for _, f := range RetryFields(e) {
		h.Set(f.Name, f.Value)
	}
	if e.Code == anser.Unauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("Cache-Control", "no-store")
}

// SetTrailers sets the headers and trailers of a handler in an answer without trailers of its own:
// trailers are headers that begin with Trailer.
func SetTrailers(h http.Header, md anser.Metadata) {
	headers, fields := Trailers(md)
	for _, f := range headers {
		h.Add(f.Name, f.Value)
	}
	for _, f := range fields {
		h.Add("Trailer-"+f.Name, f.Value)
	}
}
