package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// splitter splits a stream into frames as its bytes arrive.
type splitter struct {
	limit      uint32
	negotiated wire.Flags

	frames [][]byte
	rest   []byte
	err    error // no more is read after it
}

func (s *splitter) feed(b []byte) {
	s.rest = append(s.rest, b...)
	for s.err == nil && len(s.rest) >= wire.HeaderSize {
		h, err := wire.ParseHeaderWith(s.rest, s.negotiated)
		if err != nil {
			s.err = err
			return
		}
		if h.Length > s.limit {
			s.err = wire.Errorf(wire.FrameTooLarge, "%s frame of %d bytes, want at most %d", h.Type, h.Length, s.limit)
			return
		}
		end := wire.HeaderSize + int(h.Length)
		if len(s.rest) < end {
			return
		}
		s.frames = append(s.frames, s.rest[:end:end])
		s.rest = s.rest[end:]
	}
}

// metadataOf returns the metadata block of a parsed body, or nil.
func metadataOf(v any) []byte {
	switch v := v.(type) {
	case wire.Request:
		return v.Metadata
	case wire.Reply:
		return v.Metadata
	case wire.ErrorBody:
		return v.Metadata
	case endBody:
		return v
	}
	return nil
}

// The results that package wire alone can determine for a stream.
const (
	goesOn     = "every frame is well-formed"
	incomplete = "the last frame is not complete"
)

// judge parses a whole stream of frames and returns the effect: goesOn, incomplete, the reason for
// which the connection closes, or the code of the first call that fails.
func judge(stream []byte) string {
	settings := wire.DefaultSettings()
	s := splitter{limit: uint32(settings.MaxFrame)}
	s.feed(stream)
	verdict := goesOn
	for _, frame := range s.frames {
		_, v, err := parseFrame(frame, 0)
		if err == nil {
			_, err = wire.ParseMetadata(metadataOf(v), settings.MaxMetadata)
		}
		var closed *wire.Error
		var failed *wire.CallError
		switch {
		case errors.As(err, &closed):
			return "close " + closed.Reason.String()
		case errors.As(err, &failed) && verdict == goesOn:
			verdict = "fail " + failed.Code.String()
		}
	}
	var closed *wire.Error
	switch {
	case errors.As(s.err, &closed):
		return "close " + closed.Reason.String()
	case len(s.rest) > 0 && verdict == goesOn:
		return incomplete
	}
	return verdict
}

// hostileStream is a bad input that every reader of frames must survive. The number is that of the
// project's list; several streams may have the same number.
type hostileStream struct {
	number int
	name   string
	stream []byte
	want   string
}

func (h hostileStream) String() string { return fmt.Sprintf("%d %s", h.number, h.name) }

// rawFrame returns a frame with any header.
func rawFrame(length uint32, typ wire.Type, flags wire.Flags, id uint64, body ...byte) []byte {
	return append(wire.AppendHeader(nil, wire.Header{Length: length, Type: typ, Flags: flags, ID: id}), body...)
}

// requestWith returns a request with a metadata block.
func requestWith(block []byte) []byte {
	return wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 1, Metadata: block, Payload: []byte("payload")})
}

func requestWithPairs(pairs ...wire.Pair) []byte { return requestWith(wire.AppendMetadata(nil, pairs)) }

// patched returns b with a 32-bit number stored at an offset.
func patched(b []byte, at int, n uint32) []byte {
	binary.LittleEndian.PutUint32(b[at:], n)
	return b
}

func hostileStreams() []hostileStream {
	return slices.Concat(hostileFrames(), hostileStates(), hostileMetadata())
}

