package h2

import (
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// Request is the header of a request. The fields that have a place of their own are not in Header.
type Request struct {
	Method, Scheme, Authority, Path string
	Protocol                        string // of CONNECT, such as "websocket" (RFC 8441)

	ContentType   string
	ContentLength int64 // -1: unknown
	Timeout       string
	Encoding      string // grpc-encoding
	Accept        string // grpc-accept-encoding
	Authorization string
	Origin        string
	Header        []hpack.HeaderField // lower-case names; a name may occur several times
}

// headerBlock collects the fields of a header while it is decoded.
type headerBlock struct {
	r        *Request
	trailers bool
	regular  bool // a regular field was seen
	bad      string
	host     string // the field host, which :authority takes the place of
	size     int    // as HPACK counts it
	most     int
	seen     uint16 // fields that occur once
}

// Fields that occur once. Of a second one, a proxy in front might have taken the other.
const (
	seenMethod = 1 << iota
	seenScheme
	seenAuthority
	seenPath
	seenProtocol
	seenType
	seenTimeout
	seenEncoding
	seenOrigin
	seenAuthorization
	seenHost
)

// emit is called with each field. It keeps nothing of a header that is malformed or too large.
func (b *headerBlock) emit(f hpack.HeaderField) {
	b.size += len(f.Name) + len(f.Value) + 32
	if b.bad != "" || b.size > b.most {
		return
	}
	if strings.HasPrefix(f.Name, ":") {
		b.pseudo(f)
		return
	}
	b.regular = true
	if !validName(f.Name) {
		b.bad = "a header field has an invalid name"
		return
	}
	if !validValue(f.Value) {
		b.bad = "a header field has an invalid value"
		return
	}
	r := b.r
	switch f.Name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		b.bad = "a header field belongs to connections of HTTP/1"
		return
	case "te":
		if f.Value != "trailers" {
			b.bad = "the field te has another value than trailers"
		}
		return
	}
	if b.trailers {
		return
	}
	switch f.Name {
	case "content-type":
		b.once(seenType, &r.ContentType, f.Value)
	case "content-length":
		n, err := strconv.ParseUint(f.Value, 10, 62)
		if err != nil || r.ContentLength >= 0 && r.ContentLength != int64(n) {
			b.bad = "the content length is invalid"
			return
		}
		r.ContentLength = int64(n)
	case "grpc-timeout":
		b.once(seenTimeout, &r.Timeout, f.Value)
	case "grpc-encoding":
		b.once(seenEncoding, &r.Encoding, f.Value)
	case "grpc-accept-encoding":
		if r.Accept != "" {
			f.Value = r.Accept + "," + f.Value
		}
		r.Accept = f.Value
	case "origin":
		b.once(seenOrigin, &r.Origin, f.Value)
	case "authorization":
		b.once(seenAuthorization, &r.Authorization, f.Value)
	case "host":
		b.once(seenHost, &b.host, f.Value)
	default:
		r.Header = append(r.Header, f)
	}
}

// once stores the value of a field of which a request has one.
func (b *headerBlock) once(bit uint16, at *string, value string) {
	if b.seen&bit != 0 {
		b.bad = "a header field that must occur once occurs twice"
	}
	b.seen |= bit
	*at = value
}

func (b *headerBlock) pseudo(f hpack.HeaderField) {
	var bit uint16
	var at *string
	switch f.Name {
	case ":method":
		bit, at = seenMethod, &b.r.Method
	case ":scheme":
		bit, at = seenScheme, &b.r.Scheme
	case ":authority":
		bit, at = seenAuthority, &b.r.Authority
	case ":path":
		bit, at = seenPath, &b.r.Path
	case ":protocol":
		bit, at = seenProtocol, &b.r.Protocol
	default:
		b.bad = "a pseudo-header field is unknown"
		return
	}
	switch {
	case b.trailers:
		b.bad = "trailers have a pseudo-header field"
	case b.regular:
		b.bad = "a pseudo-header field follows a regular one"
	case b.seen&bit != 0:
		b.bad = "a pseudo-header field occurs twice"
	case !validValue(f.Value):
		b.bad = "a pseudo-header field has an invalid value"
	}
	b.seen |= bit
	*at = f.Value
}

// check returns what is wrong with the header of a request, or "".
func (b *headerBlock) check() string {
	r := b.r
	switch {
	case b.bad != "":
		return b.bad
	case b.trailers:
		return ""
	case !validMethod(r.Method):
		return "the method is not a token"
	case !validPath(r.Path):
		return "the path has characters that no address has"
	case b.seen&(seenHost|seenAuthority) == seenHost|seenAuthority && !strings.EqualFold(b.host, r.Authority):
		return "the host is another one than the authority"
	}
	if b.seen&seenAuthority == 0 {
		r.Authority = b.host
	}
	switch {
	case b.seen&seenProtocol != 0 && (r.Method != "CONNECT" || r.Authority == "" || r.Protocol == ""):
		return "the field :protocol belongs to a CONNECT request with an authority"
	case r.Method == "CONNECT" && r.Protocol == "":
		if r.Authority == "" || b.seen&(seenScheme|seenPath) != 0 {
			return "a CONNECT request needs an authority, and nothing else"
		}
		return ""
	case r.Method == "" || r.Scheme == "" || r.Path == "":
		return "a pseudo-header field is missing"
	case r.Path[0] != '/' && (r.Path != "*" || r.Method != "OPTIONS"):
		return "the path does not begin with a slash"
	}
	return ""
}

// validMethod reports whether a method is a token, or missing.
func validMethod(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c >= 0x80 || !nameBytes[c]) {
			return false
		}
	}
	return true
}

// validPath reports whether a path is made of characters that can be part of an address.
func validPath(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// validName reports whether a name is a token in lower case.
func validName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || !nameBytes[c] {
			return false
		}
	}
	return s != ""
}

var nameBytes = func() (t [128]bool) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz" {
		t[c] = true
	}
	return t
}()

// validValue reports whether a value has no control characters.
func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
