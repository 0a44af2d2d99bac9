package change

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/internal/rawjson"
)

type jsonStream = anser.Stream[json.RawMessage, json.RawMessage]

// streamLine is a line of the answer of api/call/stream: a reply, or the end.
type streamLine struct {
	Reply json.RawMessage `json:"reply,omitempty"`
	End   *streamEnd      `json:"end,omitempty"`
}

type streamEnd struct {
	Error    *callError     `json:"error,omitempty"`
	Outcome  string         `json:"outcome"`
	Sent     int64          `json:"sent"`
	Received int64          `json:"received"`
	Trailers anser.Metadata `json:"trailers,omitempty"`
	Time     time.Duration  `json:"time"`
}

// maxMessages is the maximum size of all messages that a viewer sends on a stream, in bytes.
const maxMessages = 16 << 20

// serveStream opens a stream. The first line of the body is a callRequest, each further one a
// message; the end of the body closes the client's side.
func (c *Changes) serveStream(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	control.EnableFullDuplex()           //nits:ignore errcheck HTTP/2 has no other way
	control.SetReadDeadline(time.Time{}) //nits:ignore errcheck messages may come late; tests have writers without deadlines
	// The end of the session ends a wait for a message, too.
	stop := context.AfterFunc(r.Context(), func() { control.SetReadDeadline(time.Now()) }) //nits:ignore errcheck as above
	defer stop()
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMessages))
	var q callRequest
	if err := body.Decode(&q); err != nil {
		if over := c.over(r); over != nil {
			asProblem(over).Write(w)
			return
		}
		mistake("the first line cannot be read: %v", err).Write(w)
		return
	}
	if err := errors.Join(c.over(r), q.check(maxStream)); err != nil {
		asProblem(err).Write(w)
		return
	}
	client, err := c.dial(r.Context(), &q)
	if err != nil {
		asProblem(err).Write(w)
		return
	}
	defer client.Close()
	begun, err := c.begin(r, audit.Entry{Action: "call", Service: q.Service, Subject: q.Method, Text: "a stream"})
	if err != nil {
		asProblem(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	ctx, cancel := context.WithTimeout(anser.WithMetadata(r.Context(), q.metadata(access.From(r.Context()).Name)), q.Timeout)
	defer cancel()
	end, err := converse(ctx, w, client, q.Method, body)
	line(w, streamLine{End: end})
	c.end(begun, "", err) //nits:ignore errcheck the answer has been sent
}

// converse sends the messages of a body, and writes the replies as lines.
func converse(ctx context.Context, w http.ResponseWriter, client *anser.Client, method string, body *json.Decoder) (*streamEnd, error) {
	began := time.Now()
	end := &streamEnd{Outcome: "ok"}
	st, err := anser.Open[json.RawMessage, json.RawMessage](ctx, client, method, anser.Codec(rawjson.Codec{}))
	if err != nil {
		end.Error, end.Outcome, end.Time = errorOf(err), anser.OutcomeOf(err).String(), time.Since(began)
		return end, err
	}
	var sent atomic.Int64
	done := make(chan error, 1)
	go func() {
		err := sendAll(st, body, &sent)
		done <- err
		if _, wrong := errors.AsType[*respond.Error](err); wrong {
			st.Close() // the server need not continue
		}
	}()
	for message, err2 := range st.All() {
		if err = err2; err != nil {
			break
		}
		end.Received++
		if err = line(w, streamLine{Reply: *message}); err != nil {
			break // the viewer has left
		}
	}
	end.Trailers, end.Time = st.Trailer(), time.Since(began)
	st.Close()
	select {
	case wrong := <-done:
		if p, ok := errors.AsType[*respond.Error](wrong); ok {
			err = p
		}
	default: // the viewer may send more, which nothing needs; the end of the request ends it
	}
	end.Sent = sent.Load()
	if err != nil {
		end.Error, end.Outcome = errorOf(err), anser.OutcomeOf(err).String()
	}
	return end, err
}

// sendAll sends messages until the body ends. The error is a *respond.Error for a message that is
// not JSON, and another one if the stream is over, which shows where messages are received.
func sendAll(st *jsonStream, body *json.Decoder, sent *atomic.Int64) error {
	for {
		var message json.RawMessage
		err := body.Decode(&message)
		if err == io.EOF {
			return st.CloseSend()
		}
		if err != nil {
			return mistake("message %d is not JSON: %v", sent.Load()+1, err)
		}
		if err := st.Send(&message); err != nil {
			return err
		}
		sent.Add(1)
	}
}

// lineWithin is how long a viewer may take to read a line.
const lineWithin = 30 * time.Second

// line writes a line at once.
func line(w http.ResponseWriter, v streamLine) error {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(lineWithin)) //nits:ignore errcheck tests have writers without deadlines
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
