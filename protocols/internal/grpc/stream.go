package grpc

import (
	"encoding/binary"
	"io"
	"sync"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/stubwire"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
)

// stream carries the messages of a stream.
type stream struct {
	*request
	head *h2.Header

	mu    sync.Mutex // guards the fields below
	cond  sync.Cond  // for Recv
	in    []byte     // what has arrived
	at    int        // in[:at] was received
	freed int        // bytes of in[at:] that were given back to the client already
	waits bool       // a Recv waits
	ended bool       // nothing more arrives
	any   bool       // a message was received
	why   *anser.Error
	call  *anser.ProtocolCall
	gone  bool // the client has reset the stream
	held  int  // bytes of in that the server's memory counts
}

func newStream(q *request) *stream {
	s := &stream{request: q, head: q.header()}
	s.cond.L = &s.mu
	return s
}

// open makes the server run the handler.
func (s *stream) open() {
	s.conn.Host.With(s.token, func(pc *anser.ProtocolConn, fault *anser.Error) {
		var call *anser.ProtocolCall
		if fault == nil {
			call, fault = pc.Admit(&s.request.call)
		}
		if fault != nil {
			s.Stop(fault) // what has arrived is given back
			s.refuse(fault)
			return
		}
		s.mu.Lock()
		s.call = call
		gone := s.gone
		s.mu.Unlock()
		if gone {
			call.Cancel()
		}
		call.RunStream(s, s.respond)
	})
}

// Data gets a part of the messages.
func (s *stream) Data(p []byte, end bool) {
	s.mu.Lock()
	s.in = append(s.in, p...)
	s.ended = s.ended || end
	free := 0
	if s.why == nil && !s.holdLocked() {
		s.why = anser.Refuse(anser.ResourceExhausted, "the server has no memory for the message (anser.MaxMemory)")
		free = len(s.in) - s.at - s.freed
		s.dropLocked()
		s.cond.Broadcast()
	} else if s.waits {
		free = s.freeLocked()
		s.cond.Signal()
	} else if s.why != nil {
		free = len(p)
		s.in = s.in[:0]
	}
	s.mu.Unlock()
	if free > 0 {
		s.st.Consume(free)
	}
}

// freeLocked returns the number of bytes to give back so that the client can complete a message
// that is larger than the window.
func (s *stream) freeLocked() int {
	n := len(s.in) - s.at
	if n >= prefixSize {
		if size := int(binary.BigEndian.Uint32(s.in[s.at+1:])); size > s.conn.most || n >= prefixSize+size {
			return 0
		}
	}
	free := n - s.freed
	s.freed = n
	return free
}

// Reset ends the stream of a client that is gone.
func (s *stream) Reset(error) {
	s.mu.Lock()
	call := s.call
	s.gone = true
	s.mu.Unlock()
	if call != nil {
		call.Cancel()
	}
}

// Stop makes Send and Recv return why.
func (s *stream) Stop(why *anser.Error) {
	s.mu.Lock()
	if s.why == nil {
		s.why = why
	}
	free := len(s.in) - s.at - s.freed
	s.dropLocked()
	s.cond.Broadcast()
	s.mu.Unlock()
	if free > 0 {
		s.st.Consume(free)
	}
}

// holdLocked counts what has arrived, and reports whether there is room for it.
func (s *stream) holdLocked() bool {
	more := cap(s.in) - s.held
	if len(s.in)-s.at <= uncounted || more <= 0 {
		return true
	}
	if !s.conn.Host.Hold(more) {
		return false
	}
	s.held += more
	return true
}

// releaseLocked takes back what holdLocked has counted.
func (s *stream) releaseLocked() {
	if s.held > 0 {
		s.conn.Host.Release(s.held)
		s.held = 0
	}
}

// dropLocked forgets what has arrived.
func (s *stream) dropLocked() {
	s.in, s.at, s.freed = nil, 0, 0
	s.releaseLocked()
}

// Recv waits for the next message.
func (s *stream) Recv(msg any) error {
	payload, flag, err := s.next()
	if err != nil {
		return err
	}
	plain, fault := s.unpack(flag, payload)
	if fault == nil {
		fault = s.decode(plain, msg)
	}
	if fault != nil {
		return fault
	}
	return nil
}

// next returns the next message, which is valid until the next call.
func (s *stream) next() (payload []byte, flag byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.why != nil {
			return nil, 0, s.why
		}
		n := len(s.in) - s.at
		if n >= prefixSize {
			size := int(binary.BigEndian.Uint32(s.in[s.at+1:]))
			if size > s.conn.most {
				return nil, 0, s.tooLarge()
			}
			whole := prefixSize + size
			if n > whole && !s.method.ClientStream {
				return nil, 0, anser.Refuse(anser.Unimplemented, "the request has more than one message")
			}
			if n >= whole && (s.ended || s.method.ClientStream) {
				s.any = true
				message := append([]byte(nil), s.in[s.at:s.at+whole]...)
				s.at += whole
				free := whole - min(s.freed, whole)
				s.freed -= min(s.freed, whole)
				if s.at == len(s.in) {
					s.in, s.at = s.in[:0], 0
					s.releaseLocked()
					if cap(s.in) > maxKept {
						s.in = nil
					}
				} else if s.at > maxKept {
					s.in = append([]byte(nil), s.in[s.at:]...)
					s.at = 0
					s.releaseLocked() // the rest counts when more arrives
				}
				if free > 0 {
					s.mu.Unlock()
					s.st.Consume(free)
					s.st.Flush()
					s.mu.Lock()
				}
				return message[prefixSize:], message[0], nil
			}
		}
		if s.ended {
			if n > 0 {
				return nil, 0, anser.Refuse(anser.Internal, "the message is cut off")
			}
			if !s.any && !s.method.ClientStream {
				return nil, 0, anser.Refuse(anser.Unimplemented, "the request has no message")
			}
			return nil, 0, io.EOF
		}
		if free := s.freeLocked(); free > 0 {
			s.mu.Unlock()
			s.st.Consume(free)
			s.st.Flush()
			s.mu.Lock()
			continue
		}
		s.waits = true
		s.cond.Wait()
		s.waits = false
	}
}

// Send sends a message.
func (s *stream) Send(msg any) error {
	if m, ok := msg.(*emptypb.Empty); ok {
		if md, ok := stubwire.ParseHeaderMessage(m.ProtoReflect().GetUnknown()); ok {
			s.head.Fields = append(s.head.Fields, exchange.Fields(md)...)
			return s.st.SendHeader(s.head)
		}
	}
	scratch := buffers.Get().(*[]byte)
	data, err := s.appendMessage((*scratch)[:0], msg)
	if err != nil {
		buffers.Put(scratch)
		return err
	}
	err = s.st.Send(s.call.Context(), s.head, data)
	if cap(data) <= maxKept {
		*scratch = data
		buffers.Put(scratch)
	}
	return err
}

// respond ends the stream.
func (s *stream) respond(r anser.ProtocolReply) error {
	headers, fields := exchange.Trailers(r.Trailers)
	s.head.Fields = append(s.head.Fields, headers...)
	status := okStatus[:1:1]
	if r.Err != nil {
		status = exchange.StatusFields(r.Err)
	}
	return s.st.Respond(s.head, nil, append(status, fields...))
}

// Incomplete reports whether the body must arrive in time: a stream may last.
func (s *stream) Incomplete() bool { return false }
