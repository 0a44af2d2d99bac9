package site

import (
	"io"
	"log"
	"net/http"
	"time"
)

// Limits of a request and its answer. The routes for events and streams set their own.
const (
	headerWithin = 10 * time.Second
	bodyWithin   = 30 * time.Second
	answerWithin = 2 * time.Minute
)

// patient bounds the times in which a peer must send a body and take an answer: without bounds each
// slow peer would keep a goroutine.
func patient(next http.Handler, forBody time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		control.SetWriteDeadline(time.Now().Add(answerWithin)) //nits:ignore errcheck tests have writers without deadlines
		if r.Body != nil && r.Body != http.NoBody {
			control.SetReadDeadline(time.Now().Add(forBody)) //nits:ignore errcheck as above
			// While the handler runs, the server goes on to read, to notice that the peer leaves:
			// the deadline must not end that.
			r.Body = &timed{r.Body, func() { control.SetReadDeadline(time.Time{}) }} //nits:ignore errcheck as above
		}
		next.ServeHTTP(w, r)
	})
}

// timed is a body that calls ended when all of it was read.
type timed struct {
	io.ReadCloser
	ended func()
}

// Read implements io.Reader.
func (t *timed) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err == io.EOF {
		t.ended()
	}
	return n, err
}

// silent drops what net/http says about single connections.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }
