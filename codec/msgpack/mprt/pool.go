package mprt

import "sync"

// Readers and writers are kept: a call through an interface would allocate them.
var (
	writers = sync.Pool{New: func() any { return new(Writer) }}
	readers = sync.Pool{New: func() any { return new(Reader) }}
)

// Append appends the encoding of m to dst. ok is false if m is unusual.
func Append(dst []byte, m Message) (out []byte, ok bool) {
	w := writers.Get().(*Writer)
	w.B = dst
	m.AnserMsgpackAppend(w)
	out, ok = w.B, !w.unusual
	*w = Writer{}
	writers.Put(w)
	return out, ok
}

// Unmarshal decodes data into m. It returns false if data is unusual: some fields of m may be set
// then.
func Unmarshal(data []byte, m Message) (ok bool) {
	r := readers.Get().(*Reader)
	r.b = data
	m.AnserMsgpackDecode(r)
	ok = !r.unusual && len(r.b) == 0
	*r = Reader{}
	readers.Put(r)
	return ok
}
