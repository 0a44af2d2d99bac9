package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// body removes the header from a whole frame and checks it.
func body(t *testing.T, frame []byte, typ wire.Type, flags wire.Flags, id uint64) []byte {
	t.Helper()
	h, err := wire.ParseHeader(frame)
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Header{Length: uint32(len(frame) - wire.HeaderSize), Type: typ, Flags: flags, ID: id}
	if h != want {
		t.Fatalf("header is %+v, want %+v", h, want)
	}
	return frame[wire.HeaderSize:]
}

var (
	someTrace = wire.Trace{
		TraceID: [16]byte{0x4B, 0xF9, 0x2F, 0x35, 0x77, 0xB3, 0x4D, 0xA6, 0xA3, 0xCE, 0x92, 0x9D, 0x0E, 0x0E, 0x47, 0x36},
		SpanID:  [8]byte{0x00, 0xF0, 0x67, 0xAA, 0x0B, 0xA9, 0x02, 0xB7},
		Flags:   1,
	}
	someMetadata = wire.AppendMetadata(nil, []wire.Pair{{Key: "tenant", Value: "acme"}})
)

// fullRequest has a value in every field.
func fullRequest() wire.Request {
	return wire.Request{
		Method: 0x01020304, Codec: 4, Compression: 1, Attempt: 15, Priority: 3, Timeout: 1<<53 - 1,
		Trace: someTrace, Metadata: someMetadata, Payload: []byte("payload"),
	}
}

func TestRequestRoundTrip(t *testing.T) {
	for _, flags := range []wire.Flags{
		0, wire.FlagTrace, wire.FlagMetadata, wire.FlagTrace | wire.FlagMetadata,
		wire.FlagOneway, wire.FlagStream | wire.FlagTrace,
	} {
		for _, payload := range []string{"", "payload"} {
			t.Run(fmt.Sprintf("flags %02X payload %q", flags, payload), func(t *testing.T) {
				want := fullRequest()
				want.Payload = []byte(payload)
				if flags&wire.FlagTrace == 0 {
					want.Trace = wire.Trace{}
				}
				if flags&wire.FlagMetadata == 0 {
					want.Metadata = nil
				}
				b := wire.AppendRequest([]byte("kept"), 9, flags&^wire.FlagMetadata, &want)
				if string(b[:4]) != "kept" {
					t.Fatalf("dst begins with %q", b[:4])
				}
				got := fullRequest() // no field of an earlier request may be left
				if err := wire.ParseRequest(flags, body(t, b[4:], wire.TypeRequest, flags, 9), &got); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("parsed %+v, want %+v", got, want)
				}
			})
		}
	}
}

// Flags of another frame must not announce parts that the body does not have.
func TestAppendDecidesMetadataAndChecksumFlags(t *testing.T) {
	const wrong = wire.FlagMetadata | wire.FlagCRC
	body(t, wire.AppendRequest(nil, 1, wrong|wire.FlagOneway, &wire.Request{}), wire.TypeRequest, wire.FlagOneway, 1)
	body(t, wire.AppendRequest(nil, 1, wrong, &wire.Request{Metadata: []byte{}}), wire.TypeRequest, 0, 1)
	body(t, wire.AppendReplyHead(nil, 1, wrong|wire.FlagIdempotent, 4, 0, nil), wire.TypeReply, wire.FlagIdempotent, 1)
	body(t, wire.AppendError(nil, 1, wrong|wire.FlagIdempotent, &wire.ErrorBody{}), wire.TypeError, wire.FlagIdempotent, 1)
}

