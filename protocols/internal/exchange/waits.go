package exchange

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
)

// Waits stops the Send and Recv of a stream over a handler of net/http. Deadlines stay with the
// connection, so only a function that waits is interrupted.
type Waits struct {
	Control *http.ResponseController

	mu        sync.Mutex // guards the fields below
	why       *anser.Error
	receiving bool
	sending   bool
}

// Receive calls f for a Recv.
func (w *Waits) Receive(f func() error) error { return w.run(&w.receiving, f) }

// Send calls f for a Send.
func (w *Waits) Send(f func() error) error { return w.run(&w.sending, f) }

// run calls f unless the stream was stopped, and returns why it was stopped in place of what that
// causes.
func (w *Waits) run(waits *bool, f func() error) error {
	w.mu.Lock()
	why := w.why
	*waits = why == nil
	w.mu.Unlock()
	if why != nil {
		return why
	}
	err := f()
	w.mu.Lock()
	defer w.mu.Unlock()
	*waits = false
	if err != nil && err != io.EOF && w.why != nil {
		return w.why
	}
	return err
}

// Stop makes both return why; see [anser.ProtocolStream].
func (w *Waits) Stop(why *anser.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		w.why = why
	}
	if w.sending {
		w.Control.SetWriteDeadline(time.Now())
	}
	if w.sending || w.receiving { // over HTTP/1.1 the first Send reads the rest of the body
		w.Control.SetReadDeadline(time.Now())
	}
}
