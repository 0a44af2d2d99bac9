package exchange

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/stubwire"
)

// Metadata collects the metadata of a request. The zero value is empty.
type Metadata struct {
	one   anser.Metadata
	more  map[string][]string // keys that occurred several times
	Trace anser.Trace
}

// Reserved reports whether a header belongs to the protocols and not to the metadata.
func Reserved(name string) bool {
	switch name {
	case "te", "user-agent", "accept-encoding", "accept", "content-length", "host", "connection", "trailer",
		"grpc-message-type", "x-user-agent", "origin", "referer", "cookie", "content-encoding", "accept-language",
		"grpc-timeout", "grpc-encoding", "grpc-accept-encoding", "grpc-status", "grpc-message", "grpc-status-details-bin",
		RepeatedHeader, "upgrade", stubwire.ValuesKey, stubwire.HeadersKey, stubwire.AcceptsKey:
		return true
	}
	return strings.HasPrefix(name, "sec-") || strings.HasPrefix(name, "connect-") || strings.HasPrefix(name, ":")
}

// Add adds a header with its name in lower case. The value of a key that ends in "-bin" is base64.
// Headers that metadata cannot carry are left out.
func (m *Metadata) Add(name, value string) {
	if name == "traceparent" {
		m.Trace, _ = ParseTrace(value)
		return
	}
	if Reserved(name) {
		return
	}
	if strings.HasSuffix(name, "-bin") {
		for _, part := range strings.Split(value, ",") {
			if b, err := decodeBinary(strings.TrimSpace(part)); err == nil {
				m.add(name, string(b))
			}
		}
		return
	}
	m.add(name, value)
}

func (m *Metadata) add(name, value string) {
	if values := m.more[name]; values != nil {
		m.more[name] = append(values, value)
		return
	}
	if old, ok := m.one[name]; ok {
		if m.more == nil {
			m.more = make(map[string][]string)
		}
		m.more[name] = []string{old, value}
		delete(m.one, name)
		return
	}
	if m.one == nil {
		m.one = make(anser.Metadata)
	}
	m.one[name] = value
}

// Map returns the metadata as Anser carries it. A key with several text values has them joined by
// commas, and all of them for the code of gRPC that runs over Anser.
func (m *Metadata) Map() anser.Metadata {
	if len(m.more) == 0 {
		return m.one
	}
	if m.one == nil {
		m.one = make(anser.Metadata)
	}
	for k, values := range m.more {
		if !strings.HasSuffix(k, "-bin") {
			m.one[k] = strings.Join(values, ", ")
		}
	}
	m.one[stubwire.ValuesKey] = stubwire.PackHeaders(m.more)
	return m.one
}

// AcceptHeaders tells code of gRPC that runs over Anser that headers of a stream can be sent before
// its end.
func (m *Metadata) AcceptHeaders() {
	if m.one == nil {
		m.one = make(anser.Metadata)
	}
	m.one[stubwire.AcceptsKey] = "1"
}

func decodeBinary(s string) ([]byte, error) {
	if len(s)%4 == 0 {
		return base64.StdEncoding.DecodeString(s)
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// Trailers returns the headers and trailers of a reply as pairs, in the form of HTTP.
func Trailers(md anser.Metadata) (headers, trailers []hpack.HeaderField) {
	if len(md) == 0 {
		return nil, nil
	}
	return Fields(stubwire.UnpackHeaders(md)), Fields(stubwire.Unpack(md))
}

// Fields returns metadata as header fields.
func Fields(md map[string][]string) []hpack.HeaderField {
	var list []hpack.HeaderField
	for k, values := range md {
		if Reserved(k) {
			continue
		}
		for _, v := range values {
			if strings.HasSuffix(k, "-bin") {
				v = base64.RawStdEncoding.EncodeToString([]byte(v))
			} else if !Printable(v) {
				continue
			}
			list = append(list, hpack.HeaderField{Name: k, Value: v})
		}
	}
	return list
}

// Printable reports whether a value may be that of a header.
func Printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// ParseTrace parses the header traceparent of W3C Trace Context.
func ParseTrace(s string) (t anser.Trace, ok bool) {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" || s[:2] == "00" && len(s) != 55 {
		return anser.Trace{}, false
	}
	if _, err := hex.Decode(t.TraceID[:], []byte(s[3:35])); err != nil {
		return anser.Trace{}, false
	}
	if _, err := hex.Decode(t.SpanID[:], []byte(s[36:52])); err != nil {
		return anser.Trace{}, false
	}
	flags, err := strconv.ParseUint(s[53:55], 16, 8)
	if err != nil || t.TraceID == ([16]byte{}) || t.SpanID == ([8]byte{}) || strings.ToLower(s[:55]) != s[:55] {
		return anser.Trace{}, false
	}
	t.Flags = byte(flags)
	return t, true
}

// ParseTimeout parses a value of grpc-timeout, such as "100m".
func ParseTimeout(s string) (d time.Duration, ok bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	var n int64
	for _, c := range []byte(s[:len(s)-1]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	var unit time.Duration
	switch s[len(s)-1] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	default:
		return 0, false
	}
	if n > int64(maxTimeout/unit) {
		return maxTimeout, true
	}
	return time.Duration(n) * unit, true
}

// maxTimeout is as good as none.
const maxTimeout = 100 * 365 * 24 * time.Hour
