package record

import (
	"encoding/json"
	"time"
)

// Call is a recorded call.
type Call struct {
	// Method is the full name.
	Method string `json:"method"`
	// At is when the call arrived. The times of a recorder are those of the wall clock at its
	// beginning and what has passed since: a clock that jumps does not change them.
	At time.Time `json:"at"`
	// Took is how long the call was in the interceptors and the handler.
	Took time.Duration `json:"took_ns"`
	// Codec is the name of the codec that the caller used; it is empty for a stream.
	Codec string `json:"codec,omitempty"`
	// Timeout is how much time the caller had left, or 0 for no limit.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Metadata are the keys of Options.Metadata that the call had.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Request and Reply are JSON. Of a stream, a oneway call and a call that failed, Reply is nil;
	// a stream has Messages in place of both.
	Request json.RawMessage `json:"request,omitempty"`
	Reply   json.RawMessage `json:"reply,omitempty"`
	// Code is the result: "ok", or the code of the error.
	Code   string `json:"code"`
	Oneway bool   `json:"oneway,omitempty"`
	Stream bool   `json:"stream,omitempty"`
	// Messages are those of a stream, in their order.
	Messages []Message `json:"messages,omitempty"`
	// Cut says that the stream had more messages than were recorded.
	Cut bool `json:"cut,omitempty"`
	// Redacted are the paths of the values that were replaced, each once:
	// "request.user.password", "reply.items[*].token", "sent.token" and "received.token" for the
	// messages of a stream.
	Redacted []string `json:"redacted,omitempty"`
}

// Message is a message of a stream.
type Message struct {
	// After is the time since the stream arrived.
	After time.Duration `json:"after_ns"`
	// Sent says that the server sent it; the client sent the others.
	Sent bool            `json:"sent,omitempty"`
	JSON json.RawMessage `json:"json"`
}
