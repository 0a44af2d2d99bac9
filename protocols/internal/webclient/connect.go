package webclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/wire"
)

// maxQuery is the size in bytes of a message from which a method is called with POST after all:
// servers and proxies bound the length of a URL.
const maxQuery = 4 << 10

// flagConnectEnd is the flag of the last envelope of a stream.
const flagConnectEnd = 2

// connectUnary makes a unary Connect call.
func (c *call) connectUnary() (a answer) {
	m := c.first()
	var r *http.Request
	if c.t.Get[c.path] && len(m.payload) <= maxQuery {
		r = c.get(m)
	} else {
		r = c.request(http.MethodPost, "application/"+codecName(c.codec))
		r.ContentLength = int64(len(m.payload))
		r.Body = io.NopCloser(bytes.NewReader(m.payload))
		// With it, net/http sends the request again if an HTTP/2 server did not process it.
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.payload)), nil }
		r.Header.Set("Connect-Protocol-Version", "1")
		if !m.plain {
			r.Header.Set("Content-Encoding", "gzip")
		}
	}
	c.setConnectTimeout(r)
	if c.gzip {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	response, fault := c.do(r)
	if fault != nil {
		return answer{fault: fault}
	}
	defer response.Body.Close()
	a.headers, a.trailers = splitTrailers(exchange.ResponseMetadata(response.Header))
	kind := response.Header.Get("Content-Type")
	if response.StatusCode == http.StatusOK && kind != "application/"+codecName(c.codec) && kind != "application/"+codecName(c.codec)+"; charset=utf-8" {
		a.fault = wrongType(kind, "application/")
		return a
	}
	a.packed, a.fault = c.packedBy(response.Header.Get("Content-Encoding"))
	if a.fault == nil {
		a.payload, a.fault = c.whole(response.Body)
	}
	if a.fault == nil && response.StatusCode != http.StatusOK {
		a.fault = c.connectFailure(response, &a)
	}
	return a
}

// get returns the request of a method that is called with GET.
func (c *call) get(m message) *http.Request {
	r := c.request(http.MethodGet, "")
	q := "connect=v1" // the order that the specification recommends
	text := url.QueryEscape(string(m.payload))
	if c.codec != codecJSON || !m.plain {
		q += "&base64=1"
		text = base64.RawURLEncoding.EncodeToString(m.payload)
	}
	if !m.plain {
		q += "&compression=gzip"
	}
	r.URL.RawQuery = q + "&encoding=" + codecName(c.codec) + "&message=" + text
	return r
}

func (c *call) setConnectTimeout(r *http.Request) {
	if c.timeout > 0 {
		ms := min(int64((c.timeout+time.Millisecond-1)/time.Millisecond), 9_999_999_999)
		r.Header.Set("Connect-Timeout-Ms", strconv.FormatInt(ms, 10))
	}
}

// packedBy reports whether an answer with the name of a compression is compressed.
func (c *call) packedBy(name string) (bool, *wire.ErrorBody) {
	switch {
	case name == "" || name == "identity":
		return false, nil
	case name == "gzip" && c.gzip:
		return true, nil
	}
	return false, exchange.Unexpected("the server has used the compression " + strconv.Quote(name) + ", which was not agreed on")
}

// whole reads the body of a unary answer.
func (c *call) whole(body io.Reader) ([]byte, *wire.ErrorBody) {
	most := int64(c.t.client.MaxFrame) - wire.ReplySize
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	if err != nil {
		return nil, c.broken(err)
	}
	if int64(len(data)) > most {
		return nil, exchange.ReplyTooLarge(int64(len(data)))
	}
	return data, nil
}

// wrongType returns the error of an answer with another content type than the one of the request.
func wrongType(kind, prefix string) *wire.ErrorBody {
	e := exchange.Unexpected("the answer has the content type " + strconv.Quote(kind))
	if !strings.HasPrefix(kind, prefix) {
		e.Code = wire.Unknown
		e.Message += ": is it a server of this protocol?"
	}
	return e
}

// connectFailure returns the error of a unary answer with another status than 200.
func (c *call) connectFailure(response *http.Response, a *answer) *wire.ErrorBody {
	e := exchange.HTTPFailure(response.StatusCode, response.Header.Get("Content-Type"))
	data := a.payload
	a.payload = nil
	if response.Header.Get("Content-Type") != "application/json" {
		return e
	}
	if a.packed {
		plain, err := exchange.Compressor("gzip").Decompress(nil, data, int(c.t.client.MaxFrame))
		if err != nil {
			return e
		}
		data = plain
	}
	var in errorJSON
	if json.Unmarshal(data, &in) != nil {
		return e
	}
	return in.fault(e.Code, a.headers)
}

// errorJSON is an error in Connect's form.
type errorJSON struct {
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Details []detailJSON `json:"details"`
}

