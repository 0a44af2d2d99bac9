package h2

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Site is what serves requests with a handler of net/http.
type Site struct {
	Handler http.Handler
	// Context is the context that those of the requests are derived from.
	Context context.Context
	TLS     *tls.ConnectionState
}

// ProtocolHeader is the header with the protocol of an extended CONNECT (RFC 8441), as in net/http.
const ProtocolHeader = ":protocol"

// exchange is a request that a handler of net/http serves.
type exchange struct {
	st     *Stream
	req    *http.Request
	cancel context.CancelFunc

	// Of the handler's goroutine.
	header  http.Header
	head    *Header // once it was made
	noBody  bool    // the answer has none
	out     []byte  // not sent yet
	started bool

	mu      sync.Mutex // guards the fields below
	cond    sync.Cond
	body    bytes.Buffer
	ended   error // after body
	by      time.Time
	timer   *time.Timer
	stopped bool      // the handler has returned
	sendBy  time.Time // of sends and of the answer; zero: none

	sending     context.Context // of sends; replaced by SetWriteDeadline
	stopSending context.CancelFunc
}

// Serve makes the handler serve the request.
func (s *Site) Serve(st *Stream, r *Request, end bool) Receiver {
	ctx, cancel := context.WithCancel(s.Context)
	x := &exchange{st: st, header: make(http.Header), cancel: cancel}
	x.cond.L = &x.mu
	target := r.Path
	tunnel := r.Method == http.MethodConnect && r.Protocol == ""
	if tunnel {
		target = r.Authority
	}
	u := &url.URL{Host: r.Authority}
	if !tunnel {
		var err error
		if u, err = url.ParseRequestURI(r.Path); err != nil {
			cancel()
			st.answerAtOnce("400")
			return nil
		}
	}
	x.req = &http.Request{
		Method: r.Method, URL: u, Proto: "HTTP/2.0", ProtoMajor: 2, Host: r.Authority, RequestURI: target,
		Header: make(http.Header, len(r.Header)+4), ContentLength: r.ContentLength, TLS: s.TLS, Body: http.NoBody,
		RemoteAddr: st.conn.nc.RemoteAddr().String(),
	}
	for _, f := range r.Header {
		if f.Name == "cookie" { // which HTTP/2 may split
			if old := x.req.Header.Get("Cookie"); old != "" {
				x.req.Header.Set("Cookie", old+"; "+f.Value)
				continue
			}
		}
		x.req.Header.Add(f.Name, f.Value)
	}
	if r.Protocol != "" {
		x.req.Header[ProtocolHeader] = []string{r.Protocol}
	}
	for name, value := range map[string]string{
		"Content-Type": r.ContentType, "Grpc-Timeout": r.Timeout, "Grpc-Encoding": r.Encoding, "Grpc-Accept-Encoding": r.Accept,
		"Authorization": r.Authorization, "Origin": r.Origin,
	} {
		if value != "" {
			x.req.Header.Set(name, value)
		}
	}
	if r.ContentLength >= 0 {
		x.req.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	if end {
		x.ended, x.req.ContentLength = io.EOF, 0
	} else {
		x.req.Body = (*requestBody)(x)
	}
	x.req = x.req.WithContext(ctx)
	x.sending, x.stopSending = context.WithCancel(ctx)
	go x.run(s.Handler)
	return x
}

// run calls the handler.
func (x *exchange) run(h http.Handler) {
	returned := false
	defer func() {
		x.cancel()
		if !returned {
			recover() // as net/http does; what the handler has sent is cut off
			x.st.Reset(InternalError)
		}
		x.mu.Lock()
		x.stopped = true
		if x.timer != nil {
			x.timer.Stop() // it keeps the request
		}
		x.stopSending()
		free := x.body.Len()
		x.body = bytes.Buffer{}
		x.mu.Unlock()
		x.st.Consume(free)
		x.st.Flush()
	}()
	h.ServeHTTP((*responseWriter)(x), x.req)
	returned = true
	x.finish()
}

// Data gets a part of the body.
func (x *exchange) Data(p []byte, end bool) {
	x.mu.Lock()
	if x.stopped {
		x.mu.Unlock()
		x.st.Consume(len(p))
		return
	}
	x.body.Write(p)
	if end && x.ended == nil {
		x.ended = io.EOF
	}
	x.cond.Broadcast()
	x.mu.Unlock()
}

// Reset ends the request of a client that is gone.
func (x *exchange) Reset(err error) {
	x.mu.Lock()
	if x.ended == nil {
		x.ended = err
	}
	x.cond.Broadcast()
	x.mu.Unlock()
	x.cancel()
}

// Incomplete reports whether the body must arrive in time.
func (x *exchange) Incomplete() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ended == nil && !x.stopped && !x.started
}

// requestBody is the body for the handler.
type requestBody exchange

