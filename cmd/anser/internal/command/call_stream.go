package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/introspect"
	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/internal/rawjson"
)

type jsonStream = anser.Stream[json.RawMessage, json.RawMessage]

// streamEnd is the last object that --json prints for a stream.
type streamEnd struct {
	Error    *callError     `json:"error,omitempty"`
	Trailers anser.Metadata `json:"trailers,omitempty"`
	Sent     int64          `json:"sent"`
	Received int            `json:"received"`
	Micros   int64          `json:"time_us"`
}

// converse opens a stream, sends the messages, and prints the replies until the server ends it.
func (f *callFlags) converse(ctx context.Context, s streams, to *callee, messages []string) error {
	if f.oneway || f.idempotent {
		return usagef("--oneway and --idempotent are for calls: %s is a stream", to.method)
	}
	if to.info != nil && introspect.StreamKind(to.info) == "server stream" && len(messages) == 0 {
		messages = []string{"{}"} // as for a call: its one request
	}
	if to.silent != nil { // opening the stream would take as long as the client looks for an instance
		to.silent.Method = to.method
		return f.endStream(s, to, to.silent, streamEnd{}, nil)
	}
	interrupted := ctx
	var cancel context.CancelFunc
	if f.endless {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
	}
	defer cancel()
	began := time.Now()
	st, err := anser.Open[json.RawMessage, json.RawMessage](ctx, to.client, to.method, anser.Codec(rawjson.Codec{}))
	if err != nil {
		return f.endStream(s, to, err, streamEnd{}, nil)
	}
	var sent atomic.Int64
	mistake := make(chan error, 1)
	go func() {
		if err := f.sendAll(to, st, messages, s.in, &sent); err != nil {
			mistake <- err
			cancel() // the server need not continue
		}
	}()
	end := streamEnd{}
	end.Received, err = f.printAll(s, st)
	end.Trailers, end.Micros = st.Trailer(), time.Since(began).Microseconds()
	cancelled := interrupted.Err() != nil
	cancel()
	st.Close()
	end.Sent = sent.Load()
	if cancelled && f.endless {
		err = nil // this is how the user ends it
	}
	select {
	case err = <-mistake:
	default: // the goroutine may still be reading an input that is no longer needed
	}
	return f.endStream(s, to, err, end, st)
}

// endStream reports the end of a stream.
func (f *callFlags) endStream(s streams, to *callee, err error, end streamEnd, st *jsonStream) error {
	var failed *anser.Error
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	if f.json {
		if failed != nil {
			end.Error = describeError(failed)
		}
		if err := printJSONLine(s.out, end); err != nil {
			return err
		}
	}
	if st != nil {
		f.printTrailers(s, end.Trailers)
	}
	return f.end(to.client, failed)
}

// printAll prints the messages of the server, one per line, and returns their number.
func (f *callFlags) printAll(s streams, st *jsonStream) (n int, err error) {
	for message, err := range st.All() {
		if err != nil {
			return n, err
		}
		var line bytes.Buffer
		if json.Compact(&line, *message) != nil {
			line.Write(*message)
		}
		line.WriteByte('\n')
		if f.json {
			err = printJSONLine(s.out, callReply{*message})
		} else {
			_, err = s.out.Write(printable.JSON(line.Bytes()))
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// callReply is the output of --json for a message of a stream.
type callReply struct {
	Reply json.RawMessage `json:"reply"`
}

// sendAll sends the messages on the command line, and closes this side of the stream. The error is
// that of a message that cannot be sent: the end of the stream shows when messages are received.
func (f *callFlags) sendAll(to *callee, st *jsonStream, messages []string, in io.Reader, sent *atomic.Int64) (err error) {
	send := func(message json.RawMessage) error {
		if err := to.check(f, message); err != nil {
			return err
		}
		if err := st.Send(&message); err != nil {
			if failed, ok := errors.AsType[*anser.Error](err); ok && failed.Phase == anser.PhaseEncode {
				return failed // of this message: the stream goes on, and shows nothing of it
			}
			return errStreamOver
		}
		sent.Add(1)
		return nil
	}
	for _, typed := range messages {
		switch {
		case typed == "-":
			err = eachMessage("the standard input", in, send)
		case strings.HasPrefix(typed, "@"):
			err = eachOfFile(typed[1:], send)
		default:
			err = send(json.RawMessage(typed))
		}
		if errors.Is(err, errStreamOver) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	st.CloseSend() //nits:ignore errcheck it shows where messages are received
	return nil
}

// errStreamOver ends the sending of messages that are no longer needed.
var errStreamOver = errors.New("the stream is over")

func eachOfFile(name string, send func(json.RawMessage) error) error {
	file, err := os.Open(name)
	if err != nil {
		return usagef("read the messages: %w", err)
	}
	defer file.Close()
	return eachMessage(name, file, send)
}

// eachMessage reads consecutive JSON texts.
func eachMessage(name string, in io.Reader, send func(json.RawMessage) error) error {
	d := json.NewDecoder(in)
	for n := 1; ; n++ {
		var message json.RawMessage
		switch err := d.Decode(&message); {
		case err == io.EOF:
			return nil
		case err != nil:
			return usagef("message %d of %s is not JSON: %v: write one JSON text a line", n, name, err)
		}
		if err := send(message); err != nil {
			if errors.Is(err, errStreamOver) {
				return err
			}
			return fmt.Errorf("message %d of %s: %w", n, name, err)
		}
	}
}