func TestRequestTruncated(t *testing.T) {
	const flags = wire.FlagTrace | wire.FlagMetadata
	r := fullRequest()
	whole := body(t, wire.AppendRequest(nil, 1, flags, &r), wire.TypeRequest, flags, 1)
	traceEnd := wire.RequestSize + wire.TraceSize
	metadataEnd := traceEnd + len(someMetadata)
	for n := range len(whole) {
		err := wire.ParseRequest(flags, whole[:n], &r)
		switch {
		case n < traceEnd:
			wantReason(t, err, wire.BadFrame)
		case n < metadataEnd:
			wantReason(t, err, wire.BadMetadata)
		case err != nil || string(r.Payload) != "payload"[:n-metadataEnd]:
			t.Fatalf("cut at %d: payload %q, %v", n, r.Payload, err)
		}
	}
}

func TestRequestMetadataLength(t *testing.T) {
	for _, c := range []struct {
		name   string
		length uint32
		want   wire.Reason
	}{
		{"0", 0, wire.BadMetadata},
		{"1", 1, wire.BadMetadata},
		{"one beyond the frame", 11, wire.BadMetadata},
		{"wraps 32 bits", 0xFFFFFFFC, wire.BadMetadata},
		{"longest", 0xFFFFFFFF, wire.BadMetadata},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := make([]byte, wire.RequestSize, 64)
			b = binary.LittleEndian.AppendUint32(b, c.length)
			b = append(b, make([]byte, 10)...)
			var r wire.Request
			wantReason(t, wire.ParseRequest(wire.FlagMetadata, b, &r), c.want)
			_, err := wire.ParseReply(wire.FlagMetadata, b[wire.RequestSize-wire.ReplySize:])
			wantReason(t, err, c.want)
			_, err = wire.ParseError(wire.FlagMetadata, append(make([]byte, wire.ErrorSize), b[wire.RequestSize:]...))
			wantReason(t, err, c.want)
		})
	}
}

func TestRequestLimits(t *testing.T) {
	// All fields are at their limits, so that the error must name the one above its limit.
	ok := wire.Request{
		Method: 1, Codec: 1, Attempt: 15, Priority: 3, Timeout: 1<<53 - 1, Payload: []byte("p"),
	}
	for _, c := range []struct {
		name string
		set  func(r *wire.Request)
		fail bool
	}{
		{"timeout limit-1", func(r *wire.Request) { r.Timeout = 1<<53 - 2 }, false},
		{"timeout limit", func(r *wire.Request) { r.Timeout = 1<<53 - 1 }, false},
		{"timeout limit+1", func(r *wire.Request) { r.Timeout = 1 << 53 }, true},
		{"timeout -1", func(r *wire.Request) { r.Timeout = 1<<64 - 1 }, true},
		{"timeout 2^63", func(r *wire.Request) { r.Timeout = 1 << 63 }, true},
		{"attempt limit-1", func(r *wire.Request) { r.Attempt = 14 }, false},
		{"attempt limit", func(r *wire.Request) { r.Attempt = 15 }, false},
		{"attempt limit+1", func(r *wire.Request) { r.Attempt = 16 }, true},
		{"attempt 255", func(r *wire.Request) { r.Attempt = 255 }, true},
		{"priority limit-1", func(r *wire.Request) { r.Priority = 2 }, false},
		{"priority limit", func(r *wire.Request) { r.Priority = 3 }, false},
		{"priority limit+1", func(r *wire.Request) { r.Priority = 4 }, true},
		{"priority 255", func(r *wire.Request) { r.Priority = 255 }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := ok
			c.set(&want)
			b := body(t, wire.AppendRequest(nil, 1, 0, &want), wire.TypeRequest, 0, 1)
			var got wire.Request
			err := wire.ParseRequest(0, b, &got)
			if c.fail {
				wantCode(t, err, wire.InvalidArgument)
				if field, _, _ := strings.Cut(c.name, " "); !strings.HasPrefix(err.Error(), field) {
					t.Errorf("the error does not name the %s: %v", field, err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			// The callee answers with the ID and the method, so they must be valid even in a
			// rejected request.
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("parsed %+v, want %+v", got, want)
			}
		})
	}
}

func TestRequestOnewayStream(t *testing.T) {
	var r wire.Request
	err := wire.ParseRequest(wire.FlagOneway|wire.FlagStream, make([]byte, wire.RequestSize), &r)
	wantReason(t, err, wire.BadFrame)
}

func TestReplyRoundTrip(t *testing.T) {
	for _, flags := range []wire.Flags{
		0, wire.FlagMetadata, wire.FlagIdempotent, wire.FlagMetadata | wire.FlagIdempotent,
	} {
		t.Run(fmt.Sprintf("flags %02X", flags), func(t *testing.T) {
			want := wire.Reply{Codec: 5, Compression: 4, Payload: []byte("payload")}
			if flags&wire.FlagMetadata != 0 {
				want.Metadata = someMetadata
			}
			b := wire.AppendReplyHead([]byte("kept"), 1<<63, flags&^wire.FlagMetadata, 5, 4, want.Metadata)
			b = append(b, want.Payload...)
			wire.PutLength(b[4:], uint32(len(b)-4-wire.HeaderSize))
			got, err := wire.ParseReply(flags, body(t, b[4:], wire.TypeReply, flags, 1<<63))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("parsed %+v, want %+v", got, want)
			}
		})
	}
}

