// Package h2 has the HTTP/2 frames (RFC 9113), and its server's side for one connection at a
// time. The goroutine that reads the connection parses frames and calls the receivers of requests;
// any goroutine may write, and what several of them write at the same time leaves in one system
// call.
package h2

import (
	"fmt"
	"time"
)

// Preface is what a client sends first.
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// The types of frames.
const (
	FrameData byte = iota
	FrameHeaders
	FramePriority
	FrameReset
	FrameSettings
	FramePushPromise
	FramePing
	FrameGoAway
	FrameWindowUpdate
	FrameContinuation
)

// The flags of frames.
const (
	FlagEndStream  = 1 // of DATA and HEADERS
	FlagAck        = 1 // of SETTINGS and PING
	FlagEndHeaders = 4
	FlagPadded     = 8
	FlagPriority   = 32
)

// The settings.
const (
	SettingTableSize uint16 = iota + 1
	SettingPush
	SettingMaxStreams
	SettingWindow
	SettingMaxFrame
	SettingMaxHeader
	_
	// SettingConnectProtocol says that CONNECT with :protocol is served (RFC 8441).
	SettingConnectProtocol
)

// Code is an error code of HTTP/2.
type Code uint32

// The codes.
const (
	NoError Code = iota
	ProtocolError
	InternalError
	FlowControlError
	SettingsTimeout
	StreamClosed
	FrameSizeError
	RefusedStream
	Cancel
	CompressionError
	ConnectError
	EnhanceYourCalm
	InadequateSecurity
	HTTP11Required
)

var codeNames = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// String returns the name of the code in RFC 9113.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint32(c))
}

// ConnError is a fault of the client that ends the connection.
type ConnError struct {
	Code Code
	Text string
}

func (e *ConnError) Error() string { return fmt.Sprintf("HTTP/2: %s: %s", e.Code, e.Text) }

func connError(code Code, format string, args ...any) error {
	return &ConnError{code, fmt.Sprintf(format, args...)}
}

// StreamError is a fault that ends one stream, or its end by the client.
type StreamError struct {
	Code Code
	Text string
}

func (e *StreamError) Error() string { return fmt.Sprintf("HTTP/2: %s: %s", e.Code, e.Text) }

func streamError(code Code, text string) *StreamError { return &StreamError{code, text} }

// Sizes in bytes.
const (
	HeaderSize = 9        // of a frame's header
	MaxFrame   = 16 << 10 // the payload of a frame that is accepted, and sent
	MaxWindow  = 1<<31 - 1
	// InitialWindow is the window of a connection or stream before it is changed.
	InitialWindow = 1<<16 - 1
)

// Config configures connections.
type Config struct {
	// MaxStreams is the number of streams that a client may have open at once.
	MaxStreams int
	// MaxHeader is the size of a header in bytes, as HPACK counts it.
	MaxHeader int
	// Window and ConnWindow are the bytes that a client may send before they are consumed, on a
	// stream and on the connection.
	Window, ConnWindow int
	// Stall is how long a write may take, and about half of how long a body that must be complete
	// may make no progress.
	Stall time.Duration
	// FrameTime is how long the rest of a frame or header may take to arrive; 0 means Stall.
	FrameTime time.Duration
	// KeepaliveIdle is the silence after which a client is sent a PING, and KeepaliveAnswer how
	// long it may take to answer. 0 means that it is sent none.
	KeepaliveIdle, KeepaliveAnswer time.Duration
	// MinPing is the least time between two PING frames of a client. The third one that comes
	// earlier, without an answer of the server in between, ends the connection.
	MinPing time.Duration
	// PingWithoutStream allows PING frames while no stream is open.
	PingWithoutStream bool
	// Request is called by the reader goroutine with the header of each request, and must not wait.
	// It may answer at once, and then return nil. end says that there is no body.
	Request func(st *Stream, r *Request, end bool) Receiver
	// Hold counts bytes that the connection holds for requests and answers beyond a few KiB each,
	// and reports whether there is room for them. Release takes them back. Both are nil if nothing
	// is counted, and must not wait.
	Hold    func(n int) bool
	Release func(n int)
	// Drained is called once by a goroutine of its own after GoAway, when the client has heard of
	// it and no stream is open. nil: nothing is called.
	Drained func()
}

// Receiver gets the body of a request. Its methods are called by the reader goroutine and must not
// wait, except that Reset may be called by any goroutine.
type Receiver interface {
	// Data gets a part of the body, which is valid until it returns. The receiver gives the bytes
	// back to the client with [Stream.Consume]. end says that it was the last part.
	Data(p []byte, end bool)
	// Reset is called once if the stream ends before both sides have ended it.
	Reset(err error)
	// Incomplete reports whether the receiver needs more of the body before it can do anything. Any
	// goroutine may call it.
	Incomplete() bool
}
