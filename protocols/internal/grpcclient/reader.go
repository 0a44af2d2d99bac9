package grpcclient

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/stubwire"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func connError(code h2.Code, format string, args ...any) error {
	return &h2.ConnError{Code: code, Text: fmt.Sprintf(format, args...)}
}

// block is a header or trailers of the server.
type block struct {
	id    uint32 // of the stream; 0: none is being read
	end   bool
	parts int
	size  uint32

	status, contentType, encoding            string
	code, message, details, outcome, retryIn string
	more                                     map[string][]string
}

// emit takes a field of the block.
func (b *block) emit(f hpack.HeaderField) {
	if b.size += f.Size(); b.size > maxHeader {
		return
	}
	switch f.Name {
	case ":status":
		b.status = f.Value
	case "content-type":
		b.contentType = f.Value
	case "grpc-encoding":
		b.encoding = f.Value
	case "grpc-status":
		b.code = f.Value
	case "grpc-message":
		b.message = f.Value
	case "grpc-status-details-bin":
		b.details = f.Value
	case "grpc-retry-pushback-ms":
		b.retryIn = f.Value
	case "anser-outcome":
		b.outcome = f.Value
	default:
		if b.more == nil {
			b.more = make(map[string][]string)
		}
		exchange.AddResponse(b.more, f.Name, f.Value)
	}
}

func decodeBinary(s string) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
}

// next returns the next whole frame of the server.
func (c *Conn) next() (kind, flags byte, id uint32, p []byte, ok bool, err error) {
	have := c.buf[c.r:c.w]
	if len(have) < h2.HeaderSize {
		return 0, 0, 0, nil, false, nil
	}
	size := int(have[0])<<16 | int(have[1])<<8 | int(have[2])
	kind, flags, id = have[3], have[4], binary.BigEndian.Uint32(have[5:])&h2.MaxWindow
	if size > h2.MaxFrame {
		return 0, 0, 0, nil, false, connError(h2.FrameSizeError, "a frame of %d bytes", size)
	}
	if len(have) < h2.HeaderSize+size {
		return 0, 0, 0, nil, false, nil
	}
	c.r += h2.HeaderSize + size
	return kind, flags, id, have[h2.HeaderSize : h2.HeaderSize+size], true, nil
}

// handleLocked handles all frames that have been read.
func (c *Conn) handleLocked() {
	for c.err == nil {
		kind, flags, id, p, ok, err := c.next()
		if err == nil && !ok {
			return
		}
		if err == nil {
			err = c.frameLocked(kind, flags, id, p)
		}
		if err != nil {
			c.faultLocked(err)
		}
	}
}

// maxControls is the number of frames in a row that are not part of an answer: they cost the client
// more than the server.
const maxControls = 10_000

// frameLocked handles a frame of the server.
func (c *Conn) frameLocked(kind, flags byte, id uint32, p []byte) error {
	if c.block.id != 0 && (kind != h2.FrameContinuation || id != c.block.id) {
		return connError(h2.ProtocolError, "the header of stream %d is not complete", c.block.id)
	}
	if c.controls++; c.controls > maxControls {
		return connError(h2.EnhanceYourCalm, "too many frames without an answer")
	}
	switch kind {
	case h2.FrameData:
		return c.dataLocked(flags, id, p)
	case h2.FrameHeaders:
		p, err := h2.Unpad(flags, p)
		if err != nil {
			return err
		}
		if flags&h2.FlagPriority != 0 {
			if len(p) < 5 {
				return connError(h2.FrameSizeError, "HEADERS without its priority")
			}
			p = p[5:]
		}
		if id%2 == 0 || id > c.lastID {
			return connError(h2.ProtocolError, "HEADERS on stream %d, which is idle", id)
		}
		c.block = block{id: id, end: flags&h2.FlagEndStream != 0, parts: 1}
		return c.headerPartLocked(flags, p)
	case h2.FrameContinuation:
		if c.block.id == 0 {
			return connError(h2.ProtocolError, "CONTINUATION without a header")
		}
		if c.block.parts++; c.block.parts > maxParts {
			return connError(h2.EnhanceYourCalm, "a header of more than %d frames", maxParts)
		}
		return c.headerPartLocked(flags, p)
	case h2.FrameReset:
		if len(p) != 4 || id == 0 || id > c.lastID {
			return connError(h2.ProtocolError, "a malformed RST_STREAM")
		}
		c.wasResetLocked(id, h2.Code(binary.BigEndian.Uint32(p)))
	case h2.FrameSettings:
		return c.settingsLocked(flags, id, p)
	case h2.FramePushPromise:
		return connError(h2.ProtocolError, "PUSH_PROMISE, which was switched off")
	case h2.FramePing:
		return c.serverPingLocked(flags, id, p)
	case h2.FrameGoAway:
		if len(p) < 8 || id != 0 {
			return connError(h2.FrameSizeError, "a malformed GOAWAY")
		}
		c.goAwayLocked(binary.BigEndian.Uint32(p) & h2.MaxWindow)
	case h2.FrameWindowUpdate:
		return c.windowUpdateLocked(id, p)
	}
	return nil
}

