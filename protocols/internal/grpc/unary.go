package grpc

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// unary receives the message of a call.
type unary struct {
	*request
	buf []byte // of a message in several parts; owned by the reader goroutine

	mu   sync.Mutex // guards the fields below
	call *anser.ProtocolCall
	gone bool // the client no longer waits
	held int  // bytes of buf that the server's memory counts
}

// Data gets a part of the request.
func (u *unary) Data(p []byte, end bool) {
	u.st.Consume(len(p))
	if !end || len(u.buf) > 0 {
		if len(u.buf)+len(p) > u.conn.most+prefixSize {
			u.refuseAll(u.tooLarge())
			return
		}
		u.buf = append(u.buf, p...)
		if cap(u.buf) > uncounted && !u.hold(cap(u.buf)) {
			u.refuseAll(anser.Refuse(anser.ResourceExhausted, "the server has no memory for the request (anser.MaxMemory)"))
			return
		}
		if len(u.buf) >= prefixSize && int64(binary.BigEndian.Uint32(u.buf[1:])) > int64(u.conn.most) {
			u.refuseAll(u.tooLarge())
			return
		}
		if !end {
			return
		}
		p = u.buf
	}
	switch {
	case len(p) == 0:
		u.refuseAll(anser.Refuse(anser.Unimplemented, "the request has no message"))
		return
	case len(p) < prefixSize || len(p)-prefixSize < int(binary.BigEndian.Uint32(p[1:])):
		u.refuseAll(anser.Refuse(anser.Internal, "the message is cut off"))
		return
	case len(p)-prefixSize > int(binary.BigEndian.Uint32(p[1:])):
		u.refuseAll(anser.Refuse(anser.Unimplemented, "the request has more than one message"))
		return
	}
	if u.token != "" {
		p = bytes.Clone(p) // a login may come first
	}
	u.conn.Host.With(u.token, func(pc *anser.ProtocolConn, fault *anser.Error) {
		if fault != nil {
			u.refuse(fault)
			return
		}
		u.run(pc, p[0], p[prefixSize:])
	})
}

// refuseAll refuses the request although it may not be complete.
func (u *unary) refuseAll(e *anser.Error) {
	u.mu.Lock()
	gone := u.gone
	u.gone = true
	u.mu.Unlock()
	u.buf = nil
	u.release()
	if !gone {
		u.fail(e, nil)
	}
}

// uncounted is the size up to which a request does not count for the memory of the server.
const uncounted = 4 << 10

// hold counts the buffer for the memory of the server, and reports whether there is room for it. A
// request whose client is gone holds nothing.
func (u *unary) hold(size int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	more := size - u.held
	if u.gone || more <= 0 {
		return true
	}
	if !u.conn.Host.Hold(more) {
		return false
	}
	u.held = size
	return true
}

// release takes back what hold has counted.
func (u *unary) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held > 0 {
		u.conn.Host.Release(u.held)
		u.held = 0
	}
}

// run decodes the request and makes the server run the call.
func (u *unary) run(pc *anser.ProtocolConn, flag byte, payload []byte) {
	u.request.call.Size = len(payload)
	u.buf = nil
	u.release() // Admit counts it again
	call, refused := pc.Admit(&u.request.call)
	if refused != nil {
		u.refuse(refused)
		return
	}
	plain, fault := u.unpack(flag, payload)
	if fault == nil && flag != 0 {
		fault = call.Received(len(plain))
	}
	in := call.NewRequest()
	if fault == nil {
		fault = u.decode(plain, in)
	}
	if fault != nil {
		call.Refuse(fault)
		u.fail(fault, nil)
		return
	}
	call.Identify(plain)
	u.mu.Lock()
	u.call = call
	gone := u.gone && !u.keyed()
	u.mu.Unlock()
	if gone {
		call.Cancel()
	}
	call.Run(in, u.respond)
}

// respond sends the answer.
func (u *unary) respond(r anser.ProtocolReply) error {
	if fault := r.Err; fault != nil {
		u.fail(fault, r.Trailers)
		return nil
	}
	if r.Message == nil { // of a oneway method
		h := u.header()
		return u.st.Respond(h, make([]byte, prefixSize), okStatus)
	}
	scratch := buffers.Get().(*[]byte)
	data, err := u.appendMessage((*scratch)[:0], r.Message)
	if err != nil {
		buffers.Put(scratch)
		u.fail(exchange.Fault(err), r.Trailers)
		return err
	}
	h, trailers := u.header(), okStatus
	if len(r.Trailers) > 0 {
		headers, fields := exchange.Trailers(r.Trailers)
		h.Fields = append(h.Fields, headers...)
		trailers = append(trailers[:len(trailers):len(trailers)], fields...)
	}
	u.st.Respond(h, data, trailers)
	if cap(data) <= maxKept {
		*scratch = data
		buffers.Put(scratch)
	}
	return nil
}

// Reset cancels the call.
func (u *unary) Reset(error) {
	u.mu.Lock()
	call := u.call
	u.gone = true
	u.mu.Unlock()
	u.release()
	if call != nil && !u.keyed() {
		call.Cancel()
	}
}

// keyed reports whether the call has an idempotency key, so that its caller comes back for the reply.
func (u *unary) keyed() bool { return u.request.call.IdempotencyKey != "" }

// Incomplete reports whether the body has not arrived completely.
func (u *unary) Incomplete() bool { return true }
