package rpcxclient

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
	"github.com/anser-rpc/anser/wire"
)

// take handles the client's frames until it closes the connection or breaks the protocol. Messages
// for the server are written when no further frame has arrived.
func (t *translator) take(far io.Reader) {
	r := bufio.NewReaderSize(far, readBuffer)
	preface := make([]byte, wire.PrefaceSize)
	if _, err := io.ReadFull(r, preface); err != nil || wire.ParsePreface(preface) != nil {
		return
	}
	head := make([]byte, wire.HeaderSize)
	var body []byte
	for {
		if r.Buffered() == 0 {
			t.server.Out.Flush()
			t.client.Out.FlushLater()
		}
		if _, err := io.ReadFull(r, head); err != nil {
			return
		}
		h, err := wire.ParseHeader(head)
		if err != nil {
			return
		}
		if cap(body) < int(h.Length) || cap(body) > 4*readBuffer {
			body = make([]byte, h.Length)
		}
		body = body[:h.Length]
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		if !t.frame(h, body) {
			t.client.Out.FlushAll()
			return
		}
	}
}

// frame handles a frame of the client, and reports whether the connection goes on.
func (t *translator) frame(h wire.Header, body []byte) bool {
	switch h.Type {
	case wire.TypeSettings:
		settings, err := wire.ParseSettings(body)
		if err != nil {
			return false
		}
		t.mu.Lock()
		t.settings = settings
		t.mu.Unlock()
		if settings.Features&wire.FeatureAuth == 0 {
			t.hello()
		} // otherwise AUTH follows
	case wire.TypeAuth:
		scheme, credential, err := wire.ParseAuth(body)
		return err == nil && t.authorize(scheme, credential)
	case wire.TypeMethod:
		_, name, err := wire.ParseMethod(body)
		if err != nil {
			return false
		}
		t.methods = append(t.methods, methodOf(name))
	case wire.TypeRequest:
		return t.request(h, body)
	case wire.TypeCancel: // the server does not learn of it
		t.mu.Lock()
		delete(t.calls, h.ID)
		t.mu.Unlock()
		return !t.over()
	case wire.TypeDrain:
		t.mu.Lock()
		t.left = t.left || h.Flags&wire.FlagAck != 0 && t.lost
		t.mu.Unlock()
		return !t.over()
	case wire.TypePing:
		value, err := wire.ParsePing(body)
		if err != nil {
			return false
		}
		t.mu.Lock()
		t.ping, t.pinging = value, true
		t.mu.Unlock()
		t.send(func(b []byte) []byte { return appendHeartbeat(b, value) })
	}
	return true
}

// methodOf returns the service's path and the name of a method such as "pkg.Service.Method" or
// "pkg.Service/Method".
func methodOf(name string) method {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		i = strings.LastIndexByte(name, '.')
	}
	if i < 0 {
		return method{"", name}
	}
	return method{name[:i], name[i+1:]}
}

// hello sends what an Anser server sends first.
func (t *translator) hello() {
	if t.shaken {
		return
	}
	t.shaken = true
	own := wire.DefaultSettings()
	own.MaxFrame = h2.MaxWindow // the server says what is too large
	own.MaxCalls, own.MaxStreams = maxCalls, 0
	own.AddCompression(exchange.GzipNumber)
	t.tell(func(b []byte) []byte { return wire.AppendSettings(wire.AppendPreface(b), own) })
}

// authorize takes a credential, which every call shows from here on.
func (t *translator) authorize(scheme string, credential []byte) bool {
	switch scheme {
	case "token", "jwt", "bearer":
		t.token = string(credential)
		t.hello()
		return true
	}
	t.tell(func(b []byte) []byte {
		if !t.shaken {
			b = wire.AppendPreface(b)
		}
		return wire.AppendClose(b, wire.Unauthenticated, exchange.NoAuthorization(scheme))
	})
	return false
}

// serializations are the codecs of Anser that rpcx has.
var serializations = map[uint8]rpcxwire.Serialization{
	codec.RawID: rpcxwire.Raw, codec.JSONID: rpcxwire.JSON, codec.ProtobufID: rpcxwire.Protobuf, codec.MsgpackID: rpcxwire.MessagePack,
}

