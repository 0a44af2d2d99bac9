// Package codec defines how messages become bytes, and holds the codecs that need nothing beyond
// the standard library: raw, binary and JSON. Others live in packages below this one, most of them in
// modules of their own; docs/codecs.md says which codec is for what.
package codec

// The numbers of the codecs on the wire; see docs/protocol.md §13. Applications use FirstFree and up.
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

// Codec turns messages into bytes and back. Implementations are safe for concurrent use, never
// panic on a peer's bytes, and allocate in proportion to the bytes they are given.
type Codec interface {
	// ID is the codec's number on the wire.
	ID() uint8
	// Name is the codec's lower-case name, for humans and options: "json".
	Name() string
	// Append appends the encoding of v to dst and returns the extended slice, which may share
	// dst's memory. When it fails, the bytes of dst itself are unchanged.
	Append(dst []byte, v any) ([]byte, error)
	// Unmarshal decodes data into v, a non-nil pointer. It must not keep data: the caller reuses it.
	Unmarshal(data []byte, v any) error
}

// A FreshUnmarshaler is a Codec that saves work where it knows that a value is a new one.
type FreshUnmarshaler interface {
	// UnmarshalFresh does what Unmarshal does for a v that points to a zero value.
	UnmarshalFresh(data []byte, v any) error
}

// A Borrower is a Codec whose messages may point into the bytes that they were decoded from.
type Borrower interface {
	// UnmarshalBorrowed does what Unmarshal does, but v may refer to data, which stays as it is until the
	// handler that gets v has returned. A server uses it for requests that are not compressed.
	UnmarshalBorrowed(data []byte, v any) error
}

// A Canonical is a Codec whose Append may write equal values in different ways, as the entries of a Go
// map come in no order. Whoever compares messages by their bytes uses AppendCanonical where it is there.
type Canonical interface {
	// AppendCanonical does what Append does, and writes the same bytes for equal values within a
	// process. It may take longer.
	AppendCanonical(dst []byte, v any) ([]byte, error)
}

// A Fitter is a Codec that can say whether it handles a type, without a value to try. The client
// and server use it to choose a codec and to refuse a call before its payload is touched.
type Fitter interface {
	// Fits reports whether v, a pointer of the message's type that may be nil, can be encoded
	// and decoded.
	Fits(v any) bool
}

// An Explainer is a Fitter that can say why it does not handle a type.
type Explainer interface {
	// Unfit returns nil where Fits reports true, and otherwise an error with the path of the field that is the
	// reason: "field Inner[].E: there is no JSON for chan int".
	Unfit(v any) error
}
