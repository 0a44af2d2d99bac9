package wire

import (
	"encoding/binary"
	"unicode/utf8"
)

// Trace is a trace context with the fields of W3C Trace Context.
type Trace struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
}

// Request is the body of a REQUEST frame. Whether Trace and Metadata are present is in its flags.
type Request struct {
	Method      uint32
	Codec       uint8
	Compression uint8
	Attempt     uint8
	Priority    uint8
	Timeout     uint64 // microseconds that are left; 0: none
	Trace       Trace
	Metadata    []byte // a metadata block with its length field, or nil
	Payload     []byte
}

// AppendRequest appends a REQUEST frame. FlagMetadata is set when r.Metadata is not nil; FlagTrace,
// FlagOneway and FlagStream are the caller's to choose.
func AppendRequest(dst []byte, id uint64, flags Flags, r *Request) []byte {
	length := RequestSize + len(r.Metadata) + len(r.Payload)
	if flags&FlagTrace != 0 {
		length += TraceSize
	}
	if r.Metadata != nil {
		flags |= FlagMetadata
	}
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

// ParseRequest reads the body of a REQUEST frame into r. Metadata and Payload alias body. With a
// [*CallError] everything but the offending field is valid.
func ParseRequest(flags Flags, body []byte, r *Request) error {
	if len(body) < RequestSize {
		return Errorf(BadFrame, "REQUEST frame of %d bytes, want at least %d", len(body), RequestSize)
	}
	r.Method = binary.LittleEndian.Uint32(body)
	r.Codec, r.Compression, r.Attempt, r.Priority = body[4], body[5], body[6], body[7]
	r.Timeout = binary.LittleEndian.Uint64(body[8:])
	r.Metadata = nil
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

// AppendReplyHead appends the header and the fixed part of a REPLY, whose payload the caller
// appends next and whose length it then stores with [PutLength].
func AppendReplyHead(dst []byte, id uint64, flags Flags, codec, compression uint8, metadata []byte) []byte {
	if metadata != nil {
		flags |= FlagMetadata
	}
	dst = AppendHeader(dst, Header{Length: uint32(ReplySize + len(metadata)), Type: TypeReply, Flags: flags, ID: id})
	dst = append(dst, codec, compression)
	return append(dst, metadata...)
}

// Reply is the body of a REPLY frame.
type Reply struct {
	Codec       uint8
	Compression uint8
	Metadata    []byte // a metadata block with its length field, or nil
	Payload     []byte
}

// ParseReply reads the body of a REPLY frame. Metadata and Payload alias body.
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

// AppendMethod appends a METHOD frame that gives the name its number.
func AppendMethod(dst []byte, number uint32, name string) []byte {
	dst = AppendHeader(dst, Header{Length: uint32(4 + len(name)), Type: TypeMethod})
	dst = binary.LittleEndian.AppendUint32(dst, number)
	return append(dst, name...)
}

// ParseMethod reads the body of a METHOD frame.
func ParseMethod(body []byte) (number uint32, name string, err error) {
	if len(body) < 5 || len(body) > 4+MaxMethodName {
		return 0, "", Errorf(BadMethod, "METHOD frame of %d bytes, want 5 to %d", len(body), 4+MaxMethodName)
	}
	number = binary.LittleEndian.Uint32(body)
	if err := CheckMethodName(string(body[4:])); err != nil {
		return number, "", err
	}
	return number, string(body[4:]), nil
}

// CheckMethodName says whether name can be the name of a method.
func CheckMethodName(name string) error {
	if name == "" || len(name) > MaxMethodName {
		return Errorf(BadMethod, "method name of %d bytes, want 1 to %d", len(name), MaxMethodName)
	}
	if !utf8.ValidString(name) {
		return Errorf(BadMethod, "method name %q is not UTF-8", name)
	}
	for _, r := range name {
		if r < ' ' || r == 0x7F {
			return Errorf(BadMethod, "method name %q has a control character", name)
		}
	}
	return nil
}

// AppendCancel appends a CANCEL frame.
func AppendCancel(dst []byte, id uint64) []byte {
	return AppendHeader(dst, Header{Type: TypeCancel, ID: id})
}

// AppendPing appends a PING (or with t = TypePong a PONG) with the opaque value.
func AppendPing(dst []byte, t Type, value uint64) []byte {
	dst = AppendHeader(dst, Header{Length: PingSize, Type: t})
	return binary.LittleEndian.AppendUint64(dst, value)
}

// ParsePing reads the body of a PING or PONG.
func ParsePing(body []byte) (uint64, error) {
	if len(body) != PingSize {
		return 0, Errorf(BadFrame, "PING or PONG frame of %d bytes, want %d", len(body), PingSize)
	}
	return binary.LittleEndian.Uint64(body), nil
}

// AppendDrain appends a DRAIN frame with the grace in milliseconds.
func AppendDrain(dst []byte, flags Flags, graceMillis uint32) []byte {
	dst = AppendHeader(dst, Header{Length: 4, Type: TypeDrain, Flags: flags})
	return binary.LittleEndian.AppendUint32(dst, graceMillis)
}

// ParseDrain reads the body of a DRAIN frame.
func ParseDrain(body []byte) (graceMillis uint32, err error) {
	if len(body) != 4 {
		return 0, Errorf(BadFrame, "DRAIN frame of %d bytes, want 4", len(body))
	}
	return binary.LittleEndian.Uint32(body), nil
}
