package wire

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// Trace is a trace context with the fields of W3C Trace Context.
type Trace struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
}

// Request is the body of a REQUEST frame. The flags of the frame tell whether Trace is present;
// otherwise it is zero.
type Request struct {
	Method      uint32
	Codec       uint8
	Compression uint8
	Attempt     uint8
	Priority    uint8
	Timeout     uint64 // remaining microseconds; 0: none
	Trace       Trace
	Metadata    []byte // a metadata block with its length field, or none
	Payload     []byte
}

// AppendRequest appends a REQUEST frame. FlagMetadata follows from r.Metadata; the caller chooses
// FlagTrace, FlagOneway and FlagStream. The caller must check that the body does not exceed the
// peer's max_frame, which is less than its length field could hold.
func AppendRequest(dst []byte, id uint64, flags Flags, r *Request) []byte {
	length := RequestSize + len(r.Metadata) + len(r.Payload)
	if flags&FlagTrace != 0 {
		length += TraceSize
	}
	flags = bodyFlags(flags, r.Metadata)
	dst = AppendHeader(dst, Header{Length: uint32(length), Type: TypeRequest, Flags: flags, ID: id})
	dst = binary.LittleEndian.AppendUint32(dst, r.Method)
	dst = append(dst, r.Codec, r.Compression, r.Attempt, r.Priority)
	dst = binary.LittleEndian.AppendUint64(dst, r.Timeout)
	if flags&FlagTrace != 0 {
		dst = append(dst, r.Trace.TraceID[:]...)
		dst = append(dst, r.Trace.SpanID[:]...)
		dst = append(dst, r.Trace.Flags)
	}
	dst = append(dst, r.Metadata...)
	return append(dst, r.Payload...)
}

// bodyFlags sets FlagMetadata according to the body, so that flags copied from another frame
// cannot announce a missing block. A checksum is also missing until AppendChecksum adds it.
func bodyFlags(flags Flags, metadata []byte) Flags {
	flags &^= FlagMetadata | FlagCRC
	if len(metadata) != 0 {
		flags |= FlagMetadata
	}
	return flags
}

// ParseRequest parses the body of a REQUEST frame into r, and overwrites all of it. Metadata and
// Payload alias body. With a [*CallError] all fields except the offending one are valid.
func ParseRequest(flags Flags, body []byte, r *Request) error {
	*r = Request{}
	if len(body) < RequestSize {
		return Errorf(BadFrame, "REQUEST frame of %d bytes, want at least %d", len(body), RequestSize)
	}
	if flags&(FlagOneway|FlagStream) == FlagOneway|FlagStream {
		return Errorf(BadFrame, "REQUEST frame with both ONEWAY and STREAM: a stream is always answered")
	}
	r.Method = binary.LittleEndian.Uint32(body)
	r.Codec, r.Compression, r.Attempt, r.Priority = body[4], body[5], body[6], body[7]
	r.Timeout = binary.LittleEndian.Uint64(body[8:])
	rest := body[RequestSize:]
	if flags&(FlagTrace|FlagMetadata) != 0 {
		if flags&FlagTrace != 0 {
			if len(rest) < TraceSize {
				return Errorf(BadFrame, "REQUEST with a trace context of %d bytes, want %d", len(rest), TraceSize)
			}
			r.Trace.TraceID = [16]byte(rest)
			r.Trace.SpanID = [8]byte(rest[16:])
			r.Trace.Flags = rest[24]
			rest = rest[TraceSize:]
		}
		var err error
		if r.Metadata, rest, err = splitMetadata(flags, rest); err != nil {
			return err
		}
	}
	r.Payload = rest
	if r.Timeout > MaxTimeout || r.Attempt > MaxAttempt || r.Priority > MaxPriority {
		return checkRequest(r)
	}
	return nil
}

func checkRequest(r *Request) error {
	switch {
	case r.Timeout > MaxTimeout:
		return callErrorf(InvalidArgument, "timeout of %d µs is out of range, at most %d", r.Timeout, uint64(MaxTimeout))
	case r.Attempt > MaxAttempt:
		return callErrorf(InvalidArgument, "attempt %d is out of range, at most %d", r.Attempt, MaxAttempt)
	default:
		return callErrorf(InvalidArgument, "priority %d is out of range, at most %d", r.Priority, MaxPriority)
	}
}

