package record

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
)

// entry is a call on its way to a file: with its secrets, and therefore only in memory.
type entry struct {
	call           Call
	began          mono.Time
	request, reply *schema // of the messages' types
	bytes          int64   // of messages, which pending counts

	mu       sync.Mutex // guards the fields below, and of a stream call.Messages and call.Cut
	messages []*schema  // of the types of call.Messages
	over     bool       // the handler has returned
	lost     error      // why the call is not recorded, or nil
}

// The reasons why a call is not recorded.
type reason struct{ text string }

func (r *reason) Error() string { return r.text }

var (
	errDropped    = &reason{"the queue is full"}
	errTooLarge   = &reason{"a message is too large"}
	errUnreadable = &reason{"a message has no JSON"}
)

// errPanicked is the result of a call whose handler panics, or ends its goroutine.
var errPanicked = anser.Errorf(anser.Internal, "it panicked")

// intercept records a call.
func (r *Recorder) intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) (err error) {
		e := r.begin(ctx, inv)
		err = errPanicked // until it has returned
		defer func() { r.end(e, inv, err) }()
		return next(ctx, inv)
	}
}

// begin notes the request of a call.
func (r *Recorder) begin(ctx context.Context, inv *anser.Invocation) *entry {
	e := &entry{began: mono.Now()}
	e.call = Call{Method: inv.Method, At: r.wall(e.began), Oneway: inv.Oneway, Stream: inv.Stream}
	if by, ok := ctx.Deadline(); ok {
		e.call.Timeout = max(time.Until(by), 1)
	}
	if cd := inv.Codec(); cd != nil {
		e.call.Codec = cd.Name()
	}
	if len(r.o.Metadata) > 0 {
		md := anser.MetadataFrom(ctx)
		for _, key := range r.o.Metadata {
			if value, ok := md[key]; ok {
				if e.call.Metadata == nil {
					e.call.Metadata = make(map[string]string)
				}
				e.call.Metadata[key] = value
			}
		}
	}
	if inv.Stream {
		inv.OnMessage(func(message any, sent bool) { r.message(e, message, sent) })
		return e
	}
	e.call.Request, e.request, e.lost = r.encode(e, inv.Request, false)
	return e
}

// message notes a message of a stream.
func (r *Recorder) message(e *entry, message any, sent bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.over || e.call.Cut:
		return
	case len(e.call.Messages) == maxMessages:
		e.call.Cut = true
		return
	}
	text, of, err := r.encode(e, message, sent)
	switch {
	case err == errUnreadable:
		e.lost, e.call.Cut = err, true
		return
	case err != nil:
		e.call.Cut = true
		return
	}
	e.messages = append(e.messages, of)
	e.call.Messages = append(e.call.Messages, Message{After: mono.Since(e.began), Sent: sent, JSON: text})
}

// end notes the result of a call, and puts it into the queue.
func (r *Recorder) end(e *entry, inv *anser.Invocation, err error) {
	e.call.Took = mono.Since(e.began)
	e.call.Code = anser.CodeOf(err).String()
	if !inv.Stream && !inv.Oneway && err == nil && e.lost == nil {
		e.call.Reply, e.reply, e.lost = r.encode(e, inv.Reply, true)
	}
	e.mu.Lock()
	e.over = true
	lost := e.lost
	e.mu.Unlock()
	if lost == nil {
		select {
		case r.queue <- e:
			return
		default:
			lost = errDropped
		}
	}
	r.pending.Add(-e.bytes)
	r.count(lost)
}

// count counts a call that is not recorded.
func (r *Recorder) count(why error) {
	switch why {
	case errDropped:
		r.counts.dropped.Add(1)
	case errTooLarge:
		r.counts.tooLarge.Add(1)
	default:
		r.counts.unreadable.Add(1)
	}
}

// wall returns the time of t on the clock of the recording.
func (r *Recorder) wall(t mono.Time) time.Time {
	return time.Unix(0, r.run).Add(t.Sub(r.began)).UTC()
}

// encode returns the JSON of a message, and the schema of its type. A panic of the message's own
// code fails only the recording.
func (r *Recorder) encode(e *entry, message any, reply bool) (text []byte, of *schema, err error) {
	if r.pending.Load() > maxQueuedBytes {
		return nil, nil, errDropped
	}
	defer func() {
		if p := recover(); p != nil {
			text, err = nil, errUnreadable
		}
	}()
	if m, ok := message.(*codec.Encoded); ok {
		switch {
		case m == nil:
			return nil, nil, errUnreadable
		case len(m.Data) > mostEncoded*r.o.MaxMessage:
			return nil, nil, errTooLarge
		case m.Codec == codec.JSONID && len(m.Data) > r.o.MaxMessage:
			return nil, nil, errTooLarge
		case m.Codec == codec.JSONID:
			text = append(text, m.Data...)
		case r.o.Decode == nil:
			return nil, nil, errUnreadable
		default:
			if message, err = r.o.Decode(e.call.Method, reply, m); err != nil {
				return nil, nil, errUnreadable
			}
		}
	}
	if text == nil {
		if _, ok := message.(*[]byte); ok { // nothing in it could be hidden
			return nil, nil, errUnreadable
		}
		if m, ok := message.(proto.Message); ok && !isNil(message) && proto.Size(m) > mostEncoded*r.o.MaxMessage {
			return nil, nil, errTooLarge
		}
		if of, err = r.schemaOf(message); err != nil {
			return nil, nil, err
		}
		if text, err = r.json.Append(nil, message); err != nil {
			return nil, nil, errUnreadable
		}
	}
	if len(text) > r.o.MaxMessage {
		return nil, nil, errTooLarge
	}
	size := int64(len(text)) + messageBytes
	e.bytes += size
	r.pending.Add(size)
	return text, of, nil
}

// mostEncoded is how much larger a message can be in its encoding than in JSON: a double of
// MessagePack has 9 bytes, and 0 with its comma has 2. One that is larger is not encoded as JSON
// at all.
const mostEncoded = 5

// messageBytes is what a message takes in memory in addition to its text.
const messageBytes = 64
