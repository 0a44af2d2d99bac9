package connect

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// web serves a gRPC-Web call.
func (q *request) web(media string) {
	rest := strings.TrimPrefix(media, "application/grpc-web")
	text := strings.HasPrefix(rest, "-text")
	rest = strings.TrimPrefix(rest, "-text")
	codec := "proto"
	switch rest {
	case "", "+proto":
	case "+json":
		codec = "json"
	default:
		http.Error(q.w, "the content type is not served", http.StatusUnsupportedMediaType)
		return
	}
	s := &stream{request: q, body: q.r.Body, Waits: exchange.Waits{Control: q.control}}
	q.w.Header().Set("Content-Type", media)
	if text {
		s.body = base64.NewDecoder(base64.StdEncoding, q.r.Body)
		s.text = &textWriter{w: q.w}
	}
	fault := q.prepare(codec, true)
	if d, ok := exchange.ParseTimeout(q.r.Header.Get("Grpc-Timeout")); fault == nil && ok {
		q.call.Deadline = time.Now().Add(d)
	} else if fault == nil && q.r.Header.Get("Grpc-Timeout") != "" {
		fault = anser.Refuse(anser.Internal, "the value of grpc-timeout is malformed")
	}
	if fault == nil {
		s.packed, fault = compression(q.r.Header.Get("Grpc-Encoding"))
	}
	q.w.Header().Set("Grpc-Accept-Encoding", exchange.Compressions)
	if c, name := exchange.Choose(q.r.Header.Get("Grpc-Accept-Encoding")); c != nil {
		s.packing = c
		q.w.Header().Set("Grpc-Encoding", name)
	}
	var trailers anser.Metadata
	if fault == nil {
		trailers, fault = s.run()
	}
	s.endWeb(trailers, fault)
}

// endWeb sends the trailers as the last envelope.
func (s *stream) endWeb(trailers anser.Metadata, fault *anser.Error) {
	s.setHeaders(trailers)
	var b strings.Builder
	line := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	if fault == nil {
		line("grpc-status", "0")
	} else {
		for _, f := range exchange.StatusFields(fault) {
			line(f.Name, f.Value)
		}
	}
	_, fields := exchange.Trailers(trailers)
	for _, f := range fields {
		line(f.Name, f.Value)
	}
	s.last(flagWebEnd, append(make([]byte, prefixSize), b.String()...))
}

// textWriter writes each envelope as base64 of its own.
type textWriter struct{ w io.Writer }

func (t *textWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.w, base64.StdEncoding.EncodeToString(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (t *textWriter) Close() error { return nil }
