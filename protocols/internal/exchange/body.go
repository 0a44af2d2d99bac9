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

// BoundBody bounds the time in which the body of a request may arrive. Over HTTP/1.1, net/http reads
// the rest of a body that a handler has not read before it answers.
func BoundBody(control *http.ResponseController) { control.SetReadDeadline(time.Now().Add(bodyTime)) }

// FreeBody takes back BoundBody, for streams.
func FreeBody(control *http.ResponseController) { control.SetReadDeadline(time.Time{}) }

// DropBody gives the client a moment to notice the answer to a request whose body is not read.
func DropBody(control *http.ResponseController) { control.SetReadDeadline(time.Now().Add(time.Second)) }

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
	defer func() {
		if fault != nil {
			h.Release(held)
			held = 0
		}
	}()
	data := make([]byte, 0, 512) // never from a length that is only declared
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
			if more := cap(data) - held; cap(data) > uncounted {
				if !h.Hold(more) {
					return nil, held, anser.Refuse(anser.ResourceExhausted, "the server has no memory for the request (anser.MaxMemory)")
				}
				held += more
			}
		}
		n, err := r.Read(data[len(data):cap(data)])
		if data = data[:len(data)+n]; len(data) > most {
			return nil, held, TooLarge(most)
		}
		if err == io.EOF {
			return data, held, nil
		}
		if err != nil {
			return nil, held, Broken(err)
		}
	}
}

// TooLarge is the error of a message over the limit.
func TooLarge(most int) *anser.Error {
	return anser.Refuse(anser.ResourceExhausted, "the message is over the server's limit of %d bytes (anser.MaxMessage)", most)
}

// Broken returns the error of a body that did not arrive.
func Broken(err error) *anser.Error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return anser.Refuse(anser.DeadlineExceeded, "the request did not arrive in time")
	case errors.Is(err, context.Canceled):
		return anser.Refuse(anser.Canceled, "the client is gone")
	}
	return anser.Refuse(anser.InvalidArgument, "the request is cut off: %v", err)
}
