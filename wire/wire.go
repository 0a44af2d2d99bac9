// Package wire reads and writes the frames of the Anser protocol, which docs/protocol.md defines.
//
// Everything here is a pure function from bytes to values or back: no network, no goroutine, no
// global state, so every function is safe for concurrent use. Append functions follow the standard
// library's convention: they append to dst and return the extended slice. Parse functions never
// allocate more than the input justifies, never panic on a peer's bytes, and return slices that
// alias their input.
//
// There are two kinds of errors. An [*Error] means that the connection must be closed with its
// reason. A [*CallError] means that the frame is well-formed and only its call fails.
package wire

import (
	"encoding/binary"
	"fmt"
)

// Sizes and fixed limits of the protocol, in bytes unless the name says otherwise.
const (
	PrefaceSize    = 8
	HeaderSize     = 16
	RequestSize    = 16 // fixed part of a REQUEST body
	TraceSize      = 25
	ReplySize      = 2  // fixed part of a REPLY body
	ErrorSize      = 12 // fixed part of an ERROR body
	PingSize       = 8
	DataSize       = 2 // fixed part of a DATA body
	WindowSize     = 4
	ChecksumSize   = 4 // CRC-32C at the end of a body with FlagCRC
	MaxMethodName  = 512
	MaxMethods     = 65535
	MaxMessage     = 64 << 10 // text of an ERROR
	MaxCloseText   = 1024
	MaxAttempt     = 15
	MaxPriority    = 3
	MaxTimeout     = 1<<53 - 1 // microseconds
	MaxWindow      = 1<<31 - 1
	MaxPairs       = 128
	MaxKeySize     = 255
	Version        = 1
	ReservedPrefix = "anser-" // of metadata keys that belong to the protocol

	IdempotencyKey    = "anser-idempotency-key" // the one reserved key, of requests
	MaxIdempotencyKey = 128
)

// Magic is the beginning of the preface of both sides.
var Magic = [4]byte{0xA5, 'N', 'S', 'R'}

// Type is the type of a frame.
type Type uint8

// The frame types. Types from FirstSkippable on are ignored by a receiver that does not know them.
const (
	TypeSettings   Type = 0x01
	TypeMethod     Type = 0x02
	TypeRequest    Type = 0x03
	TypeReply      Type = 0x04
	TypeError      Type = 0x05
	TypeCancel     Type = 0x06
	TypePing       Type = 0x07
	TypePong       Type = 0x08
	TypeDrain      Type = 0x09
	TypeClose      Type = 0x0A
	TypeData       Type = 0x0B
	TypeEnd        Type = 0x0C
	TypeWindow     Type = 0x0D
	TypeAuth       Type = 0x0E
	TypePart       Type = 0x0F
	FirstSkippable Type = 0x80
)

var typeNames = [...]string{
	TypeSettings: "SETTINGS", TypeMethod: "METHOD", TypeRequest: "REQUEST", TypeReply: "REPLY",
	TypeError: "ERROR", TypeCancel: "CANCEL", TypePing: "PING", TypePong: "PONG",
	TypeDrain: "DRAIN", TypeClose: "CLOSE", TypeData: "DATA", TypeEnd: "END",
	TypeWindow: "WINDOW", TypeAuth: "AUTH", TypePart: "PART",
}

// String returns the name of the type in docs/protocol.md.
func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return fmt.Sprintf("type 0x%02X", uint8(t))
}

// Flags qualify a frame; which ones are allowed depends on its type.
type Flags uint8

// The flags. FlagMore and FlagAck share a value: they belong to different types.
const (
	FlagTrace      Flags = 0x01 // REQUEST: a trace context is present
	FlagAck        Flags = 0x01 // DRAIN: answers a DRAIN
	FlagMore       Flags = 0x01 // DATA: the message continues in the next frame
	FlagMetadata   Flags = 0x02 // REQUEST, REPLY, ERROR, END: a metadata block is present
	FlagOneway     Flags = 0x04 // REQUEST: no answer is expected
	FlagStream     Flags = 0x08 // REQUEST: opens a stream
	FlagIdempotent Flags = 0x10 // REPLY, ERROR: the method is declared idempotent
	FlagPlain      Flags = 0x20 // REQUEST: the payload is not compressed, the reply may be
	FlagForced     Flags = 0x40 // REQUEST: the reply is compressed even if it gains nothing
	FlagCRC        Flags = 0x80 // the body ends with a CRC-32C
)

// Bits of typeRule.ids.
const (
	idConn = 1 << iota // 0: the frame concerns the connection
	idCall             // not 0: the frame belongs to a call or stream
)

// typeRule lists the valid header fields of a type. The zero value, which allows no id at all, is
// for unknown types.
type typeRule struct {
	flags Flags // without FlagCRC, which depends on the settings
	ids   uint8
}

