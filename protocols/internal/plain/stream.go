package plain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// stream carries the messages of a stream: one or several in the body, and those of the handler as
// events, lines or the elements of an array. Each is flushed when it is sent.
type stream struct {
	*request
	form  string // the content type of the answer
	raw   bool   // the messages are bytes of the answer as they are (google.api.HttpBody)
	lines *bufio.Reader
	only  []byte // the message of a method whose client sends one; nil once it was received
	first bool   // nothing was sent yet
	id    exchange.EventID

	exchange.Waits
}

// stream serves a stream.
func (q *request) stream(pc *anser.ProtocolConn, lines bool) {
	s := &stream{request: q, raw: q.route != nil && q.route.RawReply(), first: true, Waits: exchange.Waits{Control: q.control}}
	var ok bool
	if s.form, ok = exchange.Prefer(q.r.Header.Values("Accept"), typeLines, typeEvents, typeJSON); !ok && !s.raw {
		q.notAcceptable(typeLines, typeEvents, typeJSON)
		return
	}
	q.call.Values = exchange.WithEventID(q.call.Values, &s.id)
	if lines {
		s.lines = bufio.NewReader(q.r.Body)
		exchange.FreeBody(q.control)
		defer exchange.DropBody(q.control)
	} else {
		data, fault := q.read()
		if fault != nil {
			q.fail(fault, nil)
			return
		}
		s.only = data
		q.call.Size = len(data) + q.addressSize()
	}
	trailers, fault := exchange.Stream(q.r.Context(), pc, &q.call, s, nil)
	q.control.SetWriteDeadline(time.Now().Add(endTime))
	s.end(trailers, fault)
	q.control.SetWriteDeadline(time.Time{})
}

// endTime bounds how long the end of a stream may take to be written.
const endTime = 10 * time.Second

// Recv returns the next message of the client.
func (s *stream) Recv(msg any) error {
	if s.lines == nil {
		data := s.only
		if s.only = nil; data == nil {
			return io.EOF
		}
		data, fault := s.unpack(data)
		if fault != nil {
			return fault
		}
		return asError(s.decode(data, msg))
	}
	var line []byte
	err := s.Receive(func() (err error) {
		line, err = s.line()
		return err
	})
	if err != nil {
		return err
	}
	return asError(s.decode(line, msg))
}

func asError(e *anser.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// line returns the next line that is not empty.
func (s *stream) line() ([]byte, error) {
	var line []byte
	memory := exchange.NewHolder(s.r)
	defer memory.Release()
	for {
		part, err := s.lines.ReadSlice('\n')
		if len(line)+len(part) > s.handler.most {
			return nil, s.tooLarge()
		}
		line = append(line, part...)
		if fault := memory.Hold(cap(line)); fault != nil {
			return nil, fault
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && err != io.EOF:
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Send sends a message, and flushes it.
func (s *stream) Send(msg any) error {
	data, contentType, fault := s.encode(msg)
	if fault != nil {
		return fault
	}
	if s.raw && s.first {
		s.form = contentType
	}
	return s.Waits.Send(func() error { return s.write("", data) })
}

// write writes a message, or an event of another kind.
func (s *stream) write(event string, data []byte) error {
	var b bytes.Buffer
	if s.first {
		h := s.w.Header()
		h.Set("Content-Type", s.form)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // proxies must not hold the messages back
	}
	switch {
	case s.raw:
		b.Write(data)
	case s.form == typeEvents:
		if event != "" {
			b.WriteString("event: " + event + "\n")
		} else if id, ok := s.id.Take(); ok {
			b.WriteString("id: " + id + "\n")
		}
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			b.WriteString("data: ")
			b.Write(line)
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	case s.form == typeJSON:
		b.WriteByte(",["[btoi(s.first)])
		b.Write(data)
	default:
		b.Write(data)
		b.WriteByte('\n')
	}
	s.first = false
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return err
	}
	return s.control.Flush()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// end ends the answer. An error before the first message has a status of its own; after it, it is
// the last message: an object with the member "error".
func (s *stream) end(trailers anser.Metadata, fault *anser.Error) {
	if fault != nil && s.first {
		s.fail(fault, trailers)
		return
	}
	if fault != nil && s.raw {
		panic(http.ErrAbortHandler) // the answer has no place for an error, and must not look complete
	}
	if s.first {
		exchange.SetTrailers(s.w.Header(), trailers)
	} else {
		s.sendTrailers(trailers)
	}
	if s.raw {
		return
	}
	if fault != nil {
		p := exchange.ProblemOf(exchange.HTTPStatusOf(fault), fault)
		if s.form == typeEvents {
			data, _ := json.Marshal(p)
			s.write("error", data)
		} else {
			data, _ := json.Marshal(map[string]any{"error": p})
			s.write("", data)
		}
	}
	switch {
	case s.form == typeJSON && s.first:
		s.w.Header().Set("Content-Type", typeJSON)
		io.WriteString(s.w, "[]")
	case s.form == typeJSON:
		io.WriteString(s.w, "]")
	case s.form == typeEvents && s.first && s.r.Header.Get("Last-Event-ID") != "":
		s.w.WriteHeader(http.StatusNoContent) // there is nothing more, and a browser connects no more
	case s.form == typeEvents && fault == nil:
		s.write("end", []byte("{}")) // a browser would connect again without it
	case s.first:
		s.w.Header().Set("Content-Type", s.form)
	}
}
