package webclient

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/internal/stubwire"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/wire"
)

// call is a call of the client, and the request that it becomes.
type call struct {
	t                *translator
	id               uint64
	oneway, isStream bool
	accepts          bool // the client reads a message with headers first
	path             string
	codec            uint8
	gzip             bool // the client understands gzip
	token, trace     string
	fields           []hpack.HeaderField // metadata
	timeout          time.Duration       // 0: none
	ctx              context.Context
	cancel           context.CancelFunc

	// Guarded by the lock of the translator.
	queue       []message // to the server
	joined      []byte    // parts of a message that is not complete
	clientEnded bool
	back        int64 // bytes of DATA that have left, and were not returned to the client yet
	upCredit    int64 // bytes of DATA that the client accepts
	ended       bool  // the client has been told, or has given up
}

// message is one for the server.
type message struct {
	payload []byte
	plain   bool
	owed    int64 // the client's credit
}

// The numbers of Anser's codecs that servers know.
const (
	codecJSON     = 3
	codecProtobuf = 4
)

// codecName returns the name of a codec in a content type, or "".
func codecName(codec uint8) string {
	switch codec {
	case codecProtobuf:
		return "proto"
	case codecJSON:
		return "json"
	}
	return ""
}

// prefixSize is the size of the flag and the length before a message.
const prefixSize = 5

// answer is what the server has answered.
type answer struct {
	headers, trailers map[string][]string
	payload           []byte // of a unary call
	packed            bool   // with gzip
	fault             *wire.ErrorBody
}

// run makes the request, and tells the client how it has ended.
func (c *call) run() {
	defer c.cancel()
	var a answer
	switch {
	case c.t.Web:
		a = c.web()
	case c.isStream:
		a = c.connectStream()
	default:
		a = c.connectUnary()
	}
	c.finish(&a)
}

// request returns the request without a body.
func (c *call) request(method, kind string) *http.Request {
	u := *c.t.base
	u.Path = c.path // a name of a method may have any characters, which are escaped when they are sent
	r := (&http.Request{Method: method, URL: &u, Host: u.Host, Header: make(http.Header)}).WithContext(c.ctx)
	for _, f := range c.fields {
		r.Header[http.CanonicalHeaderKey(f.Name)] = append(r.Header[http.CanonicalHeaderKey(f.Name)], f.Value)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("User-Agent", "anser")
	if c.token != "" {
		r.Header.Set("Authorization", c.token)
	}
	if c.trace != "" {
		r.Header.Set("Traceparent", c.trace)
	}
	return r
}

// do sends a request and waits for the header of the answer.
func (c *call) do(r *http.Request) (*http.Response, *wire.ErrorBody) {
	response, err := c.t.sender.RoundTrip(r)
	if err == nil {
		return response, nil
	}
	e := c.broken(err)
	if dial, ok := errors.AsType[*dialError](err); ok && c.ctx.Err() == nil {
		e = &wire.ErrorBody{Code: wire.Unavailable, Outcome: wire.Refused, Message: fmt.Sprintf("connect to the server: %v", dial.error)}
	}
	if c.ctx.Err() == nil {
		c.t.mu.Lock()
		c.t.leaveLocked()
		c.t.mu.Unlock()
	}
	return nil, e
}

// broken returns the error of an answer that has not arrived.
func (c *call) broken(err error) *wire.ErrorBody {
	if err == errCutOff {
		return exchange.Unexpected(err.Error())
	}
	e := &wire.ErrorBody{Code: wire.Unavailable, Outcome: wire.OutcomeUnknown, Message: fmt.Sprintf("the answer has not arrived: %v", err)}
	switch c.ctx.Err() {
	case context.DeadlineExceeded:
		e.Code, e.Message = wire.DeadlineExceeded, "the time of the call is over"
	case context.Canceled:
		e.Code, e.Message = wire.Canceled, "the call was cancelled"
	}
	return e
}

// first returns the message of a unary call.
func (c *call) first() message {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	if len(c.queue) == 0 {
		return message{} // it was cancelled
	}
	m := c.queue[0]
	c.queue = nil
	return m
}

// messages is the body of a stream's request: the messages of the client in envelopes.
type messages struct {
	c *call

	// Guarded by the lock of the translator.
	rest []byte
	owed int64 // the client's credit for rest
}

func (b *messages) Read(p []byte) (int, error) {
	t := b.c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b.rest) == 0 {
		for len(b.c.queue) == 0 && !b.c.clientEnded && !b.c.ended && t.err == nil {
			t.change.Wait()
		}
		if len(b.c.queue) == 0 {
			return 0, io.EOF
		}
		m := b.c.queue[0]
		b.c.queue[0] = message{}
		b.c.queue = b.c.queue[1:]
		b.rest, b.owed = envelope(m), m.owed
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		t.returnLocked(b.c, b.owed)
		b.rest, b.owed = nil, 0
		t.change.Broadcast()
	}
	return n, nil
}

// Close makes a Read that waits return, and gives up the messages that the server does not want.
func (b *messages) Close() error {
	t := b.c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	b.c.clientEnded = true
	t.returnLocked(nil, b.owed)
	b.rest, b.owed = nil, 0
	t.dropLocked(b.c)
	t.change.Broadcast()
	return nil
}