func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	for b.body.Len() == 0 && b.ended == nil && !b.stopped {
		if !b.by.IsZero() && !time.Now().Before(b.by) {
			b.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
		b.cond.Wait()
	}
	if b.body.Len() == 0 {
		err := b.ended
		b.mu.Unlock()
		if err == nil {
			err = http.ErrBodyReadAfterClose
		}
		return 0, err
	}
	n, _ := b.body.Read(p)
	b.mu.Unlock()
	b.st.Consume(n)
	b.st.Flush()
	return n, nil
}

func (b *requestBody) Close() error { return nil }

// responseWriter is what the handler writes to.
type responseWriter exchange

func (w *responseWriter) Header() http.Header { return w.header }

// SetReadDeadline bounds the time of reading the body; http.ResponseController calls it.
func (w *responseWriter) SetReadDeadline(by time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by = by
	if w.timer != nil {
		w.timer.Stop()
	}
	if !by.IsZero() {
		w.timer = time.AfterFunc(time.Until(by), func() {
			w.mu.Lock()
			w.cond.Broadcast()
			w.mu.Unlock()
		})
	}
	return nil
}

// SetWriteDeadline bounds the time of sending; http.ResponseController calls it.
func (w *responseWriter) SetWriteDeadline(by time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopSending()
	w.sendBy = by
	w.sending, w.stopSending = context.WithDeadline(w.req.Context(), by)
	if by.IsZero() {
		w.sending, w.stopSending = context.WithCancel(w.req.Context())
	}
	return nil
}

// EnableFullDuplex does nothing: an answer may begin at any time.
func (w *responseWriter) EnableFullDuplex() error { return nil }

func (w *responseWriter) WriteHeader(status int) {
	if w.head != nil || status < 100 {
		return
	}
	if status < 200 { // not final
		return
	}
	w.noBody = status == http.StatusNoContent || status == http.StatusNotModified || w.req.Method == http.MethodHead
	h := &Header{Status: strconv.Itoa(status)}
	if w.header.Get("Date") == "" {
		h.Fields = append(h.Fields, hpack.HeaderField{Name: "date", Value: time.Now().UTC().Format(http.TimeFormat)})
	}
	for name, values := range w.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			continue
		}
		lower := strings.ToLower(name)
		switch lower {
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
			continue
		}
		if !validName(lower) {
			continue
		}
		for _, v := range values {
			if validValue(v) {
				h.Fields = append(h.Fields, hpack.HeaderField{Name: lower, Value: v})
			}
		}
	}
	w.head = h
}

func (w *responseWriter) Write(p []byte) (int, error) {
	if w.head == nil {
		if w.header.Get("Content-Type") == "" && len(p) > 0 {
			w.header.Set("Content-Type", http.DetectContentType(p))
		}
		w.WriteHeader(http.StatusOK)
	}
	if w.noBody {
		return 0, http.ErrBodyNotAllowed
	}
	w.out = append(w.out, p...)
	if len(w.out) >= MaxFrame {
		if err := w.FlushError(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// FlushError sends what was written.
func (w *responseWriter) FlushError() error {
	if w.head == nil {
		w.WriteHeader(http.StatusOK)
	}
	w.mu.Lock()
	w.started = true
	ctx := w.sending
	w.mu.Unlock()
	var err error
	if len(w.out) > 0 {
		err = w.st.Send(ctx, w.head, w.out)
		w.out = w.out[:0]
	} else {
		err = w.st.SendHeader(w.head)
	}
	if errors.Is(err, ErrClosed) {
		w.cancel()
	}
	return err
}

// Flush sends what was written.
func (w *responseWriter) Flush() { w.FlushError() }

// finish ends the answer after the handler has returned.
func (x *exchange) finish() {
	w := (*responseWriter)(x)
	if w.head == nil {
		w.WriteHeader(http.StatusOK)
	}
	var trailers []hpack.HeaderField
	for name, values := range x.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			for _, v := range values {
				trailers = appendTrailer(trailers, name, v)
			}
		}
	}
	for _, list := range x.header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.TrimSpace(name)
			for _, v := range x.header[http.CanonicalHeaderKey(name)] {
				if x.sentHeader(name, v) {
					continue
				}
				trailers = appendTrailer(trailers, name, v)
			}
		}
	}
	x.mu.Lock()
	by := x.sendBy
	x.mu.Unlock()
	if !by.IsZero() {
		x.st.takeBefore(by)
	}
	x.st.Respond(x.head, x.out, trailers)
}

// appendTrailer appends a field unless HTTP cannot carry it.
func appendTrailer(trailers []hpack.HeaderField, name, value string) []hpack.HeaderField {
	if name = strings.ToLower(name); !validName(name) || !validValue(value) {
		return trailers
	}
	return append(trailers, hpack.HeaderField{Name: name, Value: value})
}

// sentHeader reports whether a field was part of the header already.
func (x *exchange) sentHeader(name, value string) bool {
	for _, f := range x.head.Fields {
		if strings.EqualFold(f.Name, name) && f.Value == value {
			return true
		}
	}
	return false
}
