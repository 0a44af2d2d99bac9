package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/anser-rpc/anser/wire"
)

// maxSeed bounds the seeds: mutating seeds of 64 KiB and more would take nearly all of the time,
// and the limits that they are about are covered by the tests.
const maxSeed = 4096

// goldenFiles returns the names of the golden files.
func goldenFiles(f *testing.F) []string {
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	return files
}

// seedFrames calls add with the whole frames of the golden files and the hostile streams.
func seedFrames(f *testing.F, add func(frame []byte)) {
	for _, name := range goldenFiles(f) {
		if name != "preface.hex" && name != "metadata.hex" {
			add(readHex(f, name))
		}
	}
	for _, h := range hostileStreams() {
		s := splitter{limit: 1 << 20, negotiated: wire.FlagCRC}
		s.feed(h.stream)
		for _, frame := range s.frames[:min(len(s.frames), 3)] { // the rest of a flood is the same
			if len(frame) <= maxSeed {
				add(frame)
			}
		}
	}
}

// wantFault fails the test unless err is nil or of one of the two types that the package
// documents.
func wantFault(t *testing.T, err error) {
	t.Helper()
	var closed *wire.Error
	var failed *wire.CallError
	if err != nil && !errors.As(err, &closed) && !errors.As(err, &failed) {
		t.Fatalf("an error of type %T: %v", err, err)
	}
}