// envelope returns a message with its prefix.
func envelope(m message) []byte {
	b := make([]byte, prefixSize, prefixSize+len(m.payload))
	if !m.plain {
		b[0] = flagPacked
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(m.payload)))
	return append(b, m.payload...)
}

// flagPacked is the flag of an envelope whose message is compressed.
const flagPacked = 1

// next reads an envelope of the answer. Its error is io.EOF between two of them.
func (c *call) next(body io.Reader) (flags byte, payload []byte, fault *wire.ErrorBody, err error) {
	prefix, err := readAll(body, nil, prefixSize)
	if err != nil {
		return 0, nil, nil, err
	}
	size := int64(binary.BigEndian.Uint32(prefix[1:]))
	if size+wire.ReplySize > int64(c.t.client.MaxFrame) {
		return 0, nil, exchange.ReplyTooLarge(size), nil
	}
	payload, err = readAll(body, make([]byte, 0, min(size, 64<<10)), size) // never from a length that is only declared
	if err == io.EOF {
		err = errCutOff
	}
	return prefix[0], payload, nil, err
}

// errCutOff is the error of a body that ends inside an envelope.
var errCutOff = errors.New("the server has ended the answer inside a message")

// readAll appends size bytes of the body to b. The error is io.EOF if there is none at all.
func readAll(body io.Reader, b []byte, size int64) ([]byte, error) {
	for int64(len(b)) < size {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := body.Read(b[len(b):min(int64(cap(b)), size)])
		if b = b[:len(b)+n]; err == nil || int64(len(b)) == size {
			continue
		}
		if err == io.EOF && len(b) > 0 {
			err = errCutOff
		}
		return nil, err
	}
	return b, nil
}

// deliver passes a message of a stream to the client, as it accepts it. It reports whether the
// client still wants more.
func (c *call) deliver(payload []byte, packed bool) bool {
	t := c.t
	compression := uint8(0)
	if packed {
		compression = exchange.GzipNumber
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for !c.ended && t.err == nil && min(c.upCredit, t.upCredit) < wire.DataSize+int64(min(1, len(payload))) {
			t.change.Wait()
		}
		if c.ended || t.err != nil {
			return false
		}
		n := min(len(payload), int(min(c.upCredit, t.upCredit))-wire.DataSize)
		flags := wire.Flags(0)
		if n < len(payload) {
			flags = wire.FlagMore
		}
		at := len(t.up)
		t.up = append(wire.AppendDataHead(t.up, c.id, flags, c.codec, compression), payload[:n]...)
		wire.PutLength(t.up[at:], uint32(wire.DataSize+n))
		c.upCredit -= int64(wire.DataSize + n)
		t.upCredit -= int64(wire.DataSize + n)
		t.change.Broadcast()
		if payload = payload[n:]; flags == 0 {
			return true
		}
	}
}

// deliverHeaders forwards the headers of a stream to stubs of other frameworks.
func (c *call) deliverHeaders(a *answer) {
	if !c.accepts || !c.isStream || c.codec != codecProtobuf {
		return
	}
	payload, err := proto.Marshal(stubwire.HeaderMessage(a.headers))
	if err == nil && int64(len(payload))+wire.DataSize <= int64(c.t.client.MaxFrame) && c.deliver(payload, false) {
		a.headers = nil
	}
}

// finish tells the client how the call has ended.
func (c *call) finish(a *answer) {
	t := c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.ended || t.err != nil {
		return
	}
	if a.headers != nil {
		if a.trailers == nil {
			a.trailers = make(map[string][]string)
		}
		a.trailers[stubwire.HeadersKey] = []string{stubwire.PackHeaders(a.headers)}
	}
	metadata := exchange.AppendMetadata(a.trailers, t.client.MaxMetadata)
	size := int64(len(a.payload) + len(metadata) + wire.ReplySize)
	switch {
	case c.oneway:
	case a.fault != nil:
		a.fault.Metadata = metadata
		if room := int64(t.client.MaxFrame) - wire.ErrorSize - int64(len(a.fault.Message)); int64(len(metadata)+len(a.fault.Details)) > room {
			a.fault.Metadata, a.fault.Details = nil, nil
		}
		c.errorLocked(a.fault)
	case c.isStream:
		t.up = wire.AppendEnd(t.up, c.id, metadata)
	case size > int64(t.client.MaxFrame):
		c.errorLocked(exchange.ReplyTooLarge(int64(len(a.payload))))
	default:
		compression := uint8(0)
		if a.packed {
			compression = exchange.GzipNumber
		}
		at := len(t.up)
		t.up = append(wire.AppendReplyHead(t.up, c.id, 0, c.codec, compression, metadata), a.payload...)
		wire.PutLength(t.up[at:], uint32(len(t.up)-at-wire.HeaderSize))
	}
	t.removeLocked(c)
}

func (c *call) errorLocked(e *wire.ErrorBody) {
	if !c.oneway {
		c.t.up = wire.AppendError(c.t.up, c.id, 0, e)
	}
}
