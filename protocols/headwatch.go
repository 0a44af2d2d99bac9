package protocols

import (
	"bytes"
	"net/http"
)

// headWatch looks at the heads of the requests of an HTTP/1.1 connection as they arrive. net/http
// accepts what a proxy in front may read otherwise, so that one of the two takes a part of a body
// for a request: a length next to chunks, two lengths, folded lines, and lines that end without
// CR.
//
// It must know where a head begins, which it does as long as the client awaits each answer and
// declares the length of each body. It is used by the goroutine of the connection, and by the one
// that reads ahead while a handler runs; net/http has them take turns.
type headWatch struct {
	lost    bool   // where heads begin is not known
	over    bool   // the head is complete
	began   bool   // its first line is complete
	line    []byte // the beginning of the current line
	size    int    // of the current line
	last    byte   // of the current line
	lengths int    // fields Content-Length
	odd     bool   // a line is folded, or ends without CR
	after   int64  // bytes behind the head
	body    int64  // length of the body; -1: not known
}

const lengthField = "content-length:"

// feed takes bytes that have arrived.
func (h *headWatch) feed(p []byte) {
	for !h.over && len(p) > 0 {
		part, rest, ends := bytes.Cut(p, []byte("\n"))
		if len(part) > 0 {
			h.line = append(h.line, part[:min(len(part), len(lengthField)-len(h.line))]...)
			h.size += len(part)
			h.last = part[len(part)-1]
		}
		if ends {
			h.endLine()
		}
		p = rest
	}
	h.after += int64(len(p))
}

func (h *headWatch) endLine() {
	cr := h.size > 0 && h.last == '\r'
	h.odd = h.odd || !cr
	switch {
	case h.size == 0 || cr && h.size == 1:
		h.over = h.began
	case !h.began:
		h.began = true
	case h.line[0] == ' ' || h.line[0] == '\t':
		h.odd = true
	case bytes.EqualFold(h.line, []byte(lengthField)):
		h.lengths++
	}
	h.line, h.size = h.line[:0], 0
}

// next is called when a request and its answer are complete, and what arrives belongs to the next
// one.
func (h *headWatch) next() {
	*h = headWatch{line: h.line[:0], lost: h.lost || !h.over || h.after != h.body, body: -1}
}

// handler refuses requests that could be read in two ways.
func (h *headWatch) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.body = r.ContentLength
		chunked := len(r.TransferEncoding) > 0
		why := ""
		switch {
		case !h.lost && chunked && h.lengths > 0:
			why = "400 the body has a length and chunks: leave out one of them"
		case !h.lost && h.lengths > 1:
			why = "400 the body has two lengths: leave out one of them"
		case !h.lost && h.odd:
			why = "400 a line of the header is folded or ends without CR: end each line with CR LF"
		}
		for _, name := range [...]string{"Authorization", "Content-Type", "Origin"} {
			if len(r.Header[name]) > 1 {
				why = "400 the header has two fields " + name + ": leave out one of them"
			}
		}
		if why != "" || chunked && h.lost {
			w.Header().Set("Connection", "close")
		}
		if why != "" {
			http.Error(w, why, http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