// hostileFrames are rejected by their own bytes.
func hostileFrames() []hostileStream {
	const badFrame = "close BAD_FRAME"
	maxFrame := uint32(wire.DefaultSettings().MaxFrame)
	ping := wire.AppendPing(nil, wire.TypePing, 1)
	reserved := slices.Clone(ping)
	reserved[6] = 1
	request := wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 1, Payload: []byte("payload")})
	failure := wire.AppendError(nil, 1, 0, &wire.ErrorBody{Code: wire.Aborted, Outcome: wire.Executed, Message: "message"})
	random := make([]byte, 4096)
	_, _ = rand.NewChaCha8([32]byte{30}).Read(random)
	timeout := func(t uint64) []byte { return wire.AppendRequest(nil, 1, 0, &wire.Request{Timeout: t}) }
	const messageLength = wire.HeaderSize + 8
	return []hostileStream{
		{1, "wrong magic where a frame is due", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), badFrame},
		{2, "a preface of version 2 where a frame is due", slices.Concat([]byte("\xA5NSR\x02\x00\x00\x00"), ping), "close BAD_ID"},
		{3, "reserved bits set", reserved, badFrame},
		{4, "unknown frame type", rawFrame(0, 0x10, 0, 0), badFrame},
		{4, "frame type 0", rawFrame(0, 0, 0, 0), badFrame},
		{4, "unknown frame type marked skippable", rawFrame(1, 0xFE, 0xFF, 9, 1), goesOn},
		{4, "unknown flag", rawFrame(0, wire.TypeCancel, 0x40, 1), badFrame},
		{5, "METHOD of length 0", rawFrame(0, wire.TypeMethod, 0, 0), "close BAD_METHOD"},
		{5, "REQUEST of length 0", rawFrame(0, wire.TypeRequest, 0, 1), badFrame},
		{5, "REPLY of length 0", rawFrame(0, wire.TypeReply, 0, 1), badFrame},
		{5, "ERROR of length 0", rawFrame(0, wire.TypeError, 0, 1), badFrame},
		{5, "DRAIN of length 0", rawFrame(0, wire.TypeDrain, 0, 0), badFrame},
		{5, "DATA of length 0", rawFrame(0, wire.TypeData, 0, 1), badFrame},
		{5, "WINDOW of length 0", rawFrame(0, wire.TypeWindow, 0, 1), badFrame},
		{5, "CANCEL with a body", rawFrame(1, wire.TypeCancel, 0, 1, 0), badFrame},
		{6, "length = limit", rawFrame(maxFrame, wire.TypeRequest, 0, 1), incomplete},
		{6, "length = limit + 1", rawFrame(maxFrame+1, wire.TypeRequest, 0, 1), "close FRAME_TOO_LARGE"},
		{7, "length 0xFFFFFFFF", rawFrame(0xFFFFFFFF, wire.TypeReply, 0, 1), "close FRAME_TOO_LARGE"},
		{8, "declared far more than sent", rawFrame(maxFrame, wire.TypeRequest, 0, 1, request[wire.HeaderSize:]...), incomplete},
		{9, "inner length beyond outer", patched(slices.Clone(failure), messageLength, 8), badFrame},
		{10, "inner lengths overflow 32 bits", patched(slices.Clone(failure), messageLength, 0xFFFFFFF4), badFrame},
		{11, "bytes after the trailers of END", rawFrame(7, wire.TypeEnd, wire.FlagMetadata, 1, 2, 0, 0, 0, 0, 0, 9), badFrame},
		{12, "truncated header", request[:wire.HeaderSize-1], incomplete},
		{13, "one byte of a header", request[:1], incomplete},
		{16, "REQUEST with id 0", rawFrame(16, wire.TypeRequest, 0, 0, make([]byte, 16)...), "close BAD_ID"},
		{16, "PING with an id", rawFrame(8, wire.TypePing, 0, 1, make([]byte, 8)...), "close BAD_ID"},
		{21, "window increment 0", wire.AppendWindow(nil, 1, 0), "fail INVALID_ARGUMENT"},
		{21, "window increment 0 for the connection", wire.AppendWindow(nil, 0, 0), "close FLOW_CONTROL"},
		{22, "window increment of 2^31", wire.AppendWindow(nil, 1, 1<<31), "close FLOW_CONTROL"},
		{24, "ping of 7 bytes", rawFrame(7, wire.TypePing, 0, 0, make([]byte, 7)...), badFrame},
		{24, "pong of 9 bytes", rawFrame(9, wire.TypePong, 0, 0, make([]byte, 9)...), badFrame},
		{26, "settings with a key twice", rawFrame(20, wire.TypeSettings, 0, 0, make([]byte, 20)...), badFrame},
		{26, "settings of 65 entries", rawFrame(650, wire.TypeSettings, 0, 0, make([]byte, 650)...), badFrame},
		{30, "random bytes", random, badFrame},
		{41, "deadline -1", timeout(1<<64 - 1), "fail INVALID_ARGUMENT"},
		{41, "deadline 2^63", timeout(1 << 63), "fail INVALID_ARGUMENT"},
	}
}

