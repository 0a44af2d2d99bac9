package webclient

import (
	"bufio"
	"context"
	"io"
	"time"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

// read handles the client's frames until it closes the connection or breaks the protocol.
func (t *translator) read(r *bufio.Reader) error {
	head := make([]byte, wire.HeaderSize)
	preface := make([]byte, wire.PrefaceSize)
	if _, err := io.ReadFull(r, preface); err != nil {
		return err
	}
	if err := wire.ParsePreface(preface); err != nil {
		return err
	}
	for {
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		h, err := wire.ParseHeader(head)
		if err != nil {
			return err
		}
		body := make([]byte, h.Length) // calls keep parts of it
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		t.mu.Lock()
		err = t.frameLocked(h, body)
		t.change.Broadcast()
		ended := t.err
		t.mu.Unlock()
		if err != nil {
			return err
		}
		if ended != nil {
			return ended
		}
	}
}

// frameLocked handles a frame of the client.
func (t *translator) frameLocked(h wire.Header, body []byte) error {
	switch h.Type {
	case wire.TypeSettings:
		var err error
		if t.client, err = wire.ParseSettings(body); err != nil {
			return err
		}
		t.upCredit = int64(t.client.ConnWindow)
		if t.client.Features&wire.FeatureAuth == 0 {
			t.helloLocked()
		} // otherwise AUTH follows
	case wire.TypeAuth:
		scheme, credential, err := wire.ParseAuth(body)
		if err != nil {
			return err
		}
		t.authorizeLocked(scheme, credential)
	case wire.TypeMethod:
		_, name, err := wire.ParseMethod(body)
		if err != nil {
			return err
		}
		t.methods = append(t.methods, exchange.PathOf(name))
	case wire.TypeRequest:
		return t.requestLocked(h, body)
	case wire.TypeCancel:
		if c := t.calls[h.ID]; c != nil {
			t.removeLocked(c)
		}
	case wire.TypeDrain:
		t.left = t.left || h.Flags&wire.FlagAck != 0 && t.leaving
		t.endedLocked()
	case wire.TypePing:
		value, err := wire.ParsePing(body)
		if err != nil {
			return err
		}
		// net/http finds out whether an HTTP/2 connection is dead.
		t.up = wire.AppendPing(t.up, wire.TypePong, value)
	case wire.TypeData:
		return t.dataLocked(h, body)
	case wire.TypeEnd:
		if c := t.calls[h.ID]; c != nil {
			c.clientEnded = true
		}
	case wire.TypeWindow:
		credit, err := wire.ParseWindow(h.ID, body)
		if err != nil {
			return err
		}
		if h.ID == 0 {
			t.upCredit += int64(credit)
		} else if c := t.calls[h.ID]; c != nil {
			c.upCredit += int64(credit)
		}
	}
	return nil
}

// helloLocked sends what an Anser server sends first.
func (t *translator) helloLocked() {
	if t.shaken {
		return
	}
	own := wire.DefaultSettings()
	own.MaxFrame = h2.MaxWindow // the server says what is too large
	own.MaxCalls, own.MaxStreams = maxCalls, maxCalls
	own.StreamWindow, own.ConnWindow = sendWindow, connWindow
	own.AddCompression(exchange.GzipNumber)
	t.up = wire.AppendSettings(wire.AppendPreface(t.up), own)
	t.shaken = true
}

// authorizeLocked takes a credential, which every call shows from here on.
func (t *translator) authorizeLocked(scheme string, credential []byte) {
	token, ok := exchange.Authorization(scheme, credential)
	if !ok {
		if !t.shaken {
			t.up = wire.AppendPreface(t.up)
		}
		t.up = wire.AppendClose(t.up, wire.Unauthenticated, exchange.NoAuthorization(scheme))
		t.endLocked(io.EOF)
		return
	}
	t.token = token
	t.helloLocked()
}

// requestLocked begins a call.
func (t *translator) requestLocked(h wire.Header, body []byte) error {
	c := &call{
		t: t, id: h.ID, oneway: h.Flags&wire.FlagOneway != 0, isStream: h.Flags&wire.FlagStream != 0,
		upCredit: int64(t.client.StreamWindow), token: t.token,
	}
	var r wire.Request
	err := wire.ParseRequest(h.Flags, body, &r)
	if err == nil {
		err = c.describe(h.Flags, &r)
	}
	if fault, ok := err.(*wire.CallError); ok {
		c.errorLocked(&wire.ErrorBody{Code: fault.Code, Outcome: wire.Refused, Message: fault.Text})
		return nil
	}
	if err != nil {
		return err
	}
	c.ctx, c.cancel = context.WithCancel(t.ctx)
	if r.Timeout > 0 {
		c.timeout = time.Duration(r.Timeout) * time.Microsecond
		c.ctx, c.cancel = context.WithTimeout(t.ctx, c.timeout)
	}
	if len(r.Payload) > 0 || !c.isStream {
		c.queue = append(c.queue, message{payload: r.Payload, plain: r.Compression == 0 || h.Flags&wire.FlagPlain != 0})
	}
	c.clientEnded = !c.isStream
	t.calls[c.id] = c
	t.work.Go(c.run)
	return nil
}

// describe takes what the request says of the call. A *wire.CallError refuses it.
func (c *call) describe(flags wire.Flags, r *wire.Request) error {
	t := c.t
	if r.Method == 0 || int(r.Method) > len(t.methods) {
		return wire.Errorf(wire.BadMethod, "no method has the number %d", r.Method)
	}
	c.path, c.codec, c.gzip = t.methods[r.Method-1], r.Codec, r.Compression == exchange.GzipNumber
	pairs, key, err := wire.ParseRequestMetadata(r.Metadata, t.client.MaxMetadata)
	switch {
	case err != nil:
		return err
	case key != "":
		return &wire.CallError{Code: wire.Unimplemented, Text: "other servers than those of Anser do not remember calls by idempotency keys: call without one"}
	case codecName(c.codec) == "":
		return &wire.CallError{Code: wire.Unimplemented, Text: "the server takes messages in protobuf and JSON only"}
	case t.leaving:
		return &wire.CallError{Code: wire.Unavailable, Text: "the connection to the server has ended"}
	}
	c.fields, c.accepts = exchange.RequestFields(pairs)
	if flags&wire.FlagTrace != 0 {
		c.trace = exchange.TraceParent(&r.Trace)
	}
	return nil
}

// dataLocked handles a message of a stream, or a part of one.
func (t *translator) dataLocked(h wire.Header, body []byte) error {
	_, compression, payload, err := wire.ParseData(body)
	if err != nil {
		return err
	}
	c := t.calls[h.ID]
	if c == nil || !c.isStream || c.clientEnded {
		t.returnLocked(nil, int64(len(body)))
		return nil
	}
	if h.Flags&wire.FlagMore != 0 || len(c.joined) > 0 {
		// The length of a message is sent before it, so its parts are joined.
		c.joined = append(c.joined, payload...)
		t.returnLocked(c, int64(len(body)))
		if h.Flags&wire.FlagMore == 0 {
			c.queue = append(c.queue, message{payload: c.joined, plain: compression == 0})
			c.joined = nil
		}
		return nil
	}
	c.queue = append(c.queue, message{payload: payload, plain: compression == 0, owed: int64(len(body))})
	return nil
}

// returnLocked returns credit for DATA to the client; c may be nil.
func (t *translator) returnLocked(c *call, n int64) {
	if t.sent += n; t.sent >= connWindow/4 {
		t.up = wire.AppendWindow(t.up, 0, uint32(t.sent))
		t.sent = 0
	}
	if c == nil {
		return
	}
	if c.back += n; c.back >= sendWindow/4 {
		t.up = wire.AppendWindow(t.up, c.id, uint32(c.back))
		c.back = 0
	}
}

// removeLocked forgets a call, and ends its request.
func (t *translator) removeLocked(c *call) {
	if t.calls[c.id] != c {
		return
	}
	delete(t.calls, c.id)
	c.ended = true
	t.dropLocked(c)
	c.cancel()
	t.endedLocked()
	t.change.Broadcast()
}

// dropLocked drops the messages of a call that wait, and returns their credit.
func (t *translator) dropLocked(c *call) {
	for _, m := range c.queue {
		t.returnLocked(nil, m.owed)
	}
	c.queue = nil
}