// request begins a call, and reports whether the connection goes on.
func (t *translator) request(h wire.Header, body []byte) bool {
	var r wire.Request
	err := wire.ParseRequest(h.Flags, body, &r)
	var metadata map[string]string
	if err == nil {
		metadata, err = t.describe(h.Flags, &r)
	}
	oneway := h.Flags&wire.FlagOneway != 0
	if fault, ok := err.(*wire.CallError); ok {
		if !oneway {
			t.fail(h.ID, refusal(fault.Code, fault.Text))
		}
		return true
	}
	if err != nil {
		return false
	}
	head := rpcxwire.Head{Serialization: serializations[r.Codec], Seq: h.ID}
	c := &call{codec: r.Codec, gzip: r.Compression == exchange.GzipNumber, before: unknown}
	if oneway {
		head.Flags |= rpcxwire.Oneway
	}
	if c.gzip && h.Flags&wire.FlagPlain == 0 {
		head.Flags |= rpcxwire.Gzip
	}
	if r.Timeout > 0 {
		c.deadline = mono.Now().Add(time.Duration(r.Timeout) * time.Microsecond)
	}
	if !oneway && !t.enter(h.ID, c) {
		t.fail(h.ID, refusal(wire.Unavailable, "the connection to the rpcx server has ended"))
		return true
	}
	m := t.methods[r.Method-1]
	before, err := t.send(func(b []byte) []byte { return rpcxwire.Append(b, head, m.path, m.name, metadata, r.Payload) })
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		c.before = before
	case t.calls[h.ID] == c:
		delete(t.calls, h.ID)
		t.fail(h.ID, refusal(wire.Unavailable, "the connection to the rpcx server has ended"))
	}
	return true
}

// enter adds a call, unless the server has gone.
func (t *translator) enter(id uint64, c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return false
	}
	t.sweepLocked()
	t.calls[id] = c
	return true
}

// describe returns the metadata of a request. A *wire.CallError refuses it.
func (t *translator) describe(flags wire.Flags, r *wire.Request) (map[string]string, error) {
	if r.Method == 0 || int(r.Method) > len(t.methods) {
		return nil, wire.Errorf(wire.BadMethod, "no method has the number %d", r.Method)
	}
	pairs, key, err := wire.ParseRequestMetadata(r.Metadata, t.settings.MaxMetadata)
	_, known := serializations[r.Codec]
	m := &t.methods[r.Method-1]
	switch {
	case err != nil:
		return nil, err
	case key != "":
		return nil, &wire.CallError{Code: wire.Unimplemented, Text: "rpcx servers do not remember calls by idempotency keys: call without one"}
	case flags&wire.FlagStream != 0:
		return nil, &wire.CallError{Code: wire.Unimplemented, Text: "rpcx servers have no streams"}
	case !known:
		return nil, &wire.CallError{Code: wire.Unimplemented, Text: "rpcx servers take messages in MessagePack, JSON, protobuf or raw bytes: choose one with anser.Codec"}
	case m.path == "" || len(m.path) > rpcxwire.MaxName || len(m.name) > rpcxwire.MaxName:
		return nil, &wire.CallError{Code: wire.InvalidArgument, Text: "an rpcx method is named by its service path, a dot, and its own name, of at most 255 bytes each"}
	}
	metadata := make(map[string]string, len(pairs)+3)
	for _, p := range pairs {
		if !strings.HasPrefix(p.Key, "__") {
			metadata[p.Key] = p.Value
		}
	}
	if t.token != "" {
		metadata[rpcxwire.AuthKey] = t.token
	}
	if r.Timeout > 0 {
		metadata[rpcxwire.TimeoutKey] = strconv.FormatUint((r.Timeout+999)/1000, 10)
	}
	if flags&wire.FlagTrace != 0 {
		metadata["traceparent"] = exchange.TraceParent(&r.Trace)
	}
	return metadata, nil
}

// leastSweep is the least number of calls at which sweep looks at them.
const leastSweep = 1024

// sweepLocked forgets calls whose time is over: their client knows, and the server may never
// answer.
func (t *translator) sweepLocked() {
	if len(t.calls) < t.sweepAt {
		return
	}
	now := mono.Now()
	for id, c := range t.calls {
		if c.deadline != 0 && now.Sub(c.deadline) > time.Second {
			delete(t.calls, id)
		}
	}
	t.sweepAt = max(leastSweep, 2*len(t.calls))
}

// over tells the client that the connection has ended, when the server has gone and the client
// makes no further calls here.
func (t *translator) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left && len(t.calls) == 0 && !t.bye {
		t.bye = true
		t.tell(func(b []byte) []byte {
			return wire.AppendClose(b, wire.Normal, "the connection to the server has ended")
		})
	}
	return t.bye
}
