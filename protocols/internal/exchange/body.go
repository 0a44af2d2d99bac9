package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

const (
	bodyTime = 30 * time.Second // for the body of a request of one message
	// uncounted is the size up to which a body does not count for the memory of the server.
	uncounted = 4 << 10
)

// BoundBody bounds the time in which the body of a request may arrive. Over HTTP/1.1, net/http
// reads the rest of a body that a handler has not read before it answers. When a body is complete,
// or there is none, net/http waits for the end of the connection without a deadline, and one that
// is set then would end the context of the call.
func BoundBody(r *http.Request, control *http.ResponseController) {
	if r.Body != http.NoBody {
		control.SetReadDeadline(time.Now().Add(bodyTime))
	}
}

// FreeBody takes back BoundBody, for streams.
func FreeBody(control *http.ResponseController) { control.SetReadDeadline(time.Time{}) }

// DropBody gives the client a moment to notice the answer to a request whose body is not read.
func DropBody(control *http.ResponseController) { control.SetReadDeadline(time.Now().Add(time.Second)) }

// BoundAnswer bounds the time in which the client may take an answer of n bytes that is complete.
// Over HTTP/1.1 the bound ends with the request.
func BoundAnswer(control *http.ResponseController, n int) {
	control.SetWriteDeadline(time.Now().Add(answerTime + time.Duration(n/answerRate)*time.Second))
}

const (
	answerTime = 10 * time.Second
	answerRate = 32 << 10 // bytes a second
)

// ReadBody reads the body of a request of one message. What it holds before the message is complete
// counts for the memory of the server.
func ReadBody(r *http.Request, control *http.ResponseController, most int) (_ []byte, fault *anser.Error) {
	defer func() {
		if fault != nil {
			DropBody(control)
		}
	}()
	if r.ContentLength > int64(most) {
		return nil, TooLarge(most)
	}
	h := host.FromContext(r.Context())
	data, held, fault := ReadMessage(r.Body, h, most)
	h.Release(held)
	return data, fault
}

// ReadMessage reads a message to its end. It counts held bytes for the memory of the server, which
// the caller releases when it needs the message no more.
func ReadMessage(r io.Reader, h *host.Conn, most int) (message []byte, held int, fault *anser.Error) {
	memory := &Holder{conn: h}
	defer func() {
		if fault != nil {
			memory.Release()
		}
		held = memory.held
	}()
	data := make([]byte, 0, 512) // never from a length that is only declared
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
			if fault := memory.Hold(cap(data)); fault != nil {
				return nil, 0, fault
			}
		}
		n, err := r.Read(data[len(data):cap(data)])
		if data = data[:len(data)+n]; len(data) > most {
			return nil, 0, TooLarge(most)
		}
		if err == io.EOF {
			return data, 0, nil
		}
		if err != nil {
			return nil, 0, Broken(err)
		}
	}
}

// Holder counts what a request holds for the memory of the server. It is not safe for concurrent
// use.
type Holder struct {
	conn *host.Conn
	held int
}

// NewHolder returns one that holds nothing.
func NewHolder(r *http.Request) *Holder { return &Holder{conn: host.FromContext(r.Context())} }

// Hold counts a buffer of size bytes, in place of what was counted before if that was less.
func (m *Holder) Hold(size int) *anser.Error {
	if size <= uncounted || size <= m.held {
		return nil
	}
	if !m.conn.Hold(size - m.held) {
		return errNoMemory
	}
	m.held = size
	return nil
}

// Release takes back what was counted.
func (m *Holder) Release() {
	if m.held > 0 {
		m.conn.Release(m.held)
		m.held = 0
	}
}

var errNoMemory = anser.Refuse(anser.ResourceExhausted, "the server has no memory for the request (anser.MaxMemory)")

// TooLarge is the error of a message over the limit.
func TooLarge(most int) *anser.Error {
	return refuse(anser.ResourceExhausted, "%w of %d bytes (anser.MaxMessage)", anser.ErrTooLarge, most)
}

// refuse is anser.Refuse that wraps the operand of %w.
func refuse(code anser.Code, format string, args ...any) *anser.Error {
	e := anser.Errorf(code, format, args...)
	e.Outcome = anser.Refused
	return e
}

var errSlow = errors.New("the request did not arrive in time")

// Broken returns the error of a body that did not arrive.
func Broken(err error) *anser.Error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(anser.DeadlineExceeded, "%w", errSlow)
	case errors.Is(err, context.Canceled):
		return anser.Refuse(anser.Canceled, "the client is gone")
	}
	return anser.Refuse(anser.InvalidArgument, "the request is cut off: %v", err)
}
