package anser

import (
	"strings"

	"github.com/anser-rpc/anser/wire"
)

// errHTTP is the error of a peer that speaks HTTP.
var errHTTP = wire.Errorf(wire.BadFrame, "not the Anser protocol: it is a request of HTTP")

// beginsHTTP reports whether begin, of at most four bytes, is the beginning of an HTTP request,
// and whether it can become one with more bytes.
func beginsHTTP(begin []byte) (is, may bool) {
	for _, m := range httpMethods {
		if strings.HasPrefix(m, string(begin)) {
			return len(begin) == len(m), true
		}
	}
	return false, false
}

// httpMethods are the first bytes that an HTTP client may send: methods, or the preface of
// HTTP/2.
var httpMethods = [...]string{"GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC", "CONN", "TRAC", "PRI "}