func (c *Conn) headerPartLocked(flags byte, p []byte) error {
	if _, err := c.decoder.Write(p); err != nil {
		return connError(h2.CompressionError, "the header: %v", err)
	}
	if c.block.size > 4*maxHeader {
		return connError(h2.EnhanceYourCalm, "a header of more than %d bytes", 4*maxHeader)
	}
	if flags&h2.FlagEndHeaders == 0 {
		return nil
	}
	if err := c.decoder.Close(); err != nil {
		return connError(h2.CompressionError, "the header: %v", err)
	}
	b := &c.block
	st := c.streams[b.id]
	b.id = 0
	if st != nil && st.final == nil {
		c.answered = true
		c.headerLocked(st, b)
	}
	return nil
}

// headerLocked handles a header or the trailers of an answer.
func (c *Conn) headerLocked(st *stream, b *block) {
	if b.size > maxHeader {
		c.failLocked(st, &wire.ErrorBody{Code: wire.ResourceExhausted, Outcome: wire.OutcomeUnknown, Message: "the header of the answer is over " + itoa(maxHeader) + " bytes"})
		return
	}
	if !st.headed && !b.end {
		switch {
		case len(b.status) == 3 && b.status[0] == '1':
			return // informational: it counts for maxControls
		case b.status != "200" || !isGRPC(b.contentType):
			c.failLocked(st, notGRPC(b))
			return
		}
		c.controls = 0
		st.headed, st.gzip = true, b.encoding == "gzip"
		st.headers = b.more
		if st.accepts && st.isStream && st.codec == codecProtobuf {
			c.headerMessageLocked(st)
		}
		return
	}
	if !b.end {
		c.failLocked(st, exchange.Unexpected("the server has sent a second header"))
		return
	}
	if !st.headed && (b.status != "200" || !isGRPC(b.contentType) && b.code == "") {
		c.failLocked(st, notGRPC(b))
		return
	}
	c.controls = 0
	e := statusOf(b, !st.headed)
	if e.Code == wire.OK {
		if fault := c.completeLocked(st); fault != nil {
			e = fault
		}
	}
	st.final, st.trailers = e, b.more
	if st.held {
		return // the client must accept the rest first
	}
	c.finishLocked(st)
}

// completeLocked returns what is missing in an answer that has ended with success.
func (c *Conn) completeLocked(st *stream) *wire.ErrorBody {
	switch {
	case st.isStream && (st.left > 0 || len(st.in) > 0) && !st.held:
		return exchange.Unexpected("the server has ended the stream inside a message")
	case st.isStream:
	case len(st.in) < prefixSize:
		return exchange.Cardinality("the server has sent no message")
	case len(st.in)-prefixSize != int(binary.BigEndian.Uint32(st.in[1:])):
		return exchange.Unexpected("the server has ended the answer inside the message")
	case st.in[0] > 1 || st.in[0] == 1 && (!st.gzip || st.compression != exchange.GzipNumber):
		return exchange.Unexpected("the server has sent a message in a compression that was not agreed on")
	}
	return nil
}

// headerMessageLocked forwards the headers of a stream to stubs of other frameworks.
func (c *Conn) headerMessageLocked(st *stream) {
	payload, err := proto.Marshal(stubwire.HeaderMessage(st.headers))
	if err != nil || c.client.MaxFrame < uint64(len(payload)+wire.DataSize) {
		return
	}
	st.headers = nil
	message := append([]byte{0, 0, 0, 0, 0}, payload...)
	binary.BigEndian.PutUint32(message[1:], uint32(len(payload)))
	// It did not come from the server, which must not get credit for it.
	c.returned -= prefixSize
	st.returned -= prefixSize
	c.overhead += int64(len(payload))
	st.overhead += int64(len(payload))
	c.receiveLocked(st, message)
}

