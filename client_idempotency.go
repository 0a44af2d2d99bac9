package anser

import (
	"context"
	"time"

	"github.com/anser-rpc/anser/wire"
)

// IdempotencyKey gives the call a key by which a server with [Deduplicate] recognizes it: the same call with the
// same key runs once, and a further one gets the first one's reply. So a call of a method that is not
// idempotent may be sent again when its outcome is unknown, though only to the process that it was sent to, and for
// as long as that one knows the key ([ReplyCache]). When the process has ended, or another one has taken its
// address, the call is not sent again and fails with the outcome Unknown. The client sees to that for the attempts of
// one call. A caller that makes a further call with the key must send it to the same instance, as with [At],
// as another one has not seen the key. A server that does not deduplicate refuses the call.
//
// The key consists of 1 to 128 visible characters of ASCII. It must not be one of another call, and not
// be guessable, as in rand.Text(). Calls that are to be one have the same request too, byte for byte when it is
// encoded, and the same codec and compression.
func IdempotencyKey(key string) CallOption {
	return callOption(func(o *callOptions) { o.key, o.keyed = key, true })
}

// keptKey says where and until when the key of a call that may have run is known for certain.
type keptKey struct {
	life  uint64
	until int64 // nanotime
}

// maxKeyAge keeps sums with it in range.
const maxKeyAge = 24 * time.Hour

// sentTo returns the keptKey of an attempt that began at a nanotime.
func (c *callerHalf) sentTo(began int64) keptKey {
	age := min(c.peer.KeyAge, uint64(maxKeyAge/time.Millisecond))
	return keptKey{c.peer.Life, began + int64(age)*int64(time.Millisecond)}
}

// rightConn returns a connection over which a call with a key may go that may have run: conn, or another one to the
// same life of the server.
func (e *endpoint) rightConn(conn *callerHalf, k *call) (*callerHalf, *Error) {
	if conn.peer.Life != k.kept.life {
		conn = e.host.connOf(k.kept.life)
	}
	switch {
	case k.kept.life == 0:
		return nil, keyLost("the server does not say for how long it knows idempotency keys")
	case conn == nil:
		return nil, keyLost("the server that the call was sent to is gone, and another one runs at its address, which does not know the idempotency key")
	case nanotime() >= k.kept.until:
		return nil, keyLost("the server may have forgotten the idempotency key (anser.ReplyCache)")
	}
	return conn, nil
}

// keyLost is why a call with a key is not sent again.
func keyLost(text string) *Error {
	return failure(Unavailable, NotSent, PhaseWrite, nil, "not sent again, as the call may have run: %s", text).WithRetryAfter(RetryNever)
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