// hostileStates are well-formed: rejecting them requires the state of the connection.
func hostileStates() []hostileStream {
	request := func(id uint64, flags wire.Flags) []byte {
		return wire.AppendRequest(nil, id, flags, &wire.Request{Method: 1, Codec: 1, Payload: []byte("payload")})
	}
	data := func(id uint64, flags wire.Flags, payload string) []byte {
		b := append(wire.AppendDataHead(nil, id, flags, 1, 0), payload...)
		wire.PutLength(b, uint32(len(b)-wire.HeaderSize))
		return b
	}
	reply := append(wire.AppendReplyHead(nil, 1, 0, 1, 0, nil), "payload"...)
	wire.PutLength(reply, uint32(len(reply)-wire.HeaderSize))
	settings := wire.AppendSettings(nil, wire.DefaultSettings())
	garbage := wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 3, Payload: []byte("{} garbage")})
	cancelled := slices.Concat(request(1, 0), wire.AppendCancel(nil, 1))
	return []hostileStream{
		{11, "garbage after the message", garbage, goesOn},
		{14, "duplicate live id", slices.Concat(request(1, 0), request(1, 0)), goesOn},
		{15, "decreasing id", slices.Concat(request(2, 0), request(1, 0)), goesOn},
		{15, "id of the other side", request(1<<63, 0), goesOn},
		{17, "response sent to a server", reply, goesOn},
		{18, "data for an unknown stream", bytes.Repeat(data(9, 0, "x"), 101), goesOn},
		{19, "data after end", slices.Concat(request(1, wire.FlagStream), wire.AppendEnd(nil, 1, nil), data(1, 0, "x")), goesOn},
		{20, "window overrun", slices.Concat(request(1, wire.FlagStream), data(1, 0, strings.Repeat("x", 4096))), goesOn},
		{22, "window sum beyond 2^31-1", bytes.Repeat(wire.AppendWindow(nil, 0, 1<<31-1), 2), goesOn},
		{23, "ping flood", bytes.Repeat(wire.AppendPing(nil, wire.TypePing, 1), 100), goesOn},
		{25, "open and cancel", bytes.Repeat(cancelled, 20), goesOn},
		{26, "settings flood", bytes.Repeat(settings, 50), goesOn},
		{27, "many streams", slices.Concat(request(1, wire.FlagStream), request(2, wire.FlagStream), request(3, wire.FlagStream)), goesOn},
		{28, "flood of empty data", slices.Concat(request(1, wire.FlagStream), bytes.Repeat(data(1, wire.FlagMore, ""), 100)), goesOn},
		{29, "DRAIN from a client in a call", slices.Concat(request(1, 0), wire.AppendDrain(nil, 0, 1000)), goesOn},
		{39, "two authentication keys", requestWithPairs(wire.Pair{Key: "authorization", Value: "a"}, wire.Pair{Key: "authorization", Value: "b"}), goesOn},
		{42, "a message that never ends", slices.Concat(request(1, wire.FlagStream), bytes.Repeat(data(1, wire.FlagMore, "x"), 100)), goesOn},
	}
}

func hostileMetadata() []hostileStream {
	const badMetadata = "close BAD_METADATA"
	block := func(length uint32, count uint16, entries ...byte) []byte {
		b := binary.LittleEndian.AppendUint32(nil, length)
		return append(binary.LittleEndian.AppendUint16(b, count), entries...)
	}
	many := func(n int) []byte {
		pairs := make([]wire.Pair, n)
		for i := range pairs {
			pairs[i].Key = "k"
		}
		return requestWithPairs(pairs...)
	}
	pair := func(key, value string) []byte { return requestWithPairs(wire.Pair{Key: key, Value: value}) }
	return []hostileStream{
		{31, "key length beyond the block", requestWith(block(4, 1, 3, 0)), badMetadata},
		{31, "key length 65535", requestWith(block(5, 1, 0xFF, 0xFF, 'k')), badMetadata},
		{32, "block length 0xFFFFFFFC", requestWith(block(0xFFFFFFFC, 1)), badMetadata},
		{32, "value length 0xFFFFFFFC", requestWith(block(9, 1, 1, 0, 'k', 0xFC, 0xFF, 0xFF, 0xFF)), badMetadata},
		{33, "a key without a value", requestWith(block(5, 1, 1, 0, 'k')), badMetadata},
		{33, "an entry more than there is", requestWith(block(9, 2, 1, 0, 'k', 0, 0, 0, 0)), badMetadata},
		{33, "an entry less than there is", requestWith(block(9, 0, 1, 0, 'k', 0, 0, 0, 0)), badMetadata},
		{34, "10,000 keys", many(10_000), "fail RESOURCE_EXHAUSTED"},
		{35, "over 64 KiB", pair("k", strings.Repeat("v", 64<<10)), "fail RESOURCE_EXHAUSTED"},
		{36, "empty key", pair("", "v"), "fail INVALID_ARGUMENT"},
		{37, "invalid UTF-8 key", pair("k\xC3\x28", "v"), "fail INVALID_ARGUMENT"},
		{38, "CR in a value", pair("k", "v\r"), "fail INVALID_ARGUMENT"},
		{38, "LF in a value", pair("k", "v\nk: v"), "fail INVALID_ARGUMENT"},
		{38, "NUL in a value", pair("k", "\x00"), "fail INVALID_ARGUMENT"},
		{40, "reserved key from a peer", pair("anser-token", "v"), "fail INVALID_ARGUMENT"},
	}
}

func TestHostileStreams(t *testing.T) {
	for _, h := range hostileStreams() {
		t.Run(h.String(), func(t *testing.T) {
			if got := judge(h.stream); got != h.want {
				t.Errorf("the verdict is %q, want %q", got, h.want)
			}
		})
	}
}

// A stream that is truncated anywhere closes the connection in the same way as the whole one
// would.
func TestHostileStreamsTruncated(t *testing.T) {
	for _, h := range hostileStreams() {
		for n := range min(len(h.stream), 512) {
			got := judge(h.stream[:n])
			if strings.HasPrefix(got, "close") && got != h.want {
				t.Fatalf("%s, cut at %d: the verdict is %q, want %q", h, n, got, h.want)
			}
		}
	}
}
