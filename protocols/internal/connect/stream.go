package connect

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/stubwire"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// The flags of an envelope.
const (
	flagPacked = 1
	flagEnd    = 2    // of Connect: the payload is the end of the stream
	flagWebEnd = 0x80 // of gRPC-Web: the payload is the trailers
)

// prefixSize is the size of the flag and the length before a message.
const prefixSize = 5

// stream carries messages in envelopes.
type stream struct {
	*request
	body    io.Reader
	packed  compress.Compressor // of the client's messages, or nil
	packing compress.Compressor // of the answers, or nil
	text    io.WriteCloser      // base64 of gRPC-Web, or nil
	single  bool                // the only message was read

	sent bool // the header

	exchange.Waits
}

// connectStream serves a Connect stream.
func (q *request) connectStream(codec string) {
	s := &stream{request: q, body: q.r.Body, Waits: exchange.Waits{Control: q.control}}
	h := q.w.Header()
	h.Set("Content-Type", "application/connect+"+codec)
	if codec != "proto" && codec != "json" {
		q.w.Header().Del("Content-Type")
		http.Error(q.w, "the content type is not served", http.StatusUnsupportedMediaType)
		return
	}
	fault := q.prepare(codec, true)
	if fault == nil {
		fault = q.deadline()
	}
	if fault == nil {
		s.packed, fault = compression(q.r.Header.Get("Connect-Content-Encoding"))
	}
	h.Set("Connect-Accept-Encoding", exchange.Compressions)
	if c, name := exchange.Choose(q.r.Header.Get("Connect-Accept-Encoding")); c != nil {
		s.packing = c
		h.Set("Connect-Content-Encoding", name)
	}
	var trailers anser.Metadata
	if fault == nil {
		trailers, fault = s.run()
	}
	s.end(trailers, fault)
}

// run makes the server run the method, and waits for its end. A method of one message and one reply
// is called, whatever the protocol says of streams.
func (s *stream) run() (trailers anser.Metadata, fault *anser.Error) {
	pc, fault := s.conn()
	if fault == nil {
		fault = exchange.Known(pc, &s.call)
	}
	if fault != nil {
		return nil, fault
	}
	if s.method.Stream {
		exchange.FreeBody(s.control)
		defer exchange.DropBody(s.control)
		// On HTTP/1.1 the client sends everything before it reads: with full duplex, net/http
		// panics when a handler returns before the end of the body.
		return exchange.Stream(s.r.Context(), pc, &s.call, s, nil)
	}
	data, fault := s.only()
	if fault != nil {
		return nil, fault
	}
	s.call.Size = len(data)
	reply, trailers, fault := exchange.Call(s.r.Context(), pc, &s.call, func(_ *anser.ProtocolCall, into any) ([]byte, *anser.Error) {
		return data, s.method.Decode(s.codec, data, into)
	})
	if fault != nil {
		return trailers, fault
	}
	if reply == nil {
		reply = new(emptypb.Empty)
	}
	s.setHeaders(trailers)
	if err := s.Send(reply); err != nil {
		return trailers, exchange.Fault(err)
	}
	return trailers, nil
}

// only returns the one message of a call.
func (s *stream) only() ([]byte, *anser.Error) {
	data, err := s.next()
	if err == io.EOF {
		return nil, anser.Refuse(anser.Unimplemented, "the request has no message")
	}
	if err != nil {
		return nil, exchange.Fault(err)
	}
	if _, err := s.next(); err == nil {
		return nil, anser.Refuse(anser.Unimplemented, "the request has more than one message")
	} else if err != io.EOF {
		return nil, exchange.Fault(err)
	}
	return data, nil
}

// message returns the next message for the handler. A stream on which only the server sends has
// exactly one.
func (s *stream) message() ([]byte, error) {
	if s.method.ClientStream {
		return s.next()
	}
	if s.single {
		return nil, io.EOF
	}
	s.single = true
	data, fault := s.only()
	if fault != nil {
		return nil, fault
	}
	return data, nil
}

