package h2

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"runtime"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/internal/mono"
)

// FrameHeader returns the header of a frame with size bytes of payload.
func FrameHeader(size int, kind, flags byte, id uint32) []byte {
	return []byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
}

// AppendWindowUpdate appends a WINDOW_UPDATE frame.
func AppendWindowUpdate(out []byte, id uint32, n int64) []byte {
	return binary.BigEndian.AppendUint32(append(out, FrameHeader(4, FrameWindowUpdate, 0, id)...), uint32(n))
}

// sendSettings sends the preface of the server.
func (c *Conn) sendSettings() {
	var p []byte
	for _, s := range [...]struct {
		id uint16
		v  int
	}{
		{SettingMaxStreams, c.config.MaxStreams},
		{SettingWindow, c.config.Window},
		{SettingMaxHeader, c.config.MaxHeader},
		{SettingConnectProtocol, 1},
	} {
		p = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(p, s.id), uint32(s.v))
	}
	c.mu.Lock()
	c.out = append(append(c.out, FrameHeader(len(p), FrameSettings, 0, 0)...), p...)
	if more := c.config.ConnWindow - InitialWindow; more > 0 {
		c.out = AppendWindowUpdate(c.out, 0, int64(more))
	}
	c.mu.Unlock()
}

func (c *Conn) resetLocked(id uint32, code Code) { c.out = append(c.out, resetFrame(id, code)...) }

func resetFrame(id uint32, code Code) []byte {
	return binary.BigEndian.AppendUint32(FrameHeader(4, FrameReset, 0, id), uint32(code))
}

func (c *Conn) goAwayLocked(last uint32, code Code, text string) {
	c.out = append(c.out, FrameHeader(8+len(text), FrameGoAway, 0, 0)...)
	c.out = binary.BigEndian.AppendUint32(c.out, last)
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(code))
	c.out = append(c.out, text...)
}

// drainPing is the PING whose answer says that the client has seen the first GOAWAY.
const drainPing = "anserbye"

// GoAway tells the client to open no more streams here. Streams that it opens before it knows are
// still served.
func (c *Conn) GoAway() {
	c.mu.Lock()
	if !c.goneAway && c.err == nil {
		c.goneAway = true
		c.goAwayLocked(MaxWindow, NoError, "")
		c.out = append(append(c.out, FrameHeader(8, FramePing, 0, 0)...), drainPing...)
		time.AfterFunc(time.Second, func() { // the client may answer no PING
			c.mu.Lock()
			c.refuseLocked()
			c.mu.Unlock()
			c.Flush()
		})
	}
	c.mu.Unlock()
	c.Flush()
}

// refuseLocked sends the last GOAWAY: later streams are refused.
func (c *Conn) refuseLocked() {
	if c.closing || !c.goneAway {
		return
	}
	// Frames that were read but not handled yet belong to streams that are refused.
	c.closing = true
	for id := range c.streams {
		c.finalID = max(c.finalID, id)
	}
	c.finalID = max(c.finalID, c.lastOpened)
	c.goAwayLocked(c.finalID, NoError, "")
	c.drainedLocked()
}

// drainedLocked calls Drained if it is time for it.
func (c *Conn) drainedLocked() {
	if c.closing && len(c.streams) == 0 && !c.drained && c.config.Drained != nil {
		c.drained = true
		go c.config.Drained()
	}
}

// Finish closes the connection when all streams have ended and everything is written.
func (c *Conn) Finish() {
	c.mu.Lock()
	if c.goneAway = true; !c.closing {
		c.refuseLocked()
	}
	c.finish = true
	c.mu.Unlock()
	c.Flush()
}

// Dismiss is Finish for a client that must not go on, after time for the answers to what it has
// open. Serve returns why.
func (c *Conn) Dismiss(why error) {
	c.mu.Lock()
	c.dismissed = why
	c.mu.Unlock()
	c.Finish()
	time.AfterFunc(farewell, func() { c.Close(why) })
}

// farewell is how long the answers to a client that is dismissed may take.
const farewell = time.Second

// Flush writes what waits to be sent, unless another goroutine does.
func (c *Conn) Flush() {
	c.mu.Lock()
	if c.writing || len(c.out) == 0 && !c.finish || c.err != nil {
		c.mu.Unlock()
		return
	}
	c.writing = true
	c.mu.Unlock()
	runtime.Gosched() // others may add to it
	c.mu.Lock()
	for len(c.out) > 0 && c.err == nil {
		b := c.out
		c.out, c.spare = c.spare[:0], nil
		c.mu.Unlock()
		err := c.write(b)
		c.mu.Lock()
		if cap(b) <= keepOut {
			c.spare = b
		}
		if err != nil && c.err == nil {
			c.err = err
		}
		c.room.Broadcast()
	}
	c.writing = false
	finished := c.finish && c.err == nil && len(c.out) == 0 && len(c.streams) == 0
	if finished {
		c.err = cmp.Or(c.dismissed, errFinished)
	}
	err := c.err
	c.mu.Unlock()
	if finished {
		c.linger()
	}
	if err != nil {
		c.end(err)
	}
}

