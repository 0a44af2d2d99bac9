package anser

import (
	"context"

	"github.com/anser-rpc/anser/wire"
)

// IdempotencyKey gives the call a key by which a server with [Deduplicate] recognizes it: the same call with the
// same key runs once, and a further one gets the first one's reply. So a call of a method that is not
// idempotent may be sent again when its outcome is unknown, though only to the instance that it was sent to,
// as another one has not seen the key. A server that does not deduplicate refuses the call.
//
// The key consists of 1 to 128 visible characters of ASCII. It must not be one of another call, and not
// be guessable, as in rand.Text(). Calls that are to be one have the same request too, byte for byte when it is
// encoded, and the same codec and compression.
func IdempotencyKey(key string) CallOption {
	return callOption(func(o *callOptions) { o.key, o.keyed = key, true })
}

// IdempotencyKeyFrom returns the key of the call that ctx belongs to, or "". ctx is that of a handler.
func IdempotencyKeyFrom(ctx context.Context) string {
	if c := callFrom(ctx); c != nil && c.brought != nil {
		return c.brought.key
	}
	return ""
}

// addKey adds the key to the metadata of a request.
func (o *callOptions) addKey(ctx context.Context, r *wire.Request) *Error {
	if err := wire.CheckIdempotencyKey(o.key); err != nil {
		return failure(InvalidArgument, NotSent, PhaseEncode, err, "%v", err)
	}
	block, err := encodeMetadata(outgoing(ctx), wire.Pair{Key: wire.IdempotencyKey, Value: o.key})
	if err != nil {
		return err.(*Error)
	}
	r.Metadata = block
	return nil
}
