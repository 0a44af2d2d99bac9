// Package events sends the same bytes to all viewers of the console: each event is made once.
package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// MaxViewers is the number of viewers at a time.
	MaxViewers = 256
	room       = 16               // events for a viewer that reads slowly
	writeBound = 10 * time.Second // for one event
	pingEvery  = 10 * time.Second
)

// ErrTooMany means that there are [MaxViewers] viewers.
var ErrTooMany = errors.New("too many viewers")

// Hub has viewers by topic. Its methods are safe for concurrent use. The zero value is ready.
type Hub struct {
	mu      sync.Mutex // guards the fields below
	viewers map[*Viewer]struct{}
	ended   bool
}

// Viewer gets events. It ends by Hub.Leave, or by itself if it does not keep up.
type Viewer struct {
	topics []string
	events chan []byte
	done   chan struct{} // closed when it ends
}

// Join returns a viewer of topics.
func (h *Hub) Join(topics ...string) (*Viewer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.viewers) >= MaxViewers || h.ended {
		return nil, ErrTooMany
	}
	if h.viewers == nil {
		h.viewers = make(map[*Viewer]struct{})
	}
	v := &Viewer{topics: topics, events: make(chan []byte, room), done: make(chan struct{})}
	h.viewers[v] = struct{}{}
	return v, nil
}

// Leave ends a viewer.
func (h *Hub) Leave(v *Viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaveLocked(v)
}

func (h *Hub) leaveLocked(v *Viewer) {
	if _, ok := h.viewers[v]; ok {
		delete(h.viewers, v)
		close(v.done)
	}
}

// Close ends all viewers.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for v := range h.viewers {
		h.leaveLocked(v)
	}
}

// Topics returns the topics that have viewers, with their number.
func (h *Hub) Topics() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]int)
	for v := range h.viewers {
		for _, t := range v.topics {
			out[t]++
		}
	}
	return out
}

// Len returns the number of viewers.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.viewers)
}

// Send sends an event to all viewers of a topic. A viewer that has not read the last ones ends: it
// begins again with what is current. The bytes must not change afterwards.
func (h *Hub) Send(topic string, event []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.viewers {
		for _, t := range v.topics {
			if t != topic {
				continue
			}
			select {
			case v.events <- event:
			default:
				h.leaveLocked(v)
			}
			break
		}
	}
}

// Event returns an event with a line of JSON as its data.
func Event(name string, data []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: ", name)
	b.Write(bytes.TrimSpace(data))
	b.WriteString("\n\n")
	return b.Bytes()
}

// again tells a browser to ask for the events again, soon: its request has reached its deadline.
// The browser keeps that time for all that follows, so that the next request begins with later: a
// console that is down for a while would be asked ten times a second.
var (
	again = append([]byte("retry: 100\n"), Event("again", []byte(`{}`))...)
	later = []byte("retry: 3000\n\n")
)

// Serve sends the first events, and then those of the viewer until it ends or the request is done.
// At the deadline of the request, if it has one, it asks the viewer to come back. It calls still
// now and then while the viewer is there.
func (v *Viewer) Serve(w http.ResponseWriter, r *http.Request, still func(), first ...[]byte) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	send := func(event []byte) bool {
		control.SetWriteDeadline(time.Now().Add(writeBound)) // not every transport can
		_, err := w.Write(event)
		return err == nil && control.Flush() == nil
	}
	if _, ok := r.Context().Deadline(); ok {
		first = append([][]byte{later}, first...)
	}
	for _, e := range first {
		if !send(e) {
			return
		}
	}
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case e := <-v.events:
			if !send(e) {
				return
			}
		case <-ping.C:
			still()
			if !send(Event("ping", []byte(`{}`))) {
				return
			}
		case <-v.done:
			return
		case <-r.Context().Done():
			if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
				send(again)
			}
			return
		}
	}
}
