package gobwire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A program has some hundred types. Definitions stay in memory as long as the connection.
const (
	maxTypes     = 10_000
	maxTypeBytes = 1 << 20
)

var (
	errTypes     = fmt.Errorf("more than %d gob types or %d bytes of them on one connection", maxTypes, maxTypeBytes)
	errDuplicate = errors.New("a gob type is defined twice or has a reserved number")
	errExtra     = errors.New("there is data after the definition of a gob type")
)

// TooLargeError is the error of a value over the limit. The value was skipped, and the stream can
// be used further.
type TooLargeError struct {
	Size, Limit int64 // in bytes
}

// Error returns the size and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a message of %d bytes is over the limit of %d", e.Size, e.Limit)
}

// Reader reads values from a stream, and is the source of a gob.Decoder, which reads them after
// they were checked: call Next, and then either let the decoder decode one value if Admit allows
// it, or call Drop. It is not safe for concurrent use.
type Reader struct {
	src       *bufio.Reader
	types     map[int64]*wireType
	grades    map[int64]grade // by ID, the required protection of gob's decoder
	single    map[int64]bool  // cached results of alone
	matched   map[pair]error  // cached results of match
	concrete  map[named]concrete
	typeBytes int
	limit     int64 // for the current value
	size      int64 // of its messages so far

	buf     []byte // unread by the decoder: definitions, followed by the value
	off     int
	value   int    // position of the value in buf, without its length and the ID of its type
	id      int64  // of its type
	message []byte // the last message, without its length
	walk    walk   // of the value
	inline  []byte // definitions removed from the value
	fatal   error
}

// NewReader returns a Reader of the stream src.
func NewReader(src *bufio.Reader) *Reader {
	r := &Reader{
		src: src, types: make(map[int64]*wireType), grades: make(map[int64]grade), single: make(map[int64]bool),
		matched: make(map[pair]error), concrete: make(map[named]concrete),
	}
	r.walk.r = r
	return r
}

// Next reads and checks a value of at most limit bytes. At the end of the stream the error is
// io.EOF. A [*TooLargeError] concerns the value only; any other error is final.
func (r *Reader) Next(limit int) error {
	if r.fatal != nil {
		return r.fatal
	}
	err := r.next(int64(limit))
	if err != nil {
		if _, ok := errors.AsType[*TooLargeError](err); !ok {
			r.fatal = err
		}
	}
	return err
}