// maxWrite is how many bytes are written within one Stall: a client that reads slowly is no one
// that does not read.
const maxWrite = 64 << 10

// write writes b. The caller has set writing.
func (c *Conn) write(b []byte) error {
	for len(b) > 0 {
		if now := mono.Now(); c.deadline.Sub(now) < c.config.Stall-min(time.Second, c.config.Stall/2) {
			c.deadline = now.Add(c.config.Stall)
			c.nc.SetWriteDeadline(time.Now().Add(c.config.Stall))
		}
		n, err := c.nc.Write(b[:min(len(b), maxWrite)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// headerWriter encodes headers. Only the few fields that most answers have enter the table of the
// client, so that their encoding stays the same.
type headerWriter struct {
	encoder *hpack.Encoder
	block   []byte
	size    uint32 // of the table
	cached  map[cacheKey][]byte
}

// cacheKey is the content of a header that is encoded in the same way each time.
type cacheKey struct{ status, contentType, grpcStatus string }

func (w *headerWriter) init() {
	w.encoder = hpack.NewEncoder((*blockBuffer)(w))
	w.encoder.SetMaxDynamicTableSizeLimit(4096)
	w.size = 4096
}

// blockBuffer collects what the encoder writes.
type blockBuffer headerWriter

func (b *blockBuffer) Write(p []byte) (int, error) {
	b.block = append(b.block, p...)
	return len(p), nil
}

// limit applies the client's limit of the table.
func (w *headerWriter) limit(size uint32) {
	size = min(size, 4096)
	w.encoder.SetMaxDynamicTableSizeLimit(size)
	w.encoder.SetMaxDynamicTableSize(size)
	w.size, w.cached = size, nil
}

// append appends the frames of a header or of trailers.
func (w *headerWriter) append(out []byte, id uint32, h *Header, end bool) []byte {
	key := cacheKey{status: h.Status, contentType: h.Type}
	plain := len(h.Fields) == 0
	if h.Status == "" && len(h.Fields) == 1 && h.Fields[0].Name == "grpc-status" {
		key.grpcStatus, plain = h.Fields[0].Value, true
	}
	block, ok := w.cached[key]
	if !plain || !ok {
		block = w.encode(h, plain)
		if plain {
			block = w.remember(key, h, block)
		}
	}
	var flags byte
	if end {
		flags = FlagEndStream
	}
	kind := FrameHeaders
	for {
		part := block[:min(len(block), MaxFrame)]
		block = block[len(part):]
		if len(block) == 0 {
			flags |= FlagEndHeaders
		}
		out = append(append(out, FrameHeader(len(part), kind, flags, id)...), part...)
		if len(block) == 0 {
			return out
		}
		kind, flags = FrameContinuation, 0
	}
}

// encode returns the block of a header. Fields of one that is not plain do not enter the table.
func (w *headerWriter) encode(h *Header, plain bool) []byte {
	w.block = w.block[:0]
	if h.Status != "" {
		w.encoder.WriteField(hpack.HeaderField{Name: ":status", Value: h.Status, Sensitive: h.Status != "200"})
	}
	if h.Type != "" {
		w.encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: h.Type, Sensitive: !plain || !w.common(h.Type)})
	}
	for _, f := range h.Fields {
		f.Sensitive = !plain || f.Value != "0"
		w.encoder.WriteField(f)
	}
	return w.block
}

// common reports whether a content type may enter the table.
func (w *headerWriter) common(contentType string) bool {
	return contentType == "application/grpc" || contentType == "application/grpc+proto"
}

// remember keeps the encoding of a plain header once it is the same each time, and returns block.
func (w *headerWriter) remember(key cacheKey, h *Header, block []byte) []byte {
	if w.size < 4096 || h.Status != "" && (h.Status != "200" || !w.common(h.Type)) || h.Status == "" && key.grpcStatus != "0" {
		return block
	}
	block = bytes.Clone(block)
	if !bytes.Equal(w.encode(h, true), block) {
		w.cached = nil // a field has entered the table, which moves the others
		return block
	}
	if w.cached == nil {
		w.cached = make(map[cacheKey][]byte)
	}
	w.cached[key] = block
	return block
}
