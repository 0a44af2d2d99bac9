// Package rpcxwire has the messages of rpcx's protocol, version 1. It handles bytes only: what a
// message declares is checked before anything is allocated for it.
//
// A message is a header of 12 bytes, the length of the rest, and four parts with a length each:
//
//	08 version flags serialization<<4 sequence(8) | length(4) | path method metadata payload
//
// Numbers are big-endian. Metadata is a list of keys and values with a length each.
package rpcxwire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeadSize is the size of the header with the length of the rest.
const HeadSize = 16

// magic is the first byte of a message.
const magic = 0x08

// Limits of the parts of a message. rpcx itself has none.
const (
	MaxName     = 255      // bytes of a service's path, and of a method's name
	MaxMetadata = 64 << 10 // bytes
	MaxPairs    = 256      // of metadata
	MaxFront    = 4*4 + 2*MaxName + MaxMetadata
)

// The bits of Head.Flags.
const (
	Response  byte = 0x80
	Heartbeat byte = 0x40
	Oneway    byte = 0x20
	Gzip      byte = 0x04
	Failed    byte = 0x01

	compression byte = 0x1C
	status      byte = 0x03
)

// Serialization says how a payload is encoded.
type Serialization byte

// The serializations.
const (
	Raw Serialization = iota
	JSON
	Protobuf
	MessagePack
	Thrift
)

// String returns the name of the serialization.
func (s Serialization) String() string {
	names := [...]string{"raw bytes", "JSON", "protobuf", "MessagePack", "Thrift"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("serialization %d", byte(s))
}

// Keys of metadata that rpcx itself uses.
const (
	ErrorKey   = "__rpcx_error__"  // the text of an error
	AuthKey    = "__AUTH"          // the token of a client
	TimeoutKey = "__ServerTimeout" // milliseconds
)

// Keys of metadata with which Anser says more of an error than rpcx can.
const (
	CodeKey    = "anser-code"    // such as "not_found"
	OutcomeKey = "anser-outcome" // whether the call may have run
)

// Head is what a message begins with.
type Head struct {
	Flags         byte
	Serialization Serialization
	Seq           uint64
	Size          uint32 // bytes after the head
}

// Has reports whether a flag is set.
func (h *Head) Has(flag byte) bool { return h.Flags&flag != 0 }

// IsGzip reports whether the payload is compressed with gzip. It is false for every other
// compression; see CheckCompression.
func (h *Head) IsGzip() bool { return h.Flags&compression == Gzip }

// CheckCompression returns an error unless the payload is plain or compressed with gzip.
func (h *Head) CheckCompression() error {
	if n := h.Flags & compression; n != 0 && n != Gzip {
		return fmt.Errorf("the compression %d of rpcx is not known here: use gzip, or none", n>>2)
	}
	return nil
}

// IsFailed reports whether a response has an error.
func (h *Head) IsFailed() bool { return h.Flags&status == Failed }

var errMagic = errors.New("an rpcx message begins with 08 00")

// ParseHead parses the first HeadSize bytes of a message.
func ParseHead(b []byte) (Head, error) {
	if len(b) < HeadSize || b[0] != magic || b[1] != 0 {
		return Head{}, errMagic
	}
	h := Head{
		Flags: b[2], Serialization: Serialization(b[3] >> 4), Seq: binary.BigEndian.Uint64(b[4:]), Size: binary.BigEndian.Uint32(b[12:]),
	}
	if h.Size < 4*4 {
		return h, fmt.Errorf("an rpcx message declares %d bytes, which is less than its lengths take", h.Size)
	}
	return h, nil
}

// Begins reports whether a connection that begins so has an rpcx request, or may have one.
func Begins(begin []byte) (is, may bool) {
	if begin[0] != magic || len(begin) > 1 && begin[1] != 0 || len(begin) > 2 && begin[2]&Response != 0 {
		return false, false
	}
	return len(begin) > 2, true
}

// Front is a message up to its payload. The slices are parts of the parsed bytes.
type Front struct {
	Path, Method []byte
	Metadata     []byte // encoded
	Size         int    // bytes after the head and before the payload
	Payload      int    // bytes of the payload
}

// ParseFront parses what follows the head: b has the bytes that have arrived. If they are not
// enough, need is how many there must be for the next call.
func ParseFront(h *Head, b []byte) (f Front, need int, err error) {
	at := 0
	for _, part := range [...]struct {
		name string
		most uint32
		into *[]byte
	}{{"path", MaxName, &f.Path}, {"method", MaxName, &f.Method}, {"metadata", MaxMetadata, &f.Metadata}} {
		if len(b) < at+4 {
			return f, at + 4, fits(h, at+4)
		}
		n := binary.BigEndian.Uint32(b[at:])
		if n > part.most {
			return f, 0, fmt.Errorf("the %s of an rpcx message declares %d bytes: at most %d", part.name, n, part.most)
		}
		at += 4
		if end := at + int(n); len(b) < end {
			return f, end, fits(h, end)
		}
		*part.into = b[at : at+int(n) : at+int(n)]
		at += int(n)
	}
	if len(b) < at+4 {
		return f, at + 4, fits(h, at+4)
	}
	n := binary.BigEndian.Uint32(b[at:])
	at += 4
	if uint64(at)+uint64(n) != uint64(h.Size) {
		return f, 0, fmt.Errorf("an rpcx message declares %d bytes, and its parts declare %d", h.Size, uint64(at)+uint64(n))
	}
	f.Size, f.Payload = at, int(n)
	return f, 0, nil
}

// fits returns an error if a part does not fit into the message.
func fits(h *Head, end int) error {
	if uint64(end) > uint64(h.Size) {
		return fmt.Errorf("an rpcx message declares %d bytes, and one of its parts goes beyond them", h.Size)
	}
	return nil
}

// Pairs parses metadata.
func Pairs(b []byte) (map[string]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	m := make(map[string]string)
	for len(b) > 0 {
		if len(m) == MaxPairs {
			return nil, fmt.Errorf("metadata of rpcx has more than %d keys", MaxPairs)
		}
		var key, value []byte
		var ok bool
		if key, b, ok = text(b); ok {
			value, b, ok = text(b)
		}
		if !ok {
			return nil, errors.New("metadata of rpcx is cut off")
		}
		m[string(key)] = string(value)
	}
	return m, nil
}

// text splits a text with its length from b.
func text(b []byte) (s, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// AppendPairs appends metadata.
func AppendPairs(dst []byte, m map[string]string) []byte {
	for k, v := range m {
		dst = appendText(appendText(dst, k), v)
	}
	return dst
}

func appendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(s))), s...)
}

// Append appends a message. The size in h is not used.
func Append(dst []byte, h Head, path, method string, metadata map[string]string, payload []byte) []byte {
	dst, at := begin(dst, h)
	dst = appendText(appendText(dst, path), method)
	pairs := len(dst)
	dst = AppendPairs(append(dst, 0, 0, 0, 0), metadata)
	binary.BigEndian.PutUint32(dst[pairs:], uint32(len(dst)-pairs-4))
	dst = appendText(dst, payload)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// begin appends the head of a message, and returns where its length is.
func begin(dst []byte, h Head) (out []byte, length int) {
	dst = append(dst, magic, 0, h.Flags, byte(h.Serialization)<<4)
	dst = binary.BigEndian.AppendUint64(dst, h.Seq)
	return append(dst, 0, 0, 0, 0), len(dst)
}

// AppendBody appends a message whose parts are encoded already.
func AppendBody(dst []byte, h Head, body []byte) []byte {
	dst, at := begin(dst, h)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(body)))
	return append(dst, body...)
}
