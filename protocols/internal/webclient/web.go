package webclient

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/wire"
)

// flagWebEnd is the flag of the envelope with the trailers.
const flagWebEnd = 0x80

// web makes a gRPC-Web call.
func (c *call) web() (a answer) {
	const prefix = "application/grpc-web"
	kind := prefix + "+" + codecName(c.codec)
	r := c.request(http.MethodPost, kind)
	if c.isStream {
		r.Body, r.ContentLength = &messages{c: c}, -1
	} else {
		body := envelope(c.first())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	r.Header.Set("X-Grpc-Web", "1")
	if c.timeout > 0 {
		r.Header.Set("Grpc-Timeout", exchange.FormatTimeout(c.timeout))
	}
	if c.gzip {
		r.Header.Set("Grpc-Encoding", "gzip") // messages that gain nothing are not compressed
		r.Header.Set("Grpc-Accept-Encoding", "gzip")
	}
	response, fault := c.do(r)
	if fault != nil {
		return answer{fault: fault}
	}
	defer response.Body.Close()
	status := exchange.TakeStatus(response.Header)
	a.headers = exchange.ResponseMetadata(response.Header)
	got := response.Header.Get("Content-Type")
	switch {
	case response.StatusCode != http.StatusOK:
		a.fault = exchange.HTTPFailure(response.StatusCode, got)
		return a
	case got != kind && (got != prefix || c.codec != codecProtobuf):
		a.fault = wrongType(got, prefix)
		return a
	}
	packed, fault := c.packedBy(response.Header.Get("Grpc-Encoding"))
	if a.fault = fault; fault != nil {
		return a
	}
	body := bufio.NewReader(response.Body)
	if _, err := body.Peek(1); status != nil && err == io.EOF { // the answer has no other part
		status.Alone = true
		if a.fault, a.trailers = status.Fault(), maps.Clone(a.headers); a.fault == nil && !c.isStream {
			a.fault = exchange.Cardinality("the server has sent no message")
		}
		c.deliverHeaders(&a)
		return a
	}
	c.deliverHeaders(&a)
	c.webMessages(body, packed, &a)
	return a
}

// webMessages reads the messages and the trailers of an answer.
func (c *call) webMessages(body io.Reader, packed bool, a *answer) {
	received := 0
	for {
		flags, payload, fault, err := c.next(body)
		switch {
		case fault != nil:
			a.fault = fault
			return
		case err == io.EOF:
			a.fault = exchange.Unexpected("the server has ended the answer without a status")
			return
		case err != nil:
			a.fault = c.broken(err)
			return
		case flags&flagPacked != 0 && !packed || flags&^(flagPacked|flagWebEnd) != 0:
			a.fault = exchange.Unexpected("the server has sent a message with flags that were not agreed on")
			return
		case flags&flagWebEnd != 0:
			if a.trailers, a.fault = c.webEnd(payload, flags&flagPacked != 0); a.fault == nil && !c.isStream && received == 0 {
				a.fault = exchange.Cardinality("the server has sent no message")
			}
			if a.fault == nil {
				a.fault = c.drained(body)
			}
			return
		case c.isStream:
			if !c.deliver(payload, flags&flagPacked != 0) {
				return
			}
		default:
			if received++; received > 1 {
				a.fault = exchange.Cardinality("the server has sent more than one message for a unary call")
				return
			}
			a.payload, a.packed = payload, flags&flagPacked != 0
		}
	}
}

// webEnd parses the trailers.
func (c *call) webEnd(payload []byte, packed bool) (map[string][]string, *wire.ErrorBody) {
	if packed {
		plain, err := exchange.Compressor("gzip").Decompress(nil, payload, int(c.t.client.MaxFrame))
		if err != nil {
			return nil, exchange.Unexpected("the trailers cannot be decompressed: " + err.Error())
		}
		payload = plain
	}
	h := make(http.Header)
	for line := range strings.SplitSeq(string(payload), "\n") {
		if line = strings.TrimSuffix(line, "\r"); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, exchange.Unexpected("the trailers are malformed")
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	status := exchange.TakeStatus(h)
	if status == nil {
		return nil, exchange.Unexpected("the server has sent no status")
	}
	return exchange.ResponseMetadata(h), status.Fault()
}