// next reads the next message.
func (s *stream) next() ([]byte, error) {
	var prefix [prefixSize]byte
	n, err := io.ReadFull(s.body, prefix[:])
	if err == io.EOF && n == 0 {
		return nil, io.EOF
	}
	if err != nil {
		return nil, exchange.Broken(err)
	}
	size := int64(binary.BigEndian.Uint32(prefix[1:]))
	if size > int64(s.handler.most) {
		return nil, s.tooLarge()
	}
	data := make([]byte, 0, min(size, 4<<10)) // never from a length that is only declared
	memory := exchange.NewHolder(s.r)
	defer memory.Release()
	for int64(len(data)) < size {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
			if fault := memory.Hold(cap(data)); fault != nil {
				return nil, fault
			}
		}
		n, err := s.body.Read(data[len(data):min(int64(cap(data)), size)])
		data = data[:len(data)+n]
		if err != nil && int64(len(data)) < size {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, exchange.Broken(err)
		}
	}
	switch prefix[0] {
	case 0:
		return data, nil
	case flagPacked:
		if s.packed == nil {
			return nil, anser.Refuse(anser.Internal, "a message is compressed, and no header names the compression")
		}
		plain, fault := s.handler.methods.Unpack(s.packed, data)
		if fault != nil {
			return nil, fault
		}
		return plain, nil
	}
	return nil, anser.Refuse(anser.InvalidArgument, "a message has an unknown flag")
}

// Recv reads the next message.
func (s *stream) Recv(msg any) error {
	var data []byte
	err := s.Receive(func() (err error) {
		data, err = s.message()
		return err
	})
	if err != nil {
		return err
	}
	if fault := s.method.Decode(s.codec, data, msg); fault != nil {
		return fault
	}
	return nil
}

// Send writes a message, and flushes it.
func (s *stream) Send(msg any) error {
	return s.Waits.Send(func() error { return s.send(msg) })
}

func (s *stream) send(msg any) error {
	if m, ok := msg.(*emptypb.Empty); ok {
		if md, ok := stubwire.ParseHeaderMessage(m.ProtoReflect().GetUnknown()); ok {
			setFields(s.w.Header(), "", exchange.Fields(md))
			return s.flush()
		}
	}
	data, fault := s.method.Encode(s.codec, make([]byte, prefixSize, 512), msg)
	if fault != nil {
		return fault
	}
	flag := byte(0)
	if s.packing != nil && len(data) > packAbove {
		if packed, err := s.packing.Append(make([]byte, prefixSize), data[prefixSize:]); err == nil && len(packed) < len(data) {
			data, flag = packed, flagPacked
		}
	}
	return s.write(flag, data)
}

// write writes an envelope, whose prefix data has room for.
func (s *stream) write(flag byte, data []byte) error {
	data[0] = flag
	binary.BigEndian.PutUint32(data[1:], uint32(len(data)-prefixSize))
	out := io.Writer(s.w)
	if s.text != nil {
		out = s.text
	}
	if _, err := out.Write(data); err != nil {
		return err
	}
	return s.flush()
}

func (s *stream) flush() error {
	s.sent = true
	return s.control.Flush()
}

// setHeaders sets the headers of the handler, unless the header was sent.
func (s *stream) setHeaders(trailers anser.Metadata) {
	if headers, _ := exchange.Trailers(trailers); !s.sent {
		setFields(s.w.Header(), "", headers)
	}
}

// end ends a Connect stream.
func (s *stream) end(trailers anser.Metadata, fault *anser.Error) {
	var last struct {
		Error    *errorJSON          `json:"error,omitempty"`
		Metadata map[string][]string `json:"metadata,omitempty"`
	}
	if fault != nil {
		last.Error = errorOf(fault)
	}
	s.setHeaders(trailers)
	_, fields := exchange.Trailers(trailers)
	if fault != nil {
		fields = append(fields, exchange.RetryFields(fault)...)
	}
	for _, f := range fields {
		if last.Metadata == nil {
			last.Metadata = make(map[string][]string)
		}
		last.Metadata[f.Name] = append(last.Metadata[f.Name], f.Value)
	}
	data, _ := json.Marshal(last)
	s.last(flagEnd, append(make([]byte, prefixSize), data...))
}

// last writes the last envelope.
func (s *stream) last(flag byte, data []byte) {
	s.control.SetWriteDeadline(time.Now().Add(endTime))
	s.write(flag, data)
	s.control.SetWriteDeadline(time.Time{})
}

// endTime bounds how long the end of a stream may take to be written.
const endTime = 10 * time.Second
