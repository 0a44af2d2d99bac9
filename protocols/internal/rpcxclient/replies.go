package rpcxclient

import (
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
	"github.com/anser-rpc/anser/wire"
)

// receive handles the server's messages until the connection ends.
func (t *translator) receive() {
	for {
		h, f, err := t.replies.Next()
		if err == nil {
			err = t.message(&h, &f)
		}
		if err != nil {
			t.end(err)
			return
		}
		t.client.Out.Flush()
	}
}

// message handles a message of the server.
func (t *translator) message(h *rpcxwire.Head, f *rpcxwire.Front) error {
	switch {
	case !h.Has(rpcxwire.Response): // a message of the server to its clients
		return t.replies.Skip(f)
	case h.Has(rpcxwire.Heartbeat):
		t.mu.Lock()
		value, waits := t.ping, t.pinging
		t.pinging = false
		t.mu.Unlock()
		if waits {
			t.tell(func(b []byte) []byte { return wire.AppendPing(b, wire.TypePong, value) })
		}
		return t.replies.Skip(f)
	}
	t.mu.Lock()
	c := t.calls[h.Seq]
	delete(t.calls, h.Seq)
	settings := t.settings
	t.mu.Unlock()
	if c == nil { // the client has given up
		return t.replies.Skip(f)
	}
	metadata, e := t.metadataOf(f)
	if e == nil {
		e = faultOf(h, metadata)
	}
	trailers := trailersOf(metadata, settings.MaxMetadata)
	if e == nil {
		e = c.check(h, int64(f.Payload), int64(len(trailers)), int64(settings.MaxFrame))
	}
	if e != nil {
		if int64(len(trailers)+len(e.Message)) < int64(settings.MaxFrame)-wire.ErrorSize {
			e.Metadata = trailers
		}
		t.fail(h.Seq, e)
		return t.replies.Skip(f)
	}
	body, err := t.replies.Body(f)
	if err != nil {
		t.mu.Lock()
		t.calls[h.Seq] = c // it has ended without a reply
		t.mu.Unlock()
		return err
	}
	payload, compression := body[f.Size:], uint8(0)
	if h.IsGzip() {
		compression = exchange.GzipNumber
	}
	t.tell(func(b []byte) []byte {
		at := len(b)
		b = append(wire.AppendReplyHead(b, h.Seq, 0, c.codec, compression, trailers), payload...)
		wire.PutLength(b[at:], uint32(len(b)-at-wire.HeaderSize))
		return b
	})
	t.replies.Done()
	return nil
}

// metadataOf returns the metadata of a message.
func (t *translator) metadataOf(f *rpcxwire.Front) (map[string]string, *wire.ErrorBody) {
	metadata, err := rpcxwire.Pairs(f.Metadata)
	if err != nil {
		return nil, exchange.Unexpected(err.Error())
	}
	return metadata, nil
}

// check returns what is wrong with a reply, or nil.
func (c *call) check(h *rpcxwire.Head, payload, trailers, most int64) *wire.ErrorBody {
	err := h.CheckCompression()
	switch {
	case err != nil:
		return exchange.Unexpected(err.Error())
	case h.IsGzip() && !c.gzip:
		return exchange.Unexpected("the server has sent a message in a compression that was not agreed on")
	case serializations[c.codec] != h.Serialization:
		return exchange.Unexpected("the server has answered in " + h.Serialization.String() + ", which the request was not in")
	case payload+trailers+wire.ReplySize > most:
		return exchange.ReplyTooLarge(payload)
	}
	return nil
}

// trailersOf returns what the client gets of the metadata of a reply.
func trailersOf(metadata map[string]string, most uint64) []byte {
	var md map[string][]string
	for k, v := range metadata {
		if k = strings.ToLower(k); strings.HasPrefix(k, "__") || k == rpcxwire.CodeKey || k == rpcxwire.OutcomeKey {
			continue
		}
		if md == nil {
			md = make(map[string][]string)
		}
		md[k] = []string{v}
	}
	return exchange.AppendMetadata(md, most)
}

// refusals are the beginnings of the errors of rpcx's own server whose call did not run.
var refusals = []struct {
	text string
	code wire.Code
}{
	{"rpcx: can't find service", wire.Unimplemented},
	{"rpcx: can't find method", wire.Unimplemented},
	{"can not find codec for", wire.Unimplemented},
	{"request reached rate limit", wire.ResourceExhausted},
}

// faultOf returns the error of a response, or nil. An rpcx server says no more than a text: the
// method has run, unless the text is one of rpcx's own.
func faultOf(h *rpcxwire.Head, metadata map[string]string) *wire.ErrorBody {
	if !h.IsFailed() {
		return nil
	}
	text := strings.ToValidUTF8(metadata[rpcxwire.ErrorKey], "�")
	e := &wire.ErrorBody{Code: wire.Unknown, Outcome: wire.Executed, Message: text}
	if text == "" {
		e.Message = "the server has given no reason"
	}
	for _, r := range refusals {
		if strings.HasPrefix(text, r.text) {
			e.Code, e.Outcome = r.code, wire.Refused
		}
	}
	if code, ok := exchange.CodeOfName(metadata[rpcxwire.CodeKey]); ok { // a server of Anser
		e.Code = wire.Code(code)
		switch metadata[rpcxwire.OutcomeKey] {
		case anser.Refused.String():
			e.Outcome = wire.Refused
		case anser.Executed.String():
			e.Outcome = wire.Executed
		default:
			e.Outcome = wire.OutcomeUnknown
		}
	}
	return e
}