func FuzzHeader(f *testing.F) {
	for _, name := range goldenFiles(f) {
		b := readHex(f, name)
		f.Add(b, false)
		f.Add(b, true)
	}
	for _, h := range hostileStreams() {
		f.Add(h.stream[:min(len(h.stream), wire.HeaderSize)], false)
	}
	f.Fuzz(func(t *testing.T, b []byte, crc bool) {
		if len(b) >= wire.PrefaceSize {
			if err := wire.ParsePreface(b); err == nil != bytes.Equal(b[:wire.PrefaceSize], wire.AppendPreface(nil)) {
				t.Fatalf("preface % X: %v", b[:wire.PrefaceSize], err)
			}
		}
		if len(b) < wire.HeaderSize {
			return // the caller waits for the rest
		}
		b = bytes.Clone(b[:wire.HeaderSize])
		var negotiated wire.Flags
		if crc {
			negotiated = wire.FlagCRC
		}
		h, err := wire.ParseHeaderWith(b, negotiated)
		var closed *wire.Error
		if err != nil {
			if !errors.As(err, &closed) || closed.Reason != wire.BadFrame && closed.Reason != wire.BadID && (closed.Reason != wire.BadChecksum || !crc) {
				t.Fatalf("an error that a header cannot have: %v", err)
			}
			return
		}
		again := wire.AppendHeader(nil, h)
		if crc {
			wire.PutHeaderCheck(again)
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("% X is read as %+v, which is written as % X", b, h, again)
		}
		// The negotiated flag is allowed on all frames, and no other one.
		plain, err := wire.ParseHeader(wire.AppendHeader(nil, h))
		if wasCRC := h.Flags&wire.FlagCRC != 0; crc && !wasCRC || (wasCRC && h.Type < wire.FirstSkippable) != (err != nil) || plain != h {
			t.Fatalf("%+v without what was negotiated: %+v, %v", h, plain, err)
		}
		if !crc {
			return
		}
		for bit := range 8 * wire.HeaderSize {
			b[bit/8] ^= 1 << (bit % 8)
			if _, err := wire.ParseHeaderWith(b, negotiated); err == nil {
				t.Fatalf("% X is taken, whose bit %d was flipped", b, bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
	})
}

// FuzzFrameStream parses a stream of frames in pieces, parses every body and encodes it again.
func FuzzFrameStream(f *testing.F) {
	var all []byte
	seedFrames(f, func(frame []byte) {
		all = append(all, frame...)
		f.Add(frame, true)
	})
	f.Add(all, true)
	f.Add(all, false)
	for _, h := range hostileStreams() {
		if len(h.stream) <= maxSeed {
			f.Add(h.stream, false)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, crc bool) {
		whole := splitter{limit: 1 << 16}
		if crc {
			whole.negotiated = wire.FlagCRC
		}
		inPieces := func(cuts ...int) {
			s := splitter{limit: whole.limit, negotiated: whole.negotiated}
			at := 0
			for _, cut := range append(cuts, len(stream)) {
				s.feed(stream[at:cut])
				at = cut
			}
			if !reflect.DeepEqual(s.frames, whole.frames) {
				t.Fatalf("cut at %d: frames are % X, want % X", cuts, s.frames, whole.frames)
			}
			if (s.err == nil) != (whole.err == nil) || s.err != nil && s.err.Error() != whole.err.Error() {
				t.Fatalf("cut at %d: error is %v, want %v", cuts, s.err, whole.err)
			}
		}
		whole.feed(stream)
		everywhere := make([]int, len(stream))
		for i := range everywhere {
			everywhere[i] = i
		}
		inPieces(everywhere...)
		// Splitting at every position takes quadratic time: in long streams some positions are
		// skipped.
		for cut := 0; cut < len(stream); cut += 1 + len(stream)/128 {
			inPieces(cut)
		}
		for _, frame := range whole.frames {
			checkFrame(t, frame, whole.negotiated)
		}
	})
}

// checkFrame parses a frame, and encodes it again if its encoding is unique.
func checkFrame(t *testing.T, frame []byte, negotiated wire.Flags) {
	h, v, err := parseFrame(frame, negotiated)
	wantFault(t, err)
	var closed *wire.Error
	if errors.As(err, &closed) {
		return
	}
	again := encodeFrame(h, v)
	if negotiated != 0 && h.Type >= wire.FirstSkippable {
		again = wire.AppendChecksum(again, 0)
	}
	if isCanonical(h, frame, v) && !bytes.Equal(again, frame) {
		t.Fatalf("% X is read as %+v, which is written as % X", frame, v, again)
	}
	if h.Flags&wire.FlagCRC == 0 {
		checkSummed(t, frame)
	}
	if block := metadataOf(v); block != nil {
		checkMetadata(t, block, 1<<16)
	}
}

// isCanonical reports whether the frame is the one that the append function would write for v.
func isCanonical(h wire.Header, frame []byte, v any) bool {
	body := frame[wire.HeaderSize:]
	switch v := v.(type) {
	case wire.Settings:
		return false // any order, unknown keys, defaults: FuzzSettings checks these
	case wire.ErrorBody:
		n := binary.LittleEndian.Uint32(body[8:])
		return v.Code == wire.Code(body[0]) && v.Outcome == wire.Outcome(body[1]) &&
			utf8.Valid(body[wire.ErrorSize:wire.ErrorSize+n])
	case closeBody:
		if h.Flags&wire.FlagCRC != 0 {
			body = body[:len(body)-wire.ChecksumSize]
		}
		return utf8.Valid(body[4:])
	}
	return true
}

// checkSummed adds a checksum to a frame, and checks that it is verified and removed.
func checkSummed(t *testing.T, frame []byte) {
	summed := wire.AppendChecksum(bytes.Clone(frame), 0)
	body, err := wire.CheckChecksum(summed[:wire.HeaderSize], summed[wire.HeaderSize:])
	if err != nil || !bytes.Equal(body, frame[wire.HeaderSize:]) {
		t.Fatalf("with a checksum, % X has the body % X, %v", frame, body, err)
	}
	summed[len(summed)-1]++
	_, err = wire.CheckChecksum(summed[:wire.HeaderSize], summed[wire.HeaderSize:])
	wantReason(t, err, wire.BadChecksum)
}

func FuzzMetadata(f *testing.F) {
	f.Add(readHex(f, "metadata.hex"), uint32(1<<16))
	f.Add(wire.AppendMetadata(nil, make([]wire.Pair, wire.MaxPairs+1)), uint32(1<<16))
	seedFrames(f, func(frame []byte) {
		if _, v, err := parseFrame(frame, wire.FlagCRC); err == nil && metadataOf(v) != nil {
			f.Add(metadataOf(v), uint32(1<<16))
		} else if len(frame) > wire.HeaderSize+wire.RequestSize {
			f.Add(frame[wire.HeaderSize+wire.RequestSize:], uint32(64)) // invalid blocks
		}
	})
	f.Fuzz(func(t *testing.T, block []byte, limit uint32) { checkMetadata(t, block, uint64(limit)) })
}

func checkMetadata(t *testing.T, block []byte, limit uint64) {
	pairs, err := wire.ParseMetadata(block, limit)
	wantFault(t, err)
	if err != nil {
		if pairs != nil {
			t.Fatalf("both %q and %v", pairs, err)
		}
		return
	}
	if uint64(len(block)) > limit || len(pairs) > wire.MaxPairs {
		t.Fatalf("a block of %d bytes with %d pairs is over the limits", len(block), len(pairs))
	}
	for _, p := range pairs {
		if err := wire.CheckPair(p); err != nil {
			t.Fatalf("%q was let through: %v", p, err)
		}
	}
	last := make(map[string]string)
	for _, p := range pairs {
		last[p.Key] = p.Value
	}
	for k, v := range last {
		if got := wire.MetadataValue(block, k); got != v {
			t.Fatalf("the value of %q is %q, want %q", k, got, v)
		}
	}
	if again := wire.AppendMetadata(nil, pairs); !bytes.Equal(again, block) {
		t.Fatalf("% X is read as %q, which is written as % X", block, pairs, again)
	}
}

func FuzzSettings(f *testing.F) {
	seedFrames(f, func(frame []byte) {
		if h, err := wire.ParseHeader(frame); err == nil && h.Type == wire.TypeSettings {
			f.Add(frame[wire.HeaderSize:])
		}
	})
	f.Add(settingsBody(entry{1, 1023}))
	f.Add(settingsBody(entry{8, 1<<64 - 1}, entry{9, 1}, entry{7, 1 << 31}))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := wire.ParseSettings(body)
		if err != nil {
			wantReason(t, err, wire.BadFrame)
			return
		}
		for _, v := range []uint64{
			s.MaxFrame, s.MaxCalls, s.MaxMetadata, s.MaxStreams, s.StreamWindow, s.ConnWindow, s.MinPing,
		} {
			if v > 1<<31-1 {
				t.Fatalf("%+v has a value that does not fit", s)
			}
		}
		again, err := wire.ParseSettings(wire.AppendSettings(nil, s)[wire.HeaderSize:])
		if err != nil || again != s {
			t.Fatalf("%+v is written and read as %+v, %v", s, again, err)
		}
	})
}

func FuzzError(f *testing.F) {
	seedFrames(f, func(frame []byte) {
		if h, err := wire.ParseHeader(frame); err == nil && h.Type == wire.TypeError {
			f.Add(byte(h.Flags), frame[wire.HeaderSize:])
		}
	})
	f.Fuzz(func(t *testing.T, flags byte, body []byte) {
		allowed := wire.Flags(flags) & (wire.FlagMetadata | wire.FlagIdempotent)
		e, err := wire.ParseError(allowed, body)
		wantFault(t, err)
		if err != nil {
			return
		}
		if e.Code == wire.OK || e.Code > wire.UnauthenticatedCall || e.Outcome == wire.NotSent || e.Outcome > wire.Executed {
			t.Fatalf("a peer stated %s and %s", e.Code, e.Outcome)
		}
		if !utf8.ValidString(e.Message) || len(e.Message) > 3*wire.MaxMessage {
			t.Fatalf("message of %d bytes: %q", len(e.Message), e.Message)
		}
		// A parsed error can be forwarded, and is then parsed the same, except for a message that
		// grew beyond its limit.
		frame := wire.AppendError(nil, 1, allowed, &e)
		checkFrame(t, frame, 0)
		again, err := wire.ParseError(allowed, frame[wire.HeaderSize:])
		if err != nil || len(e.Message) <= wire.MaxMessage && !reflect.DeepEqual(again, e) {
			t.Fatalf("%+v is written and read as %+v, %v", e, again, err)
		}
	})
}
