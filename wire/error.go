package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reason is the number in a CLOSE frame that identifies why a connection ended.
type Reason uint32

// The reasons of docs/protocol.md §10.
const (
	Normal Reason = iota
	BadFrame
	BadVersion
	FrameTooLarge
	BadID
	BadMethod
	BadMetadata
	Flood
	Timeout
	FlowControl
	Overload
	Unauthenticated
	BadChecksum
	Internal
)

var reasonNames = [...]string{
	"NORMAL", "BAD_FRAME", "BAD_VERSION", "FRAME_TOO_LARGE", "BAD_ID", "BAD_METHOD", "BAD_METADATA",
	"FLOOD", "TIMEOUT", "FLOW_CONTROL", "OVERLOAD", "UNAUTHENTICATED", "BAD_CHECKSUM", "INTERNAL",
}

// String returns the name of the reason in docs/protocol.md.
func (r Reason) String() string {
	if int64(r) < int64(len(reasonNames)) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint32(r))
}

// Error is a protocol violation after which the connection must be closed with the reason.
type Error struct {
	Reason Reason
	Text   string
}

// Error returns the text and the reason.
func (e *Error) Error() string { return e.Text + " (" + e.Reason.String() + ")" }

// Errorf returns an Error with a formatted text.
func Errorf(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Text: fmt.Sprintf(format, args...)}
}

// CallError is an error of one call; the connection stays open.
type CallError struct {
	Code Code
	Text string
}

// Error returns the text.
func (e *CallError) Error() string { return e.Text }

func callErrorf(c Code, format string, args ...any) *CallError {
	return &CallError{Code: c, Text: fmt.Sprintf(format, args...)}
}

// Code classifies the error of a call. The numbers and names are gRPC's.
type Code uint8

// The codes. OK is never on the wire: a successful call has a REPLY.
const (
	OK Code = iota
	Canceled
	Unknown
	InvalidArgument
	DeadlineExceeded
	NotFound
	AlreadyExists
	PermissionDenied
	ResourceExhausted
	FailedPrecondition
	Aborted
	OutOfRange
	Unimplemented
	InternalError
	Unavailable
	DataLoss
	UnauthenticatedCall
)

var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
	"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// String returns the name of the code in docs/protocol.md.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Outcome tells whether a failed call was executed; see docs/protocol.md §8. The zero value is
// "not sent", which a peer cannot know and which is therefore never on the wire.
type Outcome uint8

// The outcomes.
const (
	NotSent Outcome = iota
	Refused
	OutcomeUnknown
	Executed
)

var outcomeNames = [...]string{"NotSent", "Refused", "Unknown", "Executed"}

// String returns the name of the outcome in docs/protocol.md.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// RetryNever is the value of RetryAfter that means not to retry.
const RetryNever = 1<<32 - 1

// ErrorBody is the body of an ERROR frame.
type ErrorBody struct {
	Code       Code
	Outcome    Outcome
	RetryAfter uint32 // milliseconds; 0: no advice; RetryNever
	Message    string
	Metadata   []byte // a metadata block with its length field, or none
	Details    []byte
}

// AppendError appends an ERROR frame for the call id. FlagMetadata follows from e.Metadata; a
// message longer than MaxMessage bytes is truncated. The frame may still be longer than the peer's
// max_frame.
func AppendError(dst []byte, id uint64, flags Flags, e *ErrorBody) []byte {
	message := sendText(e.Message, MaxMessage)
	dst = AppendHeader(dst, Header{
		Length: uint32(ErrorSize + len(message) + len(e.Metadata) + len(e.Details)),
		Type:   TypeError, Flags: bodyFlags(flags, e.Metadata), ID: id,
	})
	dst = append(dst, byte(e.Code), byte(e.Outcome), 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, e.RetryAfter)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(message)))
	dst = append(dst, message...)
	dst = append(dst, e.Metadata...)
	return append(dst, e.Details...)
}

// ParseError parses the body of an ERROR frame. Metadata and Details alias body.
func ParseError(flags Flags, body []byte) (ErrorBody, error) {
	var e ErrorBody
	if len(body) < ErrorSize {
		return e, Errorf(BadFrame, "ERROR frame of %d bytes, want at least %d", len(body), ErrorSize)
	}
	if body[2]|body[3] != 0 {
		return e, Errorf(BadFrame, "reserved bits of the ERROR frame are set")
	}
	e.Code, e.Outcome = Code(body[0]), Outcome(body[1])
	if e.Code == OK || e.Code > UnauthenticatedCall {
		e.Code = Unknown
	}
	if e.Outcome == NotSent || e.Outcome > Executed {
		e.Outcome = OutcomeUnknown
	}
	e.RetryAfter = binary.LittleEndian.Uint32(body[4:])
	n := binary.LittleEndian.Uint32(body[8:])
	rest := body[ErrorSize:]
	if uint64(n) > uint64(len(rest)) {
		return e, Errorf(BadFrame, "ERROR message of %d bytes in a frame with %d left", n, len(rest))
	}
	if n > MaxMessage {
		return e, Errorf(BadFrame, "ERROR message of %d bytes, want at most %d", n, MaxMessage)
	}
	e.Message = receivedText(rest[:n])
	var err error
	e.Metadata, e.Details, err = splitMetadata(flags, rest[n:])
	return e, err
}

// AppendClose appends a CLOSE frame; text longer than MaxCloseText bytes is truncated.
func AppendClose(dst []byte, r Reason, text string) []byte {
	text = sendText(text, MaxCloseText)
	dst = AppendHeader(dst, Header{Length: uint32(4 + len(text)), Type: TypeClose})
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r))
	return append(dst, text...)
}

// ParseClose parses the body of a CLOSE frame.
func ParseClose(body []byte) (Reason, string, error) {
	if len(body) < 4 || len(body) > 4+MaxCloseText {
		return 0, "", Errorf(BadFrame, "CLOSE frame of %d bytes, want 4 to %d", len(body), 4+MaxCloseText)
	}
	return Reason(binary.LittleEndian.Uint32(body)), receivedText(body[4:]), nil
}

// sendText returns text as valid UTF-8 of at most limit bytes; it truncates before a character,
// not inside one.
func sendText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// receivedText returns a peer's text as valid UTF-8. A run of invalid bytes becomes one U+FFFD, so
// that the result is at most about twice as long.
func receivedText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