// typeRules has an entry for every byte, so that a peer's type needs no bounds check.
var typeRules = [256]typeRule{
	TypeSettings: {0, idConn},
	TypeMethod:   {0, idConn},
	TypeRequest:  {FlagTrace | FlagMetadata | FlagOneway | FlagStream | FlagPlain | FlagForced, idCall},
	TypeReply:    {FlagMetadata | FlagIdempotent, idCall},
	TypeError:    {FlagMetadata | FlagIdempotent, idCall},
	TypeCancel:   {0, idCall},
	TypePing:     {0, idConn},
	TypePong:     {0, idConn},
	TypeDrain:    {FlagAck, idConn},
	TypeClose:    {0, idConn},
	TypeData:     {FlagMore, idCall},
	TypeEnd:      {FlagMetadata, idCall},
	TypeWindow:   {0, idConn | idCall},
	TypeAuth:     {0, idConn},
	TypePart:     {0, idCall},
}

// Header is the fixed beginning of a frame.
type Header struct {
	Length uint32 // of the body
	Type   Type
	Flags  Flags
	ID     uint64
}

// AppendHeader appends the 16 bytes of h.
func AppendHeader(dst []byte, h Header) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, h.Length)
	dst = append(dst, byte(h.Type), byte(h.Flags), 0, 0)
	return binary.LittleEndian.AppendUint64(dst, h.ID)
}

// PutLength stores the length of the body into a header written by AppendHeader at the start of b.
func PutLength(b []byte, length uint32) { binary.LittleEndian.PutUint32(b, length) }

// ParseHeader parses the header at the start of b, which must hold at least HeaderSize bytes. It
// checks the reserved field, the type, the flags, and whether there is an id if one is required,
// but not the length, which the caller must limit. A type from FirstSkippable on may have any
// flags and id.
func ParseHeader(b []byte) (Header, error) {
	h := readHeader(b)
	rule := typeRules[h.Type]
	if b[6]|b[7] != 0 || h.Flags&^rule.flags != 0 || rule.ids&idBit(h.ID) == 0 {
		if b[6]|b[7] != 0 {
			return h, Errorf(BadFrame, "reserved bits of the frame header are set")
		}
		return h, checkHeader(h, 0)
	}
	return h, nil
}

// ParseHeaderWith is ParseHeader on a connection with negotiated requirements: FlagCRC if it has
// checksums, otherwise 0. With checksums, bytes 6 and 7 hold the check of the header, which is
// verified first, so that a receiver never waits for the number of bytes in a damaged length. The
// frame must then be passed to [CheckChecksum], whatever its type. A frame without the flag is
// rejected: a flipped bit may have cleared it.
func ParseHeaderWith(b []byte, negotiated Flags) (Header, error) {
	if negotiated&FlagCRC != 0 {
		return parseCheckedHeader(b)
	}
	return ParseHeader(b)
}

func readHeader(b []byte) Header {
	_ = b[HeaderSize-1]
	return Header{
		Length: binary.LittleEndian.Uint32(b),
		Type:   Type(b[4]),
		Flags:  Flags(b[5]),
		ID:     binary.LittleEndian.Uint64(b[8:]),
	}
}

func idBit(id uint64) uint8 {
	if id == 0 {
		return idConn
	}
	return idCall
}

// checkHeader is the slow path of ParseHeader: it returns the error, if there is one.
func checkHeader(h Header, negotiated Flags) error {
	rule := typeRules[h.Type]
	unknown := h.Flags &^ (rule.flags | negotiated)
	switch {
	case negotiated&^h.Flags != 0:
		return Errorf(BadChecksum, "%s frame without a checksum, on a connection whose frames have one", h.Type)
	case h.Type >= FirstSkippable:
		return nil
	case rule.ids == 0:
		return Errorf(BadFrame, "unknown frame type 0x%02X", uint8(h.Type))
	case unknown&FlagCRC != 0:
		return Errorf(BadFrame, "%s frame with a checksum that was not negotiated", h.Type)
	case unknown != 0:
		return Errorf(BadFrame, "%s frame with unknown flags 0x%02X", h.Type, uint8(unknown))
	case h.ID == 0:
		return Errorf(BadID, "%s frame with id 0, want the id of a call", h.Type)
	default:
		return Errorf(BadID, "%s frame with id %d, want 0: it concerns the connection", h.Type, h.ID)
	}
}

// AppendPreface appends the eight bytes that each side sends first.
func AppendPreface(dst []byte) []byte {
	return append(dst, Magic[0], Magic[1], Magic[2], Magic[3], Version, 0, 0, 0)
}

// ParsePreface checks the first PrefaceSize bytes of b, which must be present.
func ParsePreface(b []byte) error {
	_ = b[PrefaceSize-1]
	if [4]byte(b[:4]) != Magic {
		return Errorf(BadFrame, "not the Anser protocol: it begins with % X, want % X", b[:4], Magic[:])
	}
	if b[4] != Version {
		return Errorf(BadVersion, "protocol version %d is not supported, want %d", b[4], Version)
	}
	if b[5]|b[6]|b[7] != 0 {
		return Errorf(BadFrame, "reserved bits of the preface are set")
	}
	return nil
}