func TestReplyTruncated(t *testing.T) {
	b := wire.AppendReplyHead(nil, 1, 0, 5, 4, someMetadata)
	whole := append(body(t, b, wire.TypeReply, wire.FlagMetadata, 1), "payload"...)
	metadataEnd := wire.ReplySize + len(someMetadata)
	for n := range len(whole) {
		r, err := wire.ParseReply(wire.FlagMetadata, whole[:n])
		switch {
		case n < wire.ReplySize:
			wantReason(t, err, wire.BadFrame)
		case n < metadataEnd:
			wantReason(t, err, wire.BadMetadata)
		case err != nil || string(r.Payload) != "payload"[:n-metadataEnd]:
			t.Fatalf("cut at %d: payload %q, %v", n, r.Payload, err)
		}
	}
}

// A slice of the front part must not allow append to overwrite the rest.
func TestParsedMetadataHasNoSpareCapacity(t *testing.T) {
	r := fullRequest()
	b := body(t, wire.AppendRequest(nil, 1, 0, &r), wire.TypeRequest, wire.FlagMetadata, 1)
	if err := wire.ParseRequest(wire.FlagMetadata, b, &r); err != nil {
		t.Fatal(err)
	}
	_ = append(r.Metadata, "overwritten"...)
	if string(r.Payload) != "payload" {
		t.Fatalf("payload is now %q", r.Payload)
	}
}

func TestMethodRoundTrip(t *testing.T) {
	for _, name := range []string{
		"A", "Arith.Mul", "größe/计算", strings.Repeat("n", 511), strings.Repeat("n", 512), "a b~",
	} {
		b := wire.AppendMethod([]byte("kept"), 0xFFFFFFFE, name)
		number, got, err := wire.ParseMethod(body(t, b[4:], wire.TypeMethod, 0, 0))
		if err != nil || number != 0xFFFFFFFE || got != name {
			t.Fatalf("parsed %d %q, %v; want %q", number, got, err, name)
		}
	}
}

func TestMethodNameRefused(t *testing.T) {
	for _, c := range []struct{ what, name string }{
		{"empty", ""},
		{"limit+1", strings.Repeat("n", 513)},
		{"limit+1 bytes, fewer characters", strings.Repeat("é", 256) + "e"},
		{"far too long", strings.Repeat("n", 1<<16)},
		{"broken UTF-8", "Arith\xFF"},
		{"surrogate", "Arith\xED\xA0\x80"},
		{"NUL", "Arith\x00Mul"},
		{"newline", "Arith\nMul"},
		{"escape", "\x1B[2J"},
		{"delete", "Arith\x7F"},
		{"eight-bit control", "Arith\u009B2J"},
	} {
		t.Run(c.what, func(t *testing.T) {
			wantReason(t, wire.CheckMethodName(c.name), wire.BadMethod)
			_, _, err := wire.ParseMethod(wire.AppendMethod(nil, 1, c.name)[wire.HeaderSize:])
			wantReason(t, err, wire.BadMethod)
		})
	}
}

