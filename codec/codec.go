// Package codec defines how messages are encoded, and contains the codecs that need only the
// standard library: raw, binary and JSON. Others are in packages below this one, most of them in
// modules of their own; docs/codecs.md compares them.
package codec

// The codec numbers on the wire; see docs/protocol.md §13. Applications use FirstFree and above.
const (
	RawID           uint8 = 1
	BinaryID        uint8 = 2
	JSONID          uint8 = 3
	ProtobufID      uint8 = 4
	MsgpackID       uint8 = 5
	GobID           uint8 = 6
	CBORID          uint8 = 7
	FlatBuffersID   uint8 = 8
	ThriftBinaryID  uint8 = 9
	ThriftCompactID uint8 = 10
	BSONID          uint8 = 11
	Hessian2ID      uint8 = 12
	FirstFree       uint8 = 64
)

// Codec encodes and decodes messages. Implementations are safe for concurrent use, never panic on
// a peer's bytes, and allocate in proportion to the size of their input.
type Codec interface {
	// ID is the codec's number on the wire.
	ID() uint8
	// Name is the codec's lower-case name, for options and messages: "json".
	Name() string
	// Append appends the encoding of v to dst and returns the extended slice, which may share
	// dst's memory and belongs to the caller, to be changed and used again. If it fails, the bytes
	// of dst are unchanged.
	Append(dst []byte, v any) ([]byte, error)
	// Unmarshal decodes data into v, a non-nil pointer. It must not keep data: the caller reuses
	// it.
	Unmarshal(data []byte, v any) error
}

// A FreshUnmarshaler is a Codec that decodes faster into a value known to be zero.
type FreshUnmarshaler interface {
	// UnmarshalFresh is like Unmarshal, but v must point to a zero value.
	UnmarshalFresh(data []byte, v any) error
}

// A Borrower is a Codec that can decode messages that refer to the encoded bytes.
type Borrower interface {
	// UnmarshalBorrowed is like Unmarshal, but v may refer to data, which stays unchanged until
	// the handler that receives v has returned. A server uses it for uncompressed requests.
	UnmarshalBorrowed(data []byte, v any) error
}

// A Canonical is a Codec whose Append may encode equal values differently, for example because the
// order of a Go map is random. Callers that compare encoded messages use AppendCanonical if it is
// implemented.
type Canonical interface {
	// AppendCanonical is like Append, but within a process it returns the same bytes for equal
	// values. It may take longer.
	AppendCanonical(dst []byte, v any) ([]byte, error)
}

// A Fitter is a Codec that can report whether it supports a type without a value. The client and
// the server use it to choose a codec and to reject a call before decoding its payload.
type Fitter interface {
	// Fits reports whether v, a pointer of the message's type that may be nil, can be encoded
	// and decoded.
	Fits(v any) bool
}

// Own is a message that brings its codec, as generated code of contracts does whose messages have a
// codec of their own. A client calls with it unless the call or one of the client's codecs is for
// the type, and a server accepts it for the methods that take such messages, unless it has another
// codec with this number.
type Own interface {
	// OwnCodec returns the codec, which depends on the type alone: the receiver may be nil.
	OwnCodec() Codec
}

// An Explainer is a Fitter that can explain why it does not support a type.
type Explainer interface {
	// Unfit returns nil if Fits reports true, otherwise an error with the path of the unsupported
	// field: "field Inner[].E: there is no JSON for chan int".
	Unfit(v any) error
}