func (r *Reader) next(limit int64) error {
	r.compact()
	r.limit, r.size = limit, 0
	for first := true; ; first = false {
		n, err := r.length()
		if err == io.EOF && !first {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		id, head, err := r.peekID(n)
		if err != nil {
			return err
		}
		if id < 0 {
			if err := r.readDefinition(-id, n, head); err != nil {
				return err
			}
			continue
		}
		if err := r.known(id); err != nil {
			return err
		}
		if n > limit {
			return r.skip(id, n)
		}
		if err := r.read(n); err != nil {
			return err
		}
		r.size = n
		return r.check(id, head)
	}
}

// Size returns the length of the value that was read last, in bytes.
func (r *Reader) Size() int { return int(r.size) }

// compact keeps the definitions of a dropped value: they precede the next one.
func (r *Reader) compact() {
	r.buf = append(r.buf[:0], r.buf[r.off:]...)
	r.off = 0
	if cap(r.buf) > keepBuffer {
		r.buf = append(make([]byte, 0, len(r.buf)), r.buf...)
	}
}

// keepBuffer is the largest buffer that an idle connection keeps.
const keepBuffer = 64 << 10

// length reads the length of a message.
func (r *Reader) length() (int64, error) {
	b, err := r.src.ReadByte()
	if err != nil {
		return 0, err
	}
	if b <= 0x7f {
		return int64(b), nil
	}
	n := -int(int8(b))
	if n > 8 {
		return 0, errNumber
	}
	var x uint64
	for range n {
		b, err := r.src.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		x = x<<8 | uint64(b)
	}
	if x > maxDeclared {
		return 0, fmt.Errorf("a gob message declares %d bytes", x)
	}
	return int64(x), nil
}

// maxDeclared is the length from which gob itself treats a message as broken.
const maxDeclared = 8 << 30

// peekID returns the ID at the beginning of a message of n bytes, and the length of the ID.
func (r *Reader) peekID(n int64) (id int64, length int, err error) {
	head, err := r.src.Peek(int(min(n, 1)))
	if err == nil && n > 0 && head[0] > 0x7f {
		head, err = r.src.Peek(int(min(n, int64(1-int(int8(head[0]))))))
	}
	if err != nil {
		return 0, 0, unexpected(err)
	}
	c := cursor{data: head}
	id, err = c.typeID()
	return id, c.pos, err
}

// readDefinition reads a message that defines a type and nothing else.
func (r *Reader) readDefinition(id, n int64, head int) error {
	if n > maxTypeBytes {
		return errTypes
	}
	if err := r.read(n); err != nil {
		return err
	}
	c := cursor{data: r.message, pos: head}
	t, err := c.definition()
	if err != nil {
		return err
	}
	if c.left() > 0 {
		return errExtra
	}
	if err := r.note(id, t, bytes.Clone(r.message)); err != nil {
		return err
	}
	r.buf = append(appendUint(r.buf, uint64(n)), r.message...)
	return nil
}

// define records a type whose definition was inside a value.
func (r *Reader) define(id int64, t *wireType, body []byte) error {
	raw := append(appendInt(nil, -id), body...)
	if err := r.note(id, t, raw); err != nil {
		return err
	}
	r.inline = append(appendUint(r.inline, uint64(len(raw))), raw...)
	return nil
}

func (r *Reader) note(id int64, t *wireType, raw []byte) error {
	if id < firstUser || id >= probeType || r.types[id] != nil {
		return errDuplicate
	}
	t.raw = raw
	r.typeBytes += len(raw)
	if len(r.types) >= maxTypes || r.typeBytes > maxTypeBytes {
		return errTypes
	}
	r.types[id] = t
	// A type may have been graded before its parts were known.
	clear(r.grades)
	clear(r.single)
	clear(r.matched)
	return nil
}

func (r *Reader) known(id int64) error {
	if id >= idBool && id <= idInterface || r.types[id] != nil {
		return nil
	}
	return errUndefined
}

// read reads a message of n bytes. Memory grows with the received data, not with n.
func (r *Reader) read(n int64) error {
	r.message = r.message[:0]
	if cap(r.message) > keepBuffer {
		r.message = nil
	}
	for int64(len(r.message)) < n {
		if cap(r.message)-len(r.message) == 0 {
			grown := make([]byte, len(r.message), min(int64(max(2*cap(r.message), 4<<10)), n))
			copy(grown, r.message)
			r.message = grown
		}
		free := r.message[len(r.message):min(int64(cap(r.message)), n)]
		m, err := r.src.Read(free)
		r.message = r.message[:len(r.message)+m]
		if err != nil {
			return unexpected(err)
		}
	}
	return nil
}

// more reads the next message of a value that spans several.
func (r *Reader) more() ([]byte, error) {
	n, err := r.length()
	if err != nil {
		return nil, unexpected(err)
	}
	if r.size += n; r.size > r.limit {
		return nil, fmt.Errorf("a value in several messages is over the limit of %d bytes", r.limit)
	}
	if err := r.read(n); err != nil {
		return nil, err
	}
	return r.message, nil
}

// skip skips a value over the limit, if its end is known.
func (r *Reader) skip(id, n int64) error {
	large := &TooLargeError{Size: n, Limit: r.limit}
	if !r.alone(id) {
		return fmt.Errorf("%v", large)
	}
	for rest := n; rest > 0; {
		m, err := r.src.Discard(int(min(rest, keepBuffer)))
		if err != nil {
			return unexpected(err)
		}
		rest -= int64(m)
	}
	return large
}

// alone reports whether values of the type are always in one message, unlike those with an
// interface.
func (r *Reader) alone(id int64) bool {
	single, ok := r.single[id]
	if !ok {
		single = r.aloneUnseen(id, make(map[int64]bool))
		r.single[id] = single
	}
	return single
}

func (r *Reader) aloneUnseen(id int64, seen map[int64]bool) bool {
	if id == idInterface {
		return false
	}
	t := r.types[id]
	if t == nil || seen[id] {
		return true
	}
	seen[id] = true
	for _, part := range t.parts() {
		if !r.aloneUnseen(part, seen) {
			return false
		}
	}
	return true
}

// parts returns the IDs of the type's parts.
func (t *wireType) parts() []int64 {
	switch t.kind {
	case kindStruct:
		return t.fields
	case kindMap:
		return []int64{t.key, t.elem}
	case kindArray, kindSlice:
		return []int64{t.elem}
	}
	return nil
}

// check checks the value in the message and passes it to the decoder.
func (r *Reader) check(id int64, head int) error {
	r.id = id
	g := r.grade(id)
	if g == flat {
		r.buf = append(appendUint(r.buf, uint64(len(r.message))), r.message...)
		return nil
	}
	w := &r.walk
	w.cursor, w.depth, w.dry = cursor{data: r.message, pos: head}, 0, g == counted
	if w.dry {
		if err := w.top(id); err != nil {
			return err
		}
		r.buf = append(appendUint(r.buf, uint64(len(r.message))), r.message...)
		return nil
	}
	if cap(w.out) > keepBuffer {
		w.out = nil
	}
	w.out = appendInt(w.out[:0], id)
	start := len(w.out)
	r.inline = r.inline[:0]
	if err := w.top(id); err != nil {
		return err
	}
	r.buf = append(r.buf, r.inline...)
	r.buf = append(appendUint(r.buf, uint64(len(w.out))), w.out...)
	r.value = len(r.buf) - len(w.out) + start
	return nil
}

// grade describes how values of a type could abuse gob's decoder.
type grade uint8

const (
	// unknown is the grade of a type not graded yet.
	unknown grade = iota
	// flat values are decoded from the bytes that were received.
	flat
	// counted values contain slices, for which the decoder allocates up to 10 MiB before it
	// notices that elements are missing.
	counted
	// tangled values contain maps, which the decoder allocates with any declared length, or
	// interfaces, or are recursive, which the decoder follows to any depth.
	tangled
)

func (r *Reader) grade(id int64) grade { return r.judge(id, 0) }

// judge descends no deeper than hand-written types are nested, which also bounds it for recursive
// ones.
func (r *Reader) judge(id int64, depth int) grade {
	if id >= idBool && id <= idComplex {
		return flat
	}
	if g := r.grades[id]; g != unknown {
		return g
	}
	t := r.types[id]
	if t == nil || t.kind == kindMap || depth > 100 {
		return tangled
	}
	g := flat
	if t.kind == kindSlice || t.kind == kindArray {
		g = counted
	}
	for _, part := range t.parts() {
		g = max(g, r.judge(part, depth+1))
		if g == tangled {
			break
		}
	}
	if g < tangled || depth == 0 {
		r.grades[id] = g
	}
	return g
}

// Drop discards the last value of Next, if the decoder must not read it.
func (r *Reader) Drop() {
	r.off = 0
	end := 0
	for end < len(r.buf) {
		c := cursor{data: r.buf, pos: end}
		n, err := c.uint()
		if err != nil {
			break
		}
		head := cursor{data: r.buf[c.pos:]}
		if id, err := head.int(); err != nil || id >= 0 {
			break
		}
		end = c.pos + int(n)
	}
	r.buf = r.buf[:end]
}

// Done marks the end of the value, including parts that the decoder has not read.
func (r *Reader) Done() { r.buf, r.off = r.buf[:0], 0 }

// Buffered returns how many bytes of the next value have arrived.
func (r *Reader) Buffered() int { return r.src.Buffered() }

// Read implements io.Reader for the decoder.
func (r *Reader) Read(p []byte) (int, error) {
	if r.off == len(r.buf) {
		return 0, io.EOF
	}
	n := copy(p, r.buf[r.off:])
	r.off += n
	return n, nil
}

// ReadByte implements io.ByteReader for the decoder, which would read ahead without it.
func (r *Reader) ReadByte() (byte, error) {
	if r.off == len(r.buf) {
		return 0, io.EOF
	}
	b := r.buf[r.off]
	r.off++
	return b, nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
