package connect

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// unary serves a call of one message with POST.
func (q *request) unary(codec string) {
	if fault := q.prepare(codec, false); fault != nil {
		q.fail(fault, nil)
		return
	}
	packed, fault := compression(q.r.Header.Get("Content-Encoding"))
	if fault == nil {
		fault = q.deadline()
	}
	q.serve(codec, packed, fault, func() ([]byte, *anser.Error) {
		return exchange.ReadBody(q.r, q.control, q.handler.most)
	})
}

// serve identifies the caller, and then reads the message, unless there is a fault.
func (q *request) serve(codec string, packed compress.Compressor, fault *anser.Error, read func() ([]byte, *anser.Error)) {
	var pc *anser.ProtocolConn
	if fault == nil {
		pc, fault = q.conn()
	}
	if fault == nil {
		fault = exchange.Known(pc, &q.call)
	}
	var data []byte
	if fault == nil {
		data, fault = read()
	}
	if fault != nil {
		q.fail(fault, nil)
		return
	}
	q.answer(pc, codec, packed, data)
}

// get serves a call with GET, whose message is in the query. Only methods that change nothing are
// called so: a browser, or a cache in between, sends GET by itself.
func (q *request) get() {
	query := q.r.URL.Query()
	codec := query.Get("encoding")
	if codec != "proto" && codec != "json" {
		http.Error(q.w, "the encoding is not served: use proto or json", http.StatusUnsupportedMediaType)
		return
	}
	if fault := q.prepare(codec, false); fault != nil {
		q.fail(fault, nil)
		return
	}
	data := []byte(query.Get("message"))
	var fault *anser.Error
	var packed compress.Compressor
	if query.Get("base64") == "1" {
		var err error
		if data, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(string(data), "=")); err != nil {
			fault = anser.Refuse(anser.InvalidArgument, "the message is no base64: %v", err)
		}
	}
	if len(data) > q.handler.most {
		fault = q.tooLarge()
	}
	if fault == nil {
		packed, fault = compression(query.Get("compression"))
	}
	if fault == nil {
		fault = q.deadline()
	}
	if version := query.Get("connect"); fault == nil && version != "" && version != "v1" {
		fault = anser.Refuse(anser.InvalidArgument, "the version of Connect is not served: use v1")
	}
	q.serve(codec, packed, fault, func() ([]byte, *anser.Error) { return data, nil })
}

// answer runs the call, and sends its reply.
func (q *request) answer(pc *anser.ProtocolConn, codec string, packed compress.Compressor, data []byte) {
	if v := q.r.Header.Get("Connect-Protocol-Version"); v != "" && v != "1" {
		q.fail(anser.Refuse(anser.InvalidArgument, "the version of Connect is not served: use 1"), nil)
		return
	}
	q.call.Size = len(data)
	reply, trailers, fault := exchange.Call(q.r.Context(), pc, &q.call, func(call *anser.ProtocolCall, into any) ([]byte, *anser.Error) {
		message := data
		if packed != nil && len(data) > 0 {
			var fault *anser.Error
			if message, fault = q.handler.methods.Unpack(packed, data); fault == nil {
				fault = call.Received(len(message))
			}
			if fault != nil {
				return nil, fault
			}
		}
		return message, q.method.Decode(q.codec, message, into)
	})
	if fault != nil {
		q.fail(fault, trailers)
		return
	}
	var out []byte
	if reply != nil {
		if out, fault = q.method.Encode(q.codec, nil, reply); fault != nil {
			q.fail(fault, trailers)
			return
		}
	} else if codec == "json" {
		out = []byte("{}")
	}
	h := q.w.Header()
	q.setTrailers(trailers)
	h.Set("Content-Type", "application/"+codec)
	message, coding := out, ""
	if c, name := exchange.Choose(q.r.Header.Get("Accept-Encoding")); c != nil && len(out) > packAbove {
		if packed, err := c.Append(nil, out); err == nil && len(packed) < len(out) {
			out, coding = packed, name
			h.Set("Content-Encoding", name)
		}
	}
	if q.r.Method == http.MethodGet && exchange.Cached(q.w, q.r, message, coding, q.handler.Cache.Control(q.method)) {
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(out)))
	exchange.BoundAnswer(q.control, len(out))
	q.w.Write(out)
}

// setTrailers sets the headers and trailers of the handler in the form of a unary answer.
func (q *request) setTrailers(trailers anser.Metadata) {
	headers, fields := exchange.Trailers(trailers)
	setFields(q.w.Header(), "", headers)
	setFields(q.w.Header(), "Trailer-", fields)
}

// fail answers with an error.
func (q *request) fail(e *anser.Error, trailers anser.Metadata) {
	data, _ := json.Marshal(errorOf(e))
	q.setTrailers(trailers)
	h := q.w.Header()
	h.Set("Content-Type", "application/json")
	setFields(h, "", exchange.RetryFields(e))
	h.Set("Content-Length", strconv.Itoa(len(data)))
	status := exchange.HTTPStatus(e.Code)
	if q.method == nil && e.Code == anser.Unimplemented {
		status = http.StatusNotFound // as the protocol has it for an unknown path
	}
	q.w.WriteHeader(status)
	q.w.Write(data)
}

// errorJSON is an error in Connect's form.
type errorJSON struct {
	Code    string       `json:"code"`
	Message string       `json:"message,omitempty"`
	Details []detailJSON `json:"details,omitempty"`
}

type detailJSON struct {
	Type  string `json:"type"`
	Value string `json:"value"` // base64 without padding
}

func errorOf(e *anser.Error) *errorJSON {
	out := &errorJSON{Code: exchange.CodeName(e.Code), Message: e.Message}
	for _, d := range exchange.Status(e).Details {
		name := d.TypeUrl[strings.LastIndexByte(d.TypeUrl, '/')+1:]
		out.Details = append(out.Details, detailJSON{Type: name, Value: base64.RawStdEncoding.EncodeToString(d.Value)})
	}
	return out
}
