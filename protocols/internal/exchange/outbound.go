package exchange

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/internal/stubwire"
	"github.com/anser-rpc/anser/wire"
)

// GzipNumber is the number of gzip in Anser's protocol.
const GzipNumber = 1

// PathOf returns the path of a method with a name such as "pkg.Service.Method" or
// "pkg.Service/Method".
func PathOf(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && !strings.Contains(name, "/") {
		name = name[:i] + "/" + name[i+1:]
	}
	return "/" + strings.TrimPrefix(name, "/")
}

// Authorization returns the value of the header authorization for a credential of a scheme, if it
// can be shown so.
func Authorization(scheme string, credential []byte) (value string, ok bool) {
	switch scheme {
	case "token", "jwt", "bearer":
		return "Bearer " + string(credential), true
	case "basic":
		return "Basic " + string(credential), true
	}
	return "", false
}

// NoAuthorization says that a credential cannot be shown.
func NoAuthorization(scheme string) string {
	return "a credential of the scheme " + scheme + " cannot be shown to a server of another protocol: use a token or a JSON Web Token"
}

// RequestFields returns the metadata of a request as header fields. It reports whether the client
// reads headers of a stream before its end.
func RequestFields(pairs []wire.Pair) (fields []hpack.HeaderField, accepts bool) {
	several := map[string][]string(nil) // of keys with several values
	for _, p := range pairs {
		switch p.Key {
		case stubwire.AcceptsKey:
			accepts = true
		case stubwire.ValuesKey:
			several = stubwire.Unpack(map[string]string{p.Key: p.Value})
		}
	}
	for _, p := range pairs {
		if Reserved(p.Key) || setHere(p.Key) || several[p.Key] != nil {
			continue
		}
		if strings.HasSuffix(p.Key, "-bin") {
			fields = append(fields, hpack.HeaderField{Name: p.Key, Value: base64.RawStdEncoding.EncodeToString([]byte(p.Value))})
		} else if Printable(p.Value) {
			fields = append(fields, hpack.HeaderField{Name: p.Key, Value: p.Value})
		}
	}
	for _, f := range Fields(several) {
		if !setHere(f.Name) {
			fields = append(fields, f)
		}
	}
	return fields, accepts
}

// setHere reports whether the clients of other protocols set a header themselves.
func setHere(name string) bool { return name == "content-type" || name == "traceparent" }

// TraceParent returns the value of the header traceparent.
func TraceParent(t *wire.Trace) string {
	b := append(make([]byte, 0, 55), "00-"...)
	b = hex.AppendEncode(b, t.TraceID[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, t.SpanID[:])
	b = append(b, '-')
	return string(hex.AppendEncode(b, []byte{t.Flags}))
}

// AppendTimeout appends a value of grpc-timeout for a number of microseconds.
func AppendTimeout(b []byte, micros uint64) []byte {
	unit := byte('u')
	for _, step := range [...]struct {
		by   uint64
		unit byte
	}{{1_000, 'm'}, {1_000, 'S'}, {60, 'M'}, {60, 'H'}} {
		if micros < 100_000_000 {
			break
		}
		micros, unit = (micros+step.by-1)/step.by, step.unit
	}
	return append(strconv.AppendUint(b, min(micros, 99_999_999), 10), unit)
}

// FormatTimeout returns a value of grpc-timeout.
func FormatTimeout(d time.Duration) string {
	return string(AppendTimeout(nil, uint64((d+time.Microsecond-1)/time.Microsecond)))
}
