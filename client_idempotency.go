package anser

import (
	"context"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// IdempotencyKey gives the call a key by which a server with [Deduplicate] recognizes it: the same
// call with the same key runs once, and a repeated one gets the first reply. A call may then be
// retried when its outcome is unknown, but only at the same server process, and only while that
// process knows the key ([ReplyCache]). When the process has ended, or another one has taken its
// address, the call is not retried and fails with the outcome Unknown. That holds for idempotent
// methods too: a call with a key has no second attempt with [Backup], and [Fork] refuses it. The
// client ensures this for the attempts of one call. A caller that makes a further call with the
// key must send it to the same instance, as with [At], since other instances have not seen the
// key. A server that does not deduplicate refuses the call.
//
// The key consists of 1 to 128 visible ASCII characters. It must not belong to another call, and
// must not be guessable: use rand.Text(), for example. Repeated calls must also have the same
// request, byte for byte when encoded, and the same codec and compression.
func IdempotencyKey(key string) CallOption {
	return callOption(func(o *callOptions) { o.key, o.keyed = key, true })
}

// maxKeyAge keeps sums with it in range.
const maxKeyAge = 24 * time.Hour

// sentTo returns the keptKey of an attempt that began at a time.
func (c *callerHalf) sentTo(began mono.Time) keptKey {
	age := time.Duration(min(c.peer.KeyAge, uint64(maxKeyAge/time.Millisecond))) * time.Millisecond
	return keptKey{c.peer.Life, began.Add(age)}
}

// rightConn returns a connection over which a call with a key may go that may have run: conn, or
// another one to the same life of the server.
func (k *call) rightConn(e *endpoint, conn *callerHalf) (*callerHalf, *Error) {
	if conn.peer.Life != k.kept.life {
		conn = e.Host.connOf(k.kept.life)
	}
	switch {
	case k.kept.life == 0:
		return nil, keyLost("the server does not say for how long it knows idempotency keys")
	case conn == nil:
		return nil, keyLost("the server that the call was sent to is gone, and another one runs at its address, which does not know the idempotency key")
	case mono.Now() >= k.kept.until:
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
