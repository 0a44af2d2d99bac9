package anser

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// call is one attempt that is open, and the buffers that serve all attempts of a call. It is pooled.
//
// Its order is that of use: the goroutine that reads touches the first 128 bytes, two lines of a processor's cache,
// and with many callers it has to fetch them for every reply.
type call struct {
	done    chan struct{} // receives one value when the attempt is over
	pending *pending      // of a call that no goroutine waits for: told in place of done
	id      uint64        // written under the connection's lock by start
	stream  *stream       // that the call opens, or nil

	// Of the caller before start. A reply is written by whoever takes the call out of the pending table, before done.
	frame       []byte       // the whole REQUEST frame, until the reply takes the place of its message; dress completes that of a call with compression
	failed      *Error       // why there is no reply; nil with a reply
	compression *compression // nil: without
	trailers    []byte
	slot        uint32     // random, for spreading calls over connections
	head        int32      // bytes of frame before the message
	codec       uint8      // of the request, and so of the reply
	flags       wire.Flags // of the reply
	packed      bool       // the reply is compressed
	patient     bool       // the caller has nothing to wait for but the reply
	oneway      bool       // there is no reply
	fresh       bool       // what the reply is decoded into is zero
	atOnce      bool       // an attempt that would have to wait for a connection or for room fails
	settled     bool       // it goes to the endpoint that was picked and to no other
	deadline    int64      // nanotime, 0: none

	// Of the caller alone.
	began    int64   // nanotime
	begin    uint64  // value of the writer's appended before the frame; written as id is
	sent     keptKey // of the last attempt whose outcome is unknown
	kept     keptKey // where a call with a key may go once it may have run, if again is set
	again    bool
	plain    []byte          // of a call with compression: the encoded request, and later the decompressed reply
	pick     balance.Request // what balancers are told
	observed context.Context // of an attempt that observers know of
	route    *Route          // of the instances, to which the router sends the call; nil: all
	mover    *Client         // of a call that may be moved to another instance if the one that has it falls silent; else nil
}

// reply returns the payload of the reply, once there is one.
func (k *call) reply() []byte { return k.frame[k.head:] }

func (k *call) CallID() uint64 { return k.id }

// getCall returns a call with its own channel. Calls are pooled with the connections and not for the
// whole process, because a channel made inside a synctest bubble must not be used outside of it.
func (p *pool) getCall() *call {
	if k, ok := p.calls.Get().(*call); ok {
		return k
	}
	return &call{done: make(chan struct{}, 1), slot: rand.Uint32()}
}

func (p *pool) putCall(k *call) {
	k.clear()
	p.calls.Put(k)
}

// getStarted returns a call for a future, which has no channel.
func (p *pool) getStarted() *call {
	if k, ok := p.started.Get().(*call); ok {
		return k
	}
	return &call{slot: rand.Uint32()}
}

func (p *pool) putStarted(k *call) {
	k.clear()
	k.pending = nil
	p.started.Put(k)
}

func (p *pool) getWaiter() chan struct{} {
	if w, ok := p.waiters.Get().(chan struct{}); ok {
		return w
	}
	return make(chan struct{}, 1)
}

// over tells who waits for the attempt that it has ended.
func (k *call) over() {
	if k.pending != nil {
		k.pending.attemptDone()
		return
	}
	k.done <- struct{}{}
}

// clear drops what is not for the next call.
func (k *call) clear() {
	k.pick.Key, k.pick.Payload = 0, nil
	if cap(k.frame) > maxKeptMessage {
		k.frame = nil
	}
	if cap(k.plain) > maxKeptMessage {
		k.plain = nil
	}
	k.failed, k.trailers, k.route, k.fresh, k.again = nil, nil, nil, false, false
	k.sent = keptKey{}
}

// accept stores what arrived for k, whose payload may have up to limit bytes. An error is one of the
// connection.
func (k *call) accept(a *arrived, limit int) error {
	k.flags = a.flags
	if a.kind == wire.TypeError {
		e, err := wire.ParseError(a.flags, a.body)
		if err != nil {
			return err
		}
		k.failed = remoteError(&e)
		_, err = k.acceptTrailers(e.Metadata)
		return err
	}
	r, err := wire.ParseReply(a.flags, a.body)
	if err != nil {
		return err
	}
	fault, err := k.acceptTrailers(r.Metadata)
	if err != nil {
		return err
	}
	k.failed = nil
	switch {
	case r.Codec != k.codec:
		k.failed = failure(Internal, OutcomeUnknown, PhaseDecode, nil, "the reply has the codec %d, the request had %d", r.Codec, k.codec)
	case r.Compression != 0 && !k.asked(r.Compression):
		k.failed = failure(Internal, OutcomeUnknown, PhaseDecode, nil, "the reply has the compression %d, which the request did not name", r.Compression)
	case len(r.Payload) > limit && r.Compression == 0:
		k.failed = failure(ResourceExhausted, Executed, PhaseDecode, nil, "the reply of %d bytes is over the limit of %d: raise it with anser.MaxMessage on the client, or ask for less", len(r.Payload), limit)
	case fault != nil:
		k.failed = failure(Internal, Executed, PhaseDecode, fault, "the trailers of the reply: %v", fault)
	default:
		k.packed = r.Compression != 0
		// Nothing is sent again after a reply. With many callers, a second buffer for each would leave the cache.
		k.frame = codec.AppendInPieces(k.frame[:k.head], r.Payload)
	}
	return nil
}

// acceptTrailers stores a metadata block, if it keeps the rules. fault says how an entry breaks them;
// err, which is one of the connection, that the structure is broken.
func (k *call) acceptTrailers(block []byte) (fault *wire.CallError, err error) {
	if block == nil {
		return nil, nil
	}
	_, err = wire.ParseMetadata(block, wire.DefaultSettings().MaxMetadata)
	if fault, ok := err.(*wire.CallError); ok { // errors.As would allocate for every reply
		return fault, nil
	}
	if err == nil {
		k.trailers = slices.Clone(block)
	}
	return nil, err
}
