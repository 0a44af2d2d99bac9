package grpcclient

import (
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/internal/stubwire"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

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
