package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// partOf returns the header of a PART with a body of length bytes.
func partOf(id uint64, length int) wire.Header {
	return wire.Header{Length: uint32(length), Type: wire.TypePart, ID: id}
}

// A frame in PARTs begins with the header of the frame, and has all of its bytes in the end.
func TestParts(t *testing.T) {
	golden := readHex(t, "part_first.hex")
	h, err := wire.ParseHeader(golden)
	if err != nil {
		t.Fatal(err)
	}
	p, err := wire.BeginParts(h, golden[wire.HeaderSize:])
	want := wire.Parts{
		Head: wire.Header{Length: wire.RequestSize + 1<<20, Type: wire.TypeRequest, ID: 7},
		Left: wire.HeaderSize + wire.RequestSize + 1<<20 - 64,
	}
	if err != nil || p != want {
		t.Fatalf("%+v, %v; want %+v", p, err, want)
	}
	for _, n := range []int{wire.MinPart, 1 << 19, want.Left - wire.MinPart - 1<<19 - 1, 1} {
		if early, err := p.Next(7, n); early || err != nil {
			t.Fatalf("PART of %d bytes: %v, early: %v", n, err, early)
		}
	}
	if p.Left != 0 {
		t.Errorf("%d bytes are left", p.Left)
	}
}

func TestFirstPartRefused(t *testing.T) {
	frame := func(h wire.Header) []byte { return append(wire.AppendHeader(nil, h), make([]byte, 100)...) }
	good := wire.Header{Length: wire.MinParted, Type: wire.TypeReply, ID: 1<<63 + 9}
	if _, err := wire.BeginParts(partOf(good.ID, 116), frame(good)); err != nil {
		t.Fatal(err)
	}
	with := func(change func(h *wire.Header)) []byte {
		h := good
		change(&h)
		return frame(h)
	}
	reserved := frame(good)
	reserved[6] = 1
	for _, c := range []struct {
		name string
		body []byte
		want wire.Reason
	}{
		{"empty", nil, wire.BadFrame},
		{"short", frame(good)[:wire.MinFirstPart-1], wire.BadFrame},
		{"long", append(frame(good), make([]byte, wire.MaxFirstPart-115)...), wire.BadFrame},
		{"reserved bits", reserved, wire.BadFrame},
		{"short frame", with(func(h *wire.Header) { h.Length-- }), wire.BadFrame},
		{"empty frame", with(func(h *wire.Header) { h.Length = 0 }), wire.BadFrame},
		{"another id", with(func(h *wire.Header) { h.ID = 9 }), wire.BadID},
		{"no id", with(func(h *wire.Header) { h.ID = 0 }), wire.BadID},
		{"PART", with(func(h *wire.Header) { h.Type = wire.TypePart }), wire.BadFrame},
		{"ERROR", with(func(h *wire.Header) { h.Type = wire.TypeError }), wire.BadFrame},
		{"DATA", with(func(h *wire.Header) { h.Type = wire.TypeData }), wire.BadFrame},
		{"skippable", with(func(h *wire.Header) { h.Type = wire.FirstSkippable }), wire.BadFrame},
		{"unknown type", with(func(h *wire.Header) { h.Type = 0 }), wire.BadFrame},
		{"a checksum inside", with(func(h *wire.Header) { h.Flags = wire.FlagCRC }), wire.BadFrame},
		{"a stream", with(func(h *wire.Header) { h.Type, h.Flags = wire.TypeRequest, wire.FlagStream }), wire.BadFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := wire.BeginParts(partOf(good.ID, len(c.body)), c.body)
			wantReason(t, err, c.want)
		})
	}
}

func TestPartRefused(t *testing.T) {
	const left = 5000
	for _, c := range []struct {
		name string
		id   uint64
		size int
		want wire.Reason
	}{
		{"another id", 8, 2000, wire.BadID},
		{"early end of another frame", 8, 0, wire.BadID},
		{"beyond the end", 7, left + 1, wire.BadFrame},
		{"2^31 bytes", 7, 1 << 31, wire.BadFrame},
		{"small", 7, wire.MinPart - 1, wire.BadFrame},
		{"1 byte", 7, 1, wire.BadFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := wire.Parts{Head: wire.Header{Type: wire.TypeRequest, ID: 7}, Left: left}
			_, err := p.Next(c.id, c.size)
			wantReason(t, err, c.want)
			if p.Left != left {
				t.Errorf("%d bytes are left after it, want %d", p.Left, left)
			}
		})
	}
	p := wire.Parts{Head: wire.Header{Type: wire.TypeRequest, ID: 7}, Left: left}
	if early, err := p.Next(7, 0); !early || err != nil {
		t.Errorf("a PART without a body: early: %v, %v", early, err)
	}
}

// FuzzParts begins a frame with arbitrary bytes, and goes on with PARTs of arbitrary ids and sizes:
// what is taken makes up the frame exactly.
func FuzzParts(f *testing.F) {
	golden := readHex(f, "part_first.hex")
	f.Add(golden, uint64(7), uint64(7), uint32(1<<19), uint32(1<<19))
	f.Add(golden, uint64(7), uint64(8), uint32(0), uint32(1))
	f.Add(golden[wire.HeaderSize:], uint64(1), uint64(1), uint32(1<<20), uint32(1<<31))
	f.Fuzz(func(t *testing.T, first []byte, id, next uint64, a, b uint32) {
		body := first
		if len(first) > wire.HeaderSize {
			body = first[wire.HeaderSize:]
		}
		p, err := wire.BeginParts(partOf(id, len(body)), bytes.Clone(body))
		var closed *wire.Error
		if err != nil {
			if !errors.As(err, &closed) || closed.Reason != wire.BadFrame && closed.Reason != wire.BadID {
				t.Fatalf("an error that a first PART cannot have: %v", err)
			}
			return
		}
		head, err := wire.ParseHeader(body)
		if err != nil || head != p.Head || head.ID != id || len(body) > wire.MaxFirstPart || p.Left <= 0 {
			t.Fatalf("%+v after % X, %v", p, body[:wire.HeaderSize], err)
		}
		taken := len(body)
		for _, size := range []uint32{a, b, uint32(p.Left)} {
			before := p.Left
			early, err := p.Next(next, int(size))
			if err != nil {
				if !errors.As(err, &closed) || p.Left != before {
					t.Fatalf("%v, and %d bytes are left after %d", err, p.Left, before)
				}
				return
			}
			if early != (size == 0) {
				t.Fatalf("a PART of %d bytes ends the frame early: %v", size, early)
			}
			if taken += int(size); early || p.Left == 0 {
				break
			}
		}
		if whole := wire.HeaderSize + int(p.Head.Length); taken+p.Left != whole || next != id {
			t.Fatalf("%d bytes were taken, %d are left of %d", taken, p.Left, whole)
		}
	})
}