func TestMethodTruncated(t *testing.T) {
	whole := wire.AppendMethod(nil, 7, "Arith.Mul")[wire.HeaderSize:]
	for n := range len(whole) {
		_, name, err := wire.ParseMethod(whole[:n])
		if n < 5 {
			wantReason(t, err, wire.BadMethod)
		} else if err != nil || name != "Arith.Mul"[:n-4] {
			t.Fatalf("cut at %d: %q, %v", n, name, err)
		}
	}
}

func TestCancel(t *testing.T) {
	if err := wire.ParseCancel(body(t, wire.AppendCancel(nil, 12), wire.TypeCancel, 0, 12)); err != nil {
		t.Fatal(err)
	}
	wantReason(t, wire.ParseCancel([]byte{0}), wire.BadFrame)
}

func TestPingRoundTrip(t *testing.T) {
	for _, typ := range []wire.Type{wire.TypePing, wire.TypePong} {
		for _, value := range []uint64{0, 1, 0x0123456789ABCDEF, 1<<64 - 1} {
			got, err := wire.ParsePing(body(t, wire.AppendPing(nil, typ, value), typ, 0, 0))
			if err != nil || got != value {
				t.Fatalf("parsed %d, %v; want %d", got, err, value)
			}
		}
	}
}

func TestDrainRoundTrip(t *testing.T) {
	for _, flags := range []wire.Flags{0, wire.FlagAck} {
		for _, grace := range []uint32{0, 30_000, 1<<32 - 1} {
			got, err := wire.ParseDrain(body(t, wire.AppendDrain(nil, flags, grace), wire.TypeDrain, flags, 0))
			if err != nil || got != grace {
				t.Fatalf("parsed %d, %v; want %d", got, err, grace)
			}
		}
	}
}

// Bodies of a fixed size must have exactly that size.
func TestFixedSizes(t *testing.T) {
	b := make([]byte, 64)
	for n := range b {
		if _, err := wire.ParsePing(b[:n]); n != 8 {
			wantReason(t, err, wire.BadFrame)
		}
		if _, err := wire.ParseDrain(b[:n]); n != 4 {
			wantReason(t, err, wire.BadFrame)
		}
	}
}

func TestFrameAllocations(t *testing.T) {
	const flags = wire.FlagTrace | wire.FlagMetadata
	r := fullRequest()
	request := wire.AppendRequest(nil, 1, flags, &r)
	reply := append(wire.AppendReplyHead(nil, 1, 0, 4, 0, someMetadata), "payload"...)
	dst := make([]byte, 0, len(request))
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"ParseHeader", func() error { _, err := wire.ParseHeader(request); return err }},
		{"ParseRequest", func() error { return wire.ParseRequest(flags, request[wire.HeaderSize:], &r) }},
		{"AppendRequest", func() error { dst = wire.AppendRequest(dst[:0], 1, flags, &r); return nil }},
		{"ParseReply", func() error { _, err := wire.ParseReply(wire.FlagMetadata, reply[wire.HeaderSize:]); return err }},
		{"AppendReplyHead", func() error { dst = wire.AppendReplyHead(dst[:0], 1, 0, 4, 0, someMetadata); return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			allocs := testing.AllocsPerRun(100, func() {
				if err := c.run(); err != nil {
					t.Error(err)
				}
			})
			if allocs != 0 {
				t.Errorf("%v allocations, want 0", allocs)
			}
		})
	}
	if !bytes.Equal(dst[:wire.HeaderSize], wire.AppendReplyHead(nil, 1, 0, 4, 0, someMetadata)[:wire.HeaderSize]) {
		t.Error("the last frame is not the one that was appended")
	}
}
