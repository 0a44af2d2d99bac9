// Package stranger answers clients that speak HTTP to a port of another protocol, such as curl and
// browsers.
package stranger

import (
	"fmt"
	"io"
	"strings"
)

// BeginsHTTP reports whether begin, of at most four bytes, is the beginning of an HTTP request,
// and whether it can become one with more bytes.
func BeginsHTTP(begin []byte) (is, may bool) {
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

// Answer tells an HTTP client what it has reached. The text must repeat nothing of the request.
func Answer(w io.Writer, text string) {
	fmt.Fprintf(w, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"X-Content-Type-Options: nosniff\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}
