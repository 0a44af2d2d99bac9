package anser

import (
	"errors"
	"fmt"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// ForwardCall is a call that a server is about to forward; see [Forward]. It belongs to the call
// and must not be kept.
type ForwardCall struct {
	// Method is the name under which the caller knows the method.
	Method string
	// Codec is the number of the codec of the messages; see docs/protocol.md §13.
	Codec uint8
	// Stream is true for a stream, and Oneway for a call without a reply.
	Stream, Oneway bool
	// Set is nil, and may be set by the function that chooses where the call goes. It goes with
	// the call in addition to the metadata of the caller, and replaces entries of the caller that
	// have the same keys. An empty value removes them.
	Set Metadata
	// Ended is nil, and may be set by the function that chooses where the call goes. It is called
	// once, when the call to the client has ended, and must return at once. It is not called if the
	// function refuses the call.
	Ended func()
}

// forwarding is a call as the server hands it to the client that forwards it.
type forwarding struct {
	method     string
	request    wire.Request // as received; its slices are valid until the client returns
	flags      wire.Flags   // as received
	deadline   mono.Time    // 0: none
	key        string       // the idempotency key in the metadata, or ""
	compressor compress.Compressor
	end        forwardEnd // of a call with a reply
}

// forwardEnd gets the result of a call that was forwarded. It is called once, on the goroutine
// that has read the reply, and must not wait.
type forwardEnd interface {
	// forwarded gets the reply, or the error of the call with its trailers in the reply. The
	// slices are valid until it returns.
	forwarded(r forwardReply, fault *Error)
}

// forwardReply is a reply as received.
type forwardReply struct {
	codec, compression uint8
	flags              wire.Flags
	trailers           []byte // a metadata block, or nil
	payload            []byte
}

// stopper is a call that can be cancelled.
type stopper interface {
	// stop cancels the call. It does nothing to a call that is over.
	stop()
}

// setMetadata returns the block with the entries of set in place of those with the same keys.
func setMetadata(block []byte, set Metadata) ([]byte, *Error) {
	md := make(Metadata)
	var own []wire.Pair
	if block != nil {
		pairs, key, err := wire.ParseRequestMetadata(block, uint64(len(block)))
		if err != nil {
			return nil, failure(InvalidArgument, NotSent, PhaseEncode, err, "%v", err)
		}
		for _, p := range pairs {
			md[p.Key] = p.Value
		}
		if key != "" {
			own = append(own, wire.Pair{Key: wire.IdempotencyKey, Value: key})
		}
	}
	for k, v := range set {
		if md.Set(k, v); v == "" {
			delete(md, k)
		}
	}
	delete(md, wire.IdempotencyKey)
	out, err := encodeMetadata(md, own...)
	if err != nil {
		fault, _ := errors.AsType[*Error](err)
		return nil, fault
	}
	return out, nil
}

// opaqueCodec is the codec of messages that are forwarded: their type is *[]byte, and they are
// their own encoding, in the codec with this number.
type opaqueCodec uint8

// ID returns the number of the codec of the messages.
func (c opaqueCodec) ID() uint8 { return uint8(c) }

// Name is for error messages.
func (c opaqueCodec) Name() string { return fmt.Sprintf("codec %d, forwarded", uint8(c)) }

// Append appends the bytes of a message.
func (c opaqueCodec) Append(dst []byte, v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok || b == nil {
		return dst, fmt.Errorf("a message that is forwarded is a *[]byte and not a %T", v)
	}
	return append(dst, *b...), nil
}

// Unmarshal copies the bytes of a message.
func (c opaqueCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok || b == nil {
		return fmt.Errorf("a message that is forwarded is a *[]byte and not a %T", v)
	}
	*b = append((*b)[:0], data...)
	return nil
}

// opaqueCompressor has the number of an algorithm that this side does not have. Messages compressed
// with it can only be forwarded.
type opaqueCompressor uint8

var errOpaque = errors.New("this side does not have the algorithm")

// ID returns the number of the algorithm.
func (c opaqueCompressor) ID() uint8 { return uint8(c) }

// Name is for error messages.
func (c opaqueCompressor) Name() string { return fmt.Sprintf("compression %d", uint8(c)) }

// Append fails.
func (c opaqueCompressor) Append(dst, _ []byte) ([]byte, error) { return dst, errOpaque }

// Decompress fails.
func (c opaqueCompressor) Decompress(dst, _ []byte, _ int) ([]byte, error) { return dst, errOpaque }

// isOpaque reports whether messages of c can only be forwarded.
func isOpaque(c compress.Compressor) bool {
	_, opaque := c.(opaqueCompressor)
	return opaque
}