// finishLocked ends a call for the client.
func (c *Conn) finishLocked(st *stream) {
	e := st.final
	if st.headers != nil {
		if st.trailers == nil {
			st.trailers = make(map[string][]string)
		}
		st.trailers[stubwire.HeadersKey] = []string{stubwire.PackHeaders(st.headers)}
	}
	var metadata []byte
	if len(st.trailers) > 0 {
		metadata = exchange.AppendMetadata(st.trailers, c.client.MaxMetadata)
	}
	switch {
	case st.oneway:
	case e.Code != wire.OK:
		e.Metadata = metadata
		if room := int64(c.client.MaxFrame) - wire.ErrorSize - int64(len(e.Message)); int64(len(metadata)+len(e.Details)) > room {
			e.Metadata, e.Details = nil, nil
		}
		c.up = wire.AppendError(c.up, st.call, 0, e)
	case st.isStream:
		c.up = wire.AppendEnd(c.up, st.call, metadata)
	case uint64(len(st.in)-prefixSize+len(metadata)+wire.ReplySize) > c.client.MaxFrame:
		c.up = wire.AppendError(c.up, st.call, 0, exchange.ReplyTooLarge(int64(len(st.in)-prefixSize)))
	default:
		at := len(c.up)
		c.up = wire.AppendReplyHead(c.up, st.call, 0, st.codec, st.in[0]*exchange.GzipNumber, metadata)
		c.up = append(c.up, st.in[prefixSize:]...)
		wire.PutLength(c.up[at:], uint32(len(c.up)-at-wire.HeaderSize))
	}
	if st.sentEnd {
		c.removeLocked(st)
	} else {
		c.resetLocked(st, h2.NoError) // the server wants nothing more
	}
	c.endedLocked()
}

// failLocked ends a call because of an error of this side.
func (c *Conn) failLocked(st *stream, e *wire.ErrorBody) {
	if !st.oneway {
		c.up = wire.AppendError(c.up, st.call, 0, e)
	}
	c.resetLocked(st, h2.Cancel)
	c.endedLocked()
}

// endedLocked continues after the end of a call.
func (c *Conn) endedLocked() {
	c.openQueuedLocked()
	if c.left && len(c.streams) == 0 {
		c.byeLocked()
	}
}

// dataLocked handles DATA.
func (c *Conn) dataLocked(flags byte, id uint32, p []byte) error {
	body, err := h2.Unpad(flags, p)
	if err != nil {
		return err
	}
	if id == 0 || id > c.lastID {
		return connError(h2.ProtocolError, "DATA on stream %d, which is idle", id)
	}
	if c.window -= int64(len(p)); c.window < 0 {
		return connError(h2.FlowControlError, "DATA beyond the window of the connection")
	}
	if len(body) > 0 {
		c.controls = 0
	}
	st := c.streams[id]
	if st == nil || st.final != nil { // it was cancelled, or has ended
		c.giveBackLocked(int64(len(p)))
		return nil
	}
	c.answered = true
	if st.window -= int64(len(p)); st.window < 0 {
		return connError(h2.FlowControlError, "DATA beyond the window of stream %d", id)
	}
	if padding := int64(len(p) - len(body)); padding > 0 {
		c.giveBackLocked(padding)
		c.consumeLocked(st, padding)
	}
	if !st.headed {
		c.giveBackLocked(int64(len(body)))
		c.failLocked(st, exchange.Unexpected("the server has sent a message before the header"))
		return nil
	}
	if fault := c.receiveLocked(st, body); fault != nil {
		c.failLocked(st, fault)
		return nil
	}
	if flags&h2.FlagEndStream != 0 {
		c.failLocked(st, exchange.Unexpected("the server has ended the answer without a status"))
	}
	return nil
}

// settingsLocked handles SETTINGS.
func (c *Conn) settingsLocked(flags byte, id uint32, p []byte) error {
	switch {
	case id != 0:
		return connError(h2.ProtocolError, "SETTINGS on stream %d", id)
	case flags&h2.FlagAck != 0:
		return nil
	case len(p)%6 != 0:
		return connError(h2.FrameSizeError, "SETTINGS of %d bytes", len(p))
	}
	grown, window := false, c.initial
	for ; len(p) > 0; p = p[6:] {
		v := binary.BigEndian.Uint32(p[2:])
		switch binary.BigEndian.Uint16(p) {
		case h2.SettingTableSize:
			c.headers.limit(v)
		case h2.SettingMaxStreams:
			c.most = int(min(v, maxQueued))
			grown = true
		case h2.SettingWindow:
			if v > h2.MaxWindow {
				return connError(h2.FlowControlError, "INITIAL_WINDOW_SIZE is %d", v)
			}
			window, grown = int64(v), true // the streams learn only the last one, since there may be many of both
		case h2.SettingMaxFrame:
			if v < h2.MaxFrame || v >= 1<<24 {
				return connError(h2.ProtocolError, "MAX_FRAME_SIZE is %d", v)
			}
		}
	}
	c.out = append(c.out, h2.FrameHeader(0, h2.FrameSettings, h2.FlagAck, 0)...)
	if grown {
		delta := window - c.initial
		c.initial = window
		for _, st := range c.streams {
			if st.credit += delta; st.credit > h2.MaxWindow {
				return connError(h2.FlowControlError, "INITIAL_WINDOW_SIZE makes a window larger than allowed")
			}
			c.sendLocked(st)
		}
		c.openQueuedLocked()
	}
	return c.checkOutLocked()
}