type detailJSON struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// fault returns the error; otherwise is its code if it names none that is known.
func (in *errorJSON) fault(otherwise wire.Code, md map[string][]string) *wire.ErrorBody {
	status := exchange.Answer{Code: otherwise, Message: in.Message}
	if code, ok := exchange.CodeOfName(in.Code); ok {
		status.Code = wire.Code(code)
	}
	if len(in.Details) > 0 {
		full := &spb.Status{Code: int32(status.Code), Message: in.Message}
		for _, d := range in.Details {
			if raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(d.Value, "=")); err == nil {
				full.Details = append(full.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type, Value: raw})
			}
		}
		status.Details, _ = proto.Marshal(full)
	}
	status.Outcome = take(md, "anser-outcome")
	if s := take(md, "retry-after"); s != "" {
		if seconds, err := strconv.ParseUint(s, 10, 20); err == nil {
			status.RetryIn = strconv.FormatUint(seconds*1000, 10)
		}
	}
	return status.Fault()
}

// take removes a key, and returns its first value.
func take(md map[string][]string, key string) string {
	values := md[key]
	delete(md, key)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// splitTrailers separates the headers whose names begin with "trailer-": they are the trailers of a
// unary answer.
func splitTrailers(md map[string][]string) (headers, trailers map[string][]string) {
	for k, values := range md {
		if name, ok := strings.CutPrefix(k, "trailer-"); ok {
			if trailers == nil {
				trailers = make(map[string][]string)
			}
			trailers[name] = values
			delete(md, k)
		}
	}
	return md, trailers
}

// connectStream makes a Connect stream.
func (c *call) connectStream() (a answer) {
	kind := "application/connect+" + codecName(c.codec)
	r := c.request(http.MethodPost, kind)
	r.Body, r.ContentLength = &messages{c: c}, -1
	r.Header.Set("Connect-Protocol-Version", "1")
	c.setConnectTimeout(r)
	if c.gzip {
		r.Header.Set("Connect-Content-Encoding", "gzip") // messages that gain nothing are not compressed
		r.Header.Set("Connect-Accept-Encoding", "gzip")
	}
	response, fault := c.do(r)
	if fault != nil {
		return answer{fault: fault}
	}
	defer response.Body.Close()
	a.headers = exchange.ResponseMetadata(response.Header)
	if response.StatusCode != http.StatusOK {
		a.fault = exchange.HTTPFailure(response.StatusCode, response.Header.Get("Content-Type"))
		return a
	}
	if got := response.Header.Get("Content-Type"); got != kind {
		a.fault = wrongType(got, "application/connect+")
		return a
	}
	packed, fault := c.packedBy(response.Header.Get("Connect-Content-Encoding"))
	if a.fault = fault; fault != nil {
		return a
	}
	c.deliverHeaders(&a)
	for {
		flags, payload, fault, err := c.next(response.Body)
		switch {
		case fault != nil:
			a.fault = fault
			return a
		case err == io.EOF:
			a.fault = exchange.Unexpected("the server has ended the stream without its end")
			return a
		case err != nil:
			a.fault = c.broken(err)
			return a
		case flags&flagPacked != 0 && !packed || flags&^(flagPacked|flagConnectEnd) != 0:
			a.fault = exchange.Unexpected("the server has sent a message with flags that were not agreed on")
			return a
		case flags&flagConnectEnd != 0:
			a.trailers, a.fault = c.connectEnd(payload, flags&flagPacked != 0)
			if a.fault == nil {
				a.fault = c.drained(response.Body)
			}
			return a
		case !c.deliver(payload, flags&flagPacked != 0):
			return a
		}
	}
}

// drained returns the error of an answer that goes on after its end.
func (c *call) drained(body io.Reader) *wire.ErrorBody {
	if n, _ := io.CopyN(io.Discard, body, 1); n > 0 {
		return exchange.Unexpected("the server has sent more after the end of the stream")
	}
	return nil
}

// connectEnd parses the end of a stream.
func (c *call) connectEnd(payload []byte, packed bool) (trailers map[string][]string, fault *wire.ErrorBody) {
	if packed {
		plain, err := exchange.Compressor("gzip").Decompress(nil, payload, int(c.t.client.MaxFrame))
		if err != nil {
			return nil, exchange.Unexpected("the end of the stream cannot be decompressed: " + err.Error())
		}
		payload = plain
	}
	var end struct {
		Error    *errorJSON          `json:"error"`
		Metadata map[string][]string `json:"metadata"`
	}
	if err := json.Unmarshal(payload, &end); err != nil {
		return nil, exchange.Unexpected("the end of the stream is malformed: " + err.Error())
	}
	trailers = exchange.ResponseMetadata(end.Metadata)
	if end.Error != nil {
		fault = end.Error.fault(wire.Code(anser.Unknown), trailers)
	}
	return trailers, fault
}
