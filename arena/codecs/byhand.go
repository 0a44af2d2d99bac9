package main

import (
	"encoding/binary"
	"errors"

	"github.com/anser-rpc/anser/internal/benchpb"
)

// byHand is the message with hand-written methods, for Anser's binary codec: texts with their
// length, numbers as varints, and booleans as bytes.
type byHand benchpb.Plain

var errBytes = errors.New("the data is not that of a message")

func (m *byHand) texts() [8]*string {
	return [...]*string{&m.Field1, &m.Field9, &m.Field18, &m.Field4, &m.Field7, &m.Field102, &m.Field103, &m.Field129}
}

func (m *byHand) numbers() [20]*int32 {
	return [...]*int32{
		&m.Field2, &m.Field3, &m.Field280, &m.Field6, &m.Field16, &m.Field130, &m.Field104, &m.Field100, &m.Field101, &m.Field29,
		&m.Field60, &m.Field271, &m.Field272, &m.Field150, &m.Field23, &m.Field25, &m.Field67, &m.Field68, &m.Field128, &m.Field131,
	}
}

func (m *byHand) truths() [10]*bool {
	return [...]*bool{
		&m.Field80, &m.Field81, &m.Field59, &m.Field12, &m.Field17, &m.Field13, &m.Field14, &m.Field30, &m.Field24, &m.Field78,
	}
}

// AppendBinary appends the message.
func (m *byHand) AppendBinary(dst []byte) ([]byte, error) {
	for _, text := range m.texts() {
		dst = binary.AppendUvarint(dst, uint64(len(*text)))
		dst = append(dst, *text...)
	}
	for _, n := range m.numbers() {
		dst = binary.AppendVarint(dst, int64(*n))
	}
	dst = binary.AppendVarint(dst, m.Field22)
	for _, truth := range m.truths() {
		b := byte(0)
		if *truth {
			b = 1
		}
		dst = append(dst, b)
	}
	dst = binary.AppendUvarint(dst, uint64(len(m.Field5)))
	for _, n := range m.Field5 {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst, nil
}

// UnmarshalBinary decodes a message. All texts share one copy of the data.
func (m *byHand) UnmarshalBinary(data []byte) error {
	r := reader{data: data, text: string(data)}
	for _, text := range m.texts() {
		*text = r.string()
	}
	for _, n := range m.numbers() {
		*n = int32(r.varint())
	}
	m.Field22 = r.varint()
	for _, truth := range m.truths() {
		*truth = r.byte() != 0
	}
	m.Field5 = nil
	for range r.count() {
		m.Field5 = append(m.Field5, r.uvarint())
	}
	if r.bad || r.at != len(data) {
		return errBytes
	}
	return nil
}

// reader reads from data. After a mistake it is bad, and reads zeros.
type reader struct {
	data []byte
	text string
	at   int
	bad  bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data[r.at:])
	r.bad = r.bad || n <= 0
	r.at += max(n, 0)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data[r.at:])
	r.bad = r.bad || n <= 0
	r.at += max(n, 0)
	return v
}

// count reads a length that what is left can hold.
func (r *reader) count() int {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.data)-r.at) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) string() string {
	n := r.count()
	r.at += n
	return r.text[r.at-n : r.at]
}

func (r *reader) byte() byte {
	if r.at >= len(r.data) {
		r.bad = true
		return 0
	}
	r.at++
	return r.data[r.at-1]
}
