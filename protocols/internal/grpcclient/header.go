package grpcclient

import (
	"strconv"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
)

// method is what the client calls by a number.
type method struct {
	path  string
	block []byte // the header that all calls have, encoded; valid in generation
	codec uint8  // of block
	gen   uint64
}

// newMethod returns the method of a name, such as "pkg.Service.Method" or "pkg.Service/Method".
func newMethod(name string) *method {
	return &method{path: exchange.PathOf(name)}
}

// headerWriter encodes the headers of requests. The fields that all calls of a method have are in
// the table of the server, as far as there is room, so that nothing leaves it again.
type headerWriter struct {
	scheme, authority string

	encoder *hpack.Encoder
	block   []byte
	whole   []byte // header of a request that is being encoded
	room    int    // bytes of the table that are free
	known   map[hpack.HeaderField]bool
	gen     uint64 // counts the changes of the table, which move its entries
}

const tableSize = 4096

func (w *headerWriter) init(scheme, authority string) {
	w.scheme, w.authority = scheme, authority
	w.encoder = hpack.NewEncoder((*blockBuffer)(w))
	w.encoder.SetMaxDynamicTableSizeLimit(tableSize)
	w.room, w.known, w.gen = tableSize, make(map[hpack.HeaderField]bool), 1
}

// blockBuffer collects what the encoder writes.
type blockBuffer headerWriter

func (b *blockBuffer) Write(p []byte) (int, error) {
	b.block = append(b.block, p...)
	return len(p), nil
}

// limit applies the server's limit of the table. Below the usual size, nothing more enters it.
func (w *headerWriter) limit(size uint32) {
	if size < tableSize {
		w.encoder.SetMaxDynamicTableSizeLimit(size)
		w.encoder.SetMaxDynamicTableSize(size)
		w.room, w.known = 0, make(map[hpack.HeaderField]bool)
		w.gen++
	}
}

// field encodes a field, and puts it into the table if there is room.
func (w *headerWriter) field(name, value string) {
	f := hpack.HeaderField{Name: name, Value: value}
	if !w.known[f] {
		if size := int(f.Size()); size <= w.room {
			w.room -= size
			w.known[f] = true
			w.gen++
		} else {
			f.Sensitive = true
		}
	}
	w.encoder.WriteField(f)
}

// fixed returns the header that all calls of a method have.
func (w *headerWriter) fixed(m *method, codec uint8) []byte {
	if m.gen == w.gen && m.codec == codec {
		return m.block
	}
	before := w.gen
	w.block = w.block[:0]
	w.encoder.WriteField(hpack.HeaderField{Name: ":method", Value: "POST"})
	w.encoder.WriteField(hpack.HeaderField{Name: ":scheme", Value: w.scheme})
	w.field(":path", m.path)
	w.field(":authority", w.authority)
	w.field("content-type", contentType(codec))
	w.field("te", "trailers")
	w.field("user-agent", "anser")
	if w.gen == before { // the same the next time
		m.block, m.codec, m.gen = append(m.block[:0], w.block...), codec, w.gen
	}
	return w.block
}

// The numbers of Anser's codecs that have a name in gRPC.
const (
	codecJSON     = 3
	codecProtobuf = 4
)

func contentType(codec uint8) string {
	switch codec {
	case codecProtobuf:
		return "application/grpc"
	case codecJSON:
		return "application/grpc+json"
	}
	return "application/grpc+anser-" + strconv.Itoa(int(codec))
}

// appendHeader appends the frames of the header of a request. block is complete.
func appendHeader(out []byte, id uint32, block []byte) []byte {
	kind := h2.FrameHeaders
	for {
		part := block[:min(len(block), h2.MaxFrame)]
		block = block[len(part):]
		var flags byte
		if len(block) == 0 {
			flags = h2.FlagEndHeaders
		}
		out = append(append(out, h2.FrameHeader(len(part), kind, flags, id)...), part...)
		if len(block) == 0 {
			return out
		}
		kind = h2.FrameContinuation
	}
}

// appendField appends a field that enters no table.
func appendField(b []byte, name, value string) []byte {
	b = append(b, 0)
	b = append(appendLength(b, len(name)), name...)
	return append(appendLength(b, len(value)), value...)
}

// appendLength appends the length of a string that is not compressed (RFC 7541, 5.1).
func appendLength(b []byte, n int) []byte {
	if n < 127 {
		return append(b, byte(n))
	}
	b = append(b, 127)
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

// appendTimeout appends the field grpc-timeout for a number of microseconds.
func appendTimeout(b []byte, micros uint64) []byte {
	b = append(b, "\x00\x0cgrpc-timeout"...)
	at := len(b)
	b = append(b, 0)
	b = exchange.AppendTimeout(b, micros)
	b[at] = byte(len(b) - at - 1)
	return b
}
