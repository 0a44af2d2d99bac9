package grpc

import (
	"encoding/binary"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// unary receives the message of a call.
type unary struct {
	*request
	buf []byte // of a message in several parts; owned by the reader goroutine, and from complete on by what runs the call

	known bool                // the caller was known at the beginning
	pc    *anser.ProtocolConn // set once, before the call runs

	mu       sync.Mutex // guards the fields below
	proving  bool       // the caller's credential is checked: nothing is given back to the client
	unpaid   int        // bytes to give back when it is
	complete bool       // buf is the whole request, and the call runs when the caller is known
	call     *anser.ProtocolCall
	gone     bool // the client no longer waits
	held     int  // bytes of buf that the server's memory counts
}

// login identifies the caller, and reports whether the request goes on.
func (u *unary) login() bool {
	pc, fault, known := u.conn.Host.Known(u.token)
	if !known {
		u.proving = true
		go u.conn.Host.With(u.token, u.proved)
		return true
	}
	if fault == nil {
		fault = exchange.Known(pc, &u.request.call)
	}
	if fault != nil {
		u.refuse(fault)
		return false
	}
	u.pc, u.known = pc, true
	return true
}

// proved goes on with the request when a credential was checked.
func (u *unary) proved(pc *anser.ProtocolConn, fault *anser.Error) {
	if fault == nil {
		fault = exchange.Known(pc, &u.request.call)
	}
	u.mu.Lock()
	u.pc, u.proving = pc, false
	unpaid, complete, gone := u.unpaid, u.complete, u.gone
	u.gone = u.gone || fault != nil
	u.mu.Unlock()
	if unpaid > 0 {
		u.st.Consume(unpaid)
		defer u.st.Flush()
	}
	switch {
	case gone:
		u.release()
	case fault != nil:
		u.release()
		u.refuse(fault)
	case complete:
		u.finish(u.buf)
	}
}

// Data gets a part of the request.
func (u *unary) Data(p []byte, end bool) {
	proving := !u.known && u.takes(len(p))
	if !proving {
		u.st.Consume(len(p))
	}
	if proving || !end || len(u.buf) > 0 {
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
		if !end || proving && u.waits() {
			return
		}
		p = u.buf
	}
	u.finish(p)
}

// takes reports whether the caller is not known yet. The bytes are then given back to the client
// later, so that it sends no more than a window.
func (u *unary) takes(n int) (proving bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.proving {
		u.unpaid += n
	}
	return u.proving
}

// waits records that the request is complete, and reports whether the caller is not known yet.
func (u *unary) waits() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.complete = true
	return u.proving
}

// finish runs the call of a complete request.
func (u *unary) finish(p []byte) {
	switch {
	case len(p) == 0:
		u.refuseAll(anser.Refuse(anser.Unimplemented, "the request has no message"))
	case len(p) < prefixSize || len(p)-prefixSize < int(binary.BigEndian.Uint32(p[1:])):
		u.refuseAll(anser.Refuse(anser.Internal, "the message is cut off"))
	case len(p)-prefixSize > int(binary.BigEndian.Uint32(p[1:])):
		u.refuseAll(anser.Refuse(anser.Unimplemented, "the request has more than one message"))
	default:
		u.run(p[0], p[prefixSize:])
	}
}

// refuseAll refuses the request although it may not be complete.
func (u *unary) refuseAll(e *anser.Error) {
	u.mu.Lock()
	gone := u.gone
	u.gone = true
	u.mu.Unlock()
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
func (u *unary) run(flag byte, payload []byte) {
	u.request.call.Size = len(payload)
	u.buf = nil
	u.release() // Admit counts it again
	call, refused := u.pc.Admit(&u.request.call)
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

// keyed reports whether the call has an idempotency key, so that its caller comes back for the
// reply.
func (u *unary) keyed() bool { return u.request.call.IdempotencyKey != "" }

// Incomplete reports whether the body has not arrived completely.
func (u *unary) Incomplete() bool { return true }