// checkOutLocked returns the error of a server that asks for answers and does not read them.
func (c *Conn) checkOutLocked() error {
	if len(c.out) > 16*maxOut {
		return connError(h2.EnhanceYourCalm, "the server does not read the answers to its frames")
	}
	return nil
}

func (c *Conn) serverPingLocked(flags byte, id uint32, p []byte) error {
	if len(p) != 8 || id != 0 {
		return connError(h2.FrameSizeError, "a malformed PING")
	}
	if flags&h2.FlagAck == 0 {
		c.out = append(append(c.out, h2.FrameHeader(8, h2.FramePing, h2.FlagAck, 0)...), p...)
		return c.checkOutLocked()
	}
	if c.pinging {
		c.pinging = false
		c.up = wire.AppendPing(c.up, wire.TypePong, c.waiting)
	}
	return nil
}

// goAwayLocked handles GOAWAY: streams after the last one that the server serves did not run.
func (c *Conn) goAwayLocked(last uint32) {
	c.finalID = min(c.finalID, last)
	c.leaveLocked()
	for id, st := range c.streams {
		if id > c.finalID {
			c.refuseLocked(st.call, st.oneway, wire.Unavailable, "the server is going away and did not run the call")
			c.removeLocked(st)
		}
	}
	for _, st := range c.queue {
		if c.calls[st.call] == st {
			c.refuseLocked(st.call, st.oneway, wire.Unavailable, "the server is going away and did not run the call")
			delete(c.calls, st.call)
			c.discardLocked(st)
		}
	}
	c.queue = nil
	c.endedLocked()
}

func (c *Conn) windowUpdateLocked(id uint32, p []byte) error {
	if len(p) != 4 {
		return connError(h2.FrameSizeError, "WINDOW_UPDATE of %d bytes", len(p))
	}
	n := int64(binary.BigEndian.Uint32(p) & h2.MaxWindow)
	if id == 0 {
		if c.credit += n; n == 0 || c.credit > h2.MaxWindow {
			return connError(h2.FlowControlError, "a WINDOW_UPDATE of %d bytes", n)
		}
		c.unblockLocked()
		return c.checkOutLocked()
	}
	st := c.streams[id]
	if st == nil {
		if id > c.lastID {
			return connError(h2.ProtocolError, "WINDOW_UPDATE on stream %d, which is idle", id)
		}
		return nil
	}
	if st.credit += n; n == 0 || st.credit > h2.MaxWindow {
		c.failLocked(st, exchange.Unexpected("the server breaks HTTP/2: a WINDOW_UPDATE of "+itoa(n)+" bytes"))
		return nil
	}
	c.sendLocked(st)
	return c.checkOutLocked()
}

// wasResetLocked handles RST_STREAM.
func (c *Conn) wasResetLocked(id uint32, code h2.Code) {
	st := c.streams[id]
	if st == nil {
		return
	}
	if st.final != nil { // the server wants nothing more; its status counts, and the client still takes messages
		st.clientEnded, st.sentEnd = true, true
		c.dropLocked(st)
		return
	}
	e := &wire.ErrorBody{Code: wire.InternalError, Outcome: wire.OutcomeUnknown, Message: "the server has reset the stream: " + code.String()}
	switch code {
	case h2.RefusedStream:
		e.Code, e.Outcome = wire.Unavailable, wire.Refused
	case h2.Cancel:
		if e.Code = wire.Canceled; st.deadline != 0 && mono.Now() >= st.deadline {
			e.Code = wire.DeadlineExceeded
		}
	case h2.EnhanceYourCalm:
		e.Code = wire.ResourceExhausted
	case h2.InadequateSecurity:
		e.Code = wire.PermissionDenied
	}
	if !st.oneway {
		c.up = wire.AppendError(c.up, st.call, 0, e)
	}
	c.removeLocked(st)
	c.endedLocked()
}

func isGRPC(contentType string) bool { return strings.HasPrefix(contentType, "application/grpc") }

// notGRPC returns the error of an answer that is not one of gRPC.
func notGRPC(b *block) *wire.ErrorBody {
	status, _ := strconv.Atoi(b.status)
	return exchange.HTTPFailure(status, b.contentType)
}

// statusOf returns the status of a call. alone says that the answer has no other part.
func statusOf(b *block, alone bool) *wire.ErrorBody {
	a := exchange.ParseStatus(b.code, b.message)
	if a == nil {
		return exchange.Unexpected("the server has sent no status")
	}
	if b.details != "" {
		if raw, err := decodeBinary(b.details); err == nil {
			a.Details = raw
		}
	}
	a.RetryIn, a.Outcome, a.Alone = b.retryIn, b.outcome, alone
	if fault := a.Fault(); fault != nil {
		return fault
	}
	return new(wire.ErrorBody)
}
