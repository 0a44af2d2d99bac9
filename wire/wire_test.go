package wire_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// wantReason fails the test unless err closes the connection with the reason.
func wantReason(t *testing.T, err error, want wire.Reason) {
	t.Helper()
	var fault *wire.Error
	if !errors.As(err, &fault) {
		t.Fatalf("error is %v (%T), want a *wire.Error with reason %s", err, err, want)
	}
	if fault.Reason != want {
		t.Fatalf("reason is %s, want %s: %v", fault.Reason, want, err)
	}
}

// wantCode fails the test unless err fails one call with the code and the connection stays open.
func wantCode(t *testing.T, err error, want wire.Code) {
	t.Helper()
	var fault *wire.CallError
	if !errors.As(err, &fault) {
		t.Fatalf("error is %v (%T), want a *wire.CallError with code %s", err, err, want)
	}
	if fault.Code != want {
		t.Fatalf("code is %s, want %s: %v", fault.Code, want, err)
	}
}

func TestPrefaceRoundTrip(t *testing.T) {
	b := wire.AppendPreface([]byte("kept"))
	if string(b[:4]) != "kept" || len(b) != 4+wire.PrefaceSize {
		t.Fatalf("AppendPreface gave % X", b)
	}
	if err := wire.ParsePreface(b[4:]); err != nil {
		t.Fatal(err)
	}
}

func TestPrefaceMalformed(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int
		bits byte
		want wire.Reason
	}{
		{"magic 0", 0, 0x01, wire.BadFrame},
		{"magic 1", 1, 0x20, wire.BadFrame},
		{"magic 2", 2, 0x80, wire.BadFrame},
		{"magic 3", 3, 0xFF, wire.BadFrame},
		{"version 0", 4, 0x01, wire.BadVersion},
		{"version 3", 4, 0x02, wire.BadVersion},
		{"reserved 5", 5, 0x01, wire.BadFrame},
		{"reserved 6", 6, 0x80, wire.BadFrame},
		{"reserved 7", 7, 0xFF, wire.BadFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.AppendPreface(nil)
			b[c.at] ^= c.bits
			wantReason(t, wire.ParsePreface(b), c.want)
		})
	}
}

// A later version may define the reserved bytes, so the error for a peer is about the version.
func TestPrefaceVersionComesBeforeReservedBits(t *testing.T) {
	b := wire.AppendPreface(nil)
	b[4], b[5] = wire.Version+1, 1
	wantReason(t, wire.ParsePreface(b), wire.BadVersion)
}

// headerRules repeats the table of docs/protocol.md §3 and the flags of §6 to §11.
var headerRules = map[wire.Type]struct {
	flags          wire.Flags
	idZero, idCall bool
}{
	wire.TypeSettings: {0x00, true, false},
	wire.TypeMethod:   {0x00, true, false},
	wire.TypeRequest:  {0x6F, false, true},
	wire.TypeReply:    {0x12, false, true},
	wire.TypeError:    {0x12, false, true},
	wire.TypeCancel:   {0x00, false, true},
	wire.TypePing:     {0x00, true, false},
	wire.TypePong:     {0x00, true, false},
	wire.TypeDrain:    {0x01, true, false},
	wire.TypeClose:    {0x00, true, false},
	wire.TypeData:     {0x01, false, true},
	wire.TypeEnd:      {0x02, false, true},
	wire.TypeWindow:   {0x00, true, true},
	wire.TypeAuth:     {0x00, true, false},
	wire.TypePart:     {0x00, false, true},
}

// Every type with every flag byte, with and without an id.
func TestHeaderRules(t *testing.T) {
	for n := range 1 << 16 {
		typ, flags := wire.Type(n>>8), wire.Flags(n)
		rule, known := headerRules[typ]
		for _, id := range []uint64{0, 1, 1 << 63, 1<<64 - 1} {
			h := wire.Header{Length: 0xA1B2C3D4, Type: typ, Flags: flags, ID: id}
			b := wire.AppendHeader(nil, h)
			if len(b) != wire.HeaderSize {
				t.Fatalf("header of %d bytes", len(b))
			}
			got, err := wire.ParseHeader(b)
			switch {
			case typ >= wire.FirstSkippable:
				if err != nil {
					t.Fatalf("skippable %+v: %v", h, err)
				}
			case !known || flags&^rule.flags != 0:
				wantReason(t, err, wire.BadFrame)
			case id == 0 && !rule.idZero || id != 0 && !rule.idCall:
				wantReason(t, err, wire.BadID)
			case err != nil:
				t.Fatalf("%+v: %v", h, err)
			}
			if got != h {
				t.Fatalf("parsed %+v, want %+v", got, h)
			}
		}
	}
}

func TestHeaderReservedBits(t *testing.T) {
	for bit := range 16 {
		for _, typ := range []wire.Type{wire.TypePing, wire.FirstSkippable, 0xFF} {
			b := wire.AppendHeader(nil, wire.Header{Type: typ})
			binary.LittleEndian.PutUint16(b[6:], 1<<bit)
			_, err := wire.ParseHeader(b)
			wantReason(t, err, wire.BadFrame)
		}
	}
}

func TestHeaderErrorTexts(t *testing.T) {
	for _, c := range []struct {
		h    wire.Header
		want string
	}{
		{wire.Header{Type: 0x42}, "unknown frame type 0x42 (BAD_FRAME)"},
		{wire.Header{Type: wire.TypeReply, Flags: 0x2D, ID: 1}, "REPLY frame with unknown flags 0x2D (BAD_FRAME)"},
		{wire.Header{Type: wire.TypeReply, Flags: 0x80, ID: 1}, "REPLY frame with a checksum that was not negotiated (BAD_FRAME)"},
		{wire.Header{Type: wire.TypeReply}, "REPLY frame with id 0, want the id of a call (BAD_ID)"},
		{wire.Header{Type: wire.TypePing, ID: 7}, "PING frame with id 7, want 0: it concerns the connection (BAD_ID)"},
	} {
		if _, err := wire.ParseHeader(wire.AppendHeader(nil, c.h)); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.h, err, c.want)
		}
	}
}

func TestPutLength(t *testing.T) {
	b := wire.AppendHeader([]byte{9}, wire.Header{Length: 1, Type: wire.TypeRequest, ID: 3})
	wire.PutLength(b[1:], 0xFFFFFFFF)
	h, err := wire.ParseHeader(b[1:])
	if err != nil || h.Length != 0xFFFFFFFF || b[0] != 9 {
		t.Fatalf("%+v, %v, first byte %d", h, err, b[0])
	}
}

func TestTypeString(t *testing.T) {
	for typ, want := range map[wire.Type]string{
		wire.TypeSettings: "SETTINGS", wire.TypeMethod: "METHOD", wire.TypeRequest: "REQUEST",
		wire.TypeReply: "REPLY", wire.TypeError: "ERROR", wire.TypeCancel: "CANCEL",
		wire.TypePing: "PING", wire.TypePong: "PONG", wire.TypeDrain: "DRAIN", wire.TypeClose: "CLOSE",
		wire.TypeData: "DATA", wire.TypeEnd: "END", wire.TypeWindow: "WINDOW", wire.TypeAuth: "AUTH", wire.TypePart: "PART",
		0: "type 0x00", 0x10: "type 0x10", wire.FirstSkippable: "type 0x80",
	} {
		if got := typ.String(); got != want {
			t.Errorf("Type(%d).String() = %q, want %q", uint8(typ), got, want)
		}
	}
}
