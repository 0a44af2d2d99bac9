package wire_test

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

func TestChecksumRoundTrip(t *testing.T) {
	r := fullRequest()
	for _, frame := range [][]byte{
		wire.AppendCancel(nil, 7), // only the checksum as its body
		wire.AppendPing(nil, wire.TypePing, 1),
		wire.AppendRequest(nil, 7, wire.FlagTrace, &r),
	} {
		plain, err := wire.ParseHeader(frame)
		if err != nil {
			t.Fatal(err)
		}
		const before = "a frame before it"
		summed := wire.AppendChecksum(append([]byte(before), frame...), len(before))
		if string(summed[:len(before)]) != before {
			t.Fatalf("%s: the bytes before the frame are %q", plain.Type, summed[:len(before)])
		}
		summed = summed[len(before):]
		h, err := wire.ParseHeaderWith(summed, wire.FlagCRC)
		if err != nil {
			t.Fatal(err)
		}
		want := plain
		want.Flags |= wire.FlagCRC
		want.Length += wire.ChecksumSize
		if h != want || len(summed) != wire.HeaderSize+int(h.Length) {
			t.Fatalf("header is %+v in a frame of %d bytes, want %+v", h, len(summed), want)
		}
		got, err := wire.CheckChecksum(summed[:wire.HeaderSize], summed[wire.HeaderSize:])
		if err != nil || !bytes.Equal(got, frame[wire.HeaderSize:]) {
			t.Fatalf("%s: body is % X, %v; want % X", h.Type, got, err, frame[wire.HeaderSize:])
		}
	}
}

// The polynomial is Castagnoli's: this is the check value in its definition.
func TestChecksumPolynomial(t *testing.T) {
	if sum := crc32.Checksum([]byte("123456789"), crc32.MakeTable(crc32.Castagnoli)); sum != 0xE3069283 {
		t.Fatalf("check value is %08X", sum)
	}
	frame := wire.AppendChecksum(wire.AppendCancel(nil, 7), 0)
	header, sum := frame[:wire.HeaderSize], frame[wire.HeaderSize:]
	// A sum over data and its own CRC, in the byte order of the wire, is always the same residue.
	if got := crc32.Checksum(append(header, sum...), crc32.MakeTable(crc32.Castagnoli)); got != 0x48674BC7 {
		t.Fatalf("residue is %08X", got)
	}
}

// Every single bit is covered, including those of the header.
func TestChecksumFindsEveryFlippedBit(t *testing.T) {
	r := fullRequest()
	frame := wire.AppendChecksum(wire.AppendRequest(nil, 7, 0, &r), 0)
	for bit := range 8 * len(frame) {
		frame[bit/8] ^= 1 << (bit % 8)
		_, err := wire.CheckChecksum(frame[:wire.HeaderSize], frame[wire.HeaderSize:])
		wantReason(t, err, wire.BadChecksum)
		frame[bit/8] ^= 1 << (bit % 8)
	}
}

func TestChecksumTruncated(t *testing.T) {
	r := fullRequest()
	frame := wire.AppendChecksum(wire.AppendRequest(nil, 7, 0, &r), 0)
	header, whole := frame[:wire.HeaderSize], frame[wire.HeaderSize:]
	for n := range len(whole) {
		_, err := wire.CheckChecksum(header, whole[:n])
		if n < wire.ChecksumSize {
			wantReason(t, err, wire.BadFrame)
		} else {
			wantReason(t, err, wire.BadChecksum)
		}
	}
}

func TestChecksumNegotiation(t *testing.T) {
	for typ := range headerRules {
		h := wire.Header{Length: 4, Type: typ, Flags: wire.FlagCRC}
		if !headerRules[typ].idZero {
			h.ID = 1
		}
		b := wire.AppendHeader(nil, h)
		_, err := wire.ParseHeader(b)
		wantReason(t, err, wire.BadFrame)
		_, err = wire.ParseHeaderWith(b, wire.FlagCRC)
		wantReason(t, err, wire.BadChecksum)
		wire.PutHeaderCheck(b)
		if got, err := wire.ParseHeaderWith(b, wire.FlagCRC); err != nil || got != h {
			t.Errorf("%s: parsed %+v, %v; want %+v", typ, got, err, h)
		}
		_, err = wire.ParseHeader(b)
		wantReason(t, err, wire.BadFrame)
		// The negotiation allows no other flag, and no other error.
		other := byte(0x40)
		if typ == wire.TypeRequest {
			other = 0x10
		}
		b[5] |= other
		wire.PutHeaderCheck(b)
		_, err = wire.ParseHeaderWith(b, wire.FlagCRC)
		wantReason(t, err, wire.BadFrame)
		b[5] = 0 // without the flag
		wire.PutHeaderCheck(b)
		_, err = wire.ParseHeaderWith(b, wire.FlagCRC)
		wantReason(t, err, wire.BadChecksum)
	}
}

// Every change of one, two or three bits of a header is detected: a wrong length is noticed
// without its body.
func TestHeaderCheckFindsThreeFlippedBits(t *testing.T) {
	r := fullRequest()
	frame := wire.AppendChecksum(wire.AppendRequest(nil, 7, 0, &r), 0)
	b := frame[:wire.HeaderSize]
	flip := func(bit int) { b[bit/8] ^= 1 << (bit % 8) }
	check := func(bits ...int) {
		if _, err := wire.ParseHeaderWith(b, wire.FlagCRC); err == nil {
			t.Errorf("a header with the bits %v flipped is taken", bits)
		}
	}
	for i := range 8 * wire.HeaderSize {
		flip(i)
		check(i)
		_, err := wire.ParseHeaderWith(b, wire.FlagCRC)
		wantReason(t, err, wire.BadChecksum)
		for j := range i {
			flip(j)
			check(i, j)
			for k := range j {
				flip(k)
				check(i, j, k)
				flip(k)
			}
			flip(j)
		}
		flip(i)
	}
}

func TestChecksumAllocations(t *testing.T) {
	frame := wire.AppendPing(make([]byte, 0, 64), wire.TypePing, 1)
	var summed []byte
	allocs := testing.AllocsPerRun(100, func() {
		summed = wire.AppendChecksum(append(frame[:0], frame...), 0)
		if _, err := wire.CheckChecksum(summed[:wire.HeaderSize], summed[wire.HeaderSize:]); err != nil {
			t.Error(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