// AppendReplyHead appends the header and the fixed part of a REPLY; the caller appends the payload
// next and then stores its length with [PutLength]. FlagMetadata follows from metadata.
func AppendReplyHead(dst []byte, id uint64, flags Flags, codec, compression uint8, metadata []byte) []byte {
	flags = bodyFlags(flags, metadata)
	dst = AppendHeader(dst, Header{Length: uint32(ReplySize + len(metadata)), Type: TypeReply, Flags: flags, ID: id})
	dst = append(dst, codec, compression)
	return append(dst, metadata...)
}

// Reply is the body of a REPLY frame.
type Reply struct {
	Codec       uint8
	Compression uint8
	Metadata    []byte // a metadata block with its length field, or none
	Payload     []byte
}

// ParseReply parses the body of a REPLY frame. Metadata and Payload alias body.
func ParseReply(flags Flags, body []byte) (Reply, error) {
	if len(body) < ReplySize {
		return Reply{}, Errorf(BadFrame, "REPLY frame of %d bytes, want at least %d", len(body), ReplySize)
	}
	r := Reply{Codec: body[0], Compression: body[1], Payload: body[ReplySize:]}
	if flags&FlagMetadata == 0 {
		return r, nil
	}
	var err error
	r.Metadata, r.Payload, err = splitMetadata(flags, r.Payload)
	return r, err
}

// AppendMethod appends a METHOD frame that assigns the number to the name.
func AppendMethod(dst []byte, number uint32, name string) []byte {
	dst = AppendHeader(dst, Header{Length: uint32(4 + len(name)), Type: TypeMethod})
	dst = binary.LittleEndian.AppendUint32(dst, number)
	return append(dst, name...)
}

// ParseMethod parses the body of a METHOD frame.
func ParseMethod(body []byte) (number uint32, name string, err error) {
	if len(body) < 5 || len(body) > 4+MaxMethodName {
		return 0, "", Errorf(BadMethod, "METHOD frame of %d bytes, want 5 to %d", len(body), 4+MaxMethodName)
	}
	number, name = binary.LittleEndian.Uint32(body), string(body[4:])
	if err := CheckMethodName(name); err != nil {
		return number, "", err
	}
	return number, name, nil
}

// CheckMethodName returns an [*Error] if name cannot be the name of a method. Control characters,
// including 8-bit ones, are rejected because names are shown on terminals.
func CheckMethodName(name string) error {
	if name == "" || len(name) > MaxMethodName {
		return Errorf(BadMethod, "method name of %d bytes, want 1 to %d", len(name), MaxMethodName)
	}
	if !utf8.ValidString(name) {
		return Errorf(BadMethod, "method name %q is not UTF-8", name)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return Errorf(BadMethod, "method name %q has a control character", name)
		}
	}
	return nil
}

// AppendCancel appends a CANCEL frame.
func AppendCancel(dst []byte, id uint64) []byte {
	return AppendHeader(dst, Header{Type: TypeCancel, ID: id})
}

// ParseCancel checks the body of a CANCEL frame, which must be empty.
func ParseCancel(body []byte) error {
	if len(body) != 0 {
		return Errorf(BadFrame, "CANCEL frame of %d bytes, want 0", len(body))
	}
	return nil
}

// AppendPing appends a PING (or with t = TypePong a PONG) with the opaque value.
func AppendPing(dst []byte, t Type, value uint64) []byte {
	dst = AppendHeader(dst, Header{Length: PingSize, Type: t})
	return binary.LittleEndian.AppendUint64(dst, value)
}

// ParsePing parses the body of a PING or PONG.
func ParsePing(body []byte) (uint64, error) {
	if len(body) != PingSize {
		return 0, Errorf(BadFrame, "PING or PONG frame of %d bytes, want %d", len(body), PingSize)
	}
	return binary.LittleEndian.Uint64(body), nil
}

// AppendDrain appends a DRAIN frame with the grace in milliseconds. The only flag is FlagAck.
func AppendDrain(dst []byte, flags Flags, graceMillis uint32) []byte {
	dst = AppendHeader(dst, Header{Length: 4, Type: TypeDrain, Flags: flags & FlagAck})
	return binary.LittleEndian.AppendUint32(dst, graceMillis)
}

// ParseDrain parses the body of a DRAIN frame.
func ParseDrain(body []byte) (graceMillis uint32, err error) {
	if len(body) != 4 {
		return 0, Errorf(BadFrame, "DRAIN frame of %d bytes, want 4", len(body))
	}
	return binary.LittleEndian.Uint32(body), nil
}
