package wire_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// readHex reads a golden file: hexadecimal bytes, one field per line, and comments that begin with
// #.
func readHex(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for n, line := range strings.Split(string(text), "\n") {
		digits, _, _ := strings.Cut(line, "#")
		field, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatalf("%s:%d: %v", name, n+1, err)
		}
		b = append(b, field...)
	}
	return b
}

type goldenFrame struct {
	header wire.Header // without the length
	value  any         // result of parseFrame
}

// goldenFrames returns the contents of the golden files with a frame.
func goldenFrames() map[string]goldenFrame {
	settings := wire.DefaultSettings()
	settings.MaxFrame, settings.MaxCalls, settings.Features = 1<<20, 256, wire.FeatureCRC
	session := wire.DefaultSettings()
	session.MaxCalls, session.Session = 100, 0xF8462A937EB10C5D
	sums := wire.DefaultSettings()
	sums.Features = wire.FeatureCRC | wire.FeatureCRCWanted
	life := wire.DefaultSettings()
	life.Life, life.KeyAge = 0xA13B58E607D2419C, 300_000
	authenticates := wire.DefaultSettings()
	authenticates.Features = wire.FeatureAuth
	parted := wire.DefaultSettings()
	parted.Features = wire.FeatureParts
	large := wire.AppendRequest(nil, 7, 0, &wire.Request{
		Method: 1, Codec: 1, Priority: 2, Timeout: 1_000_000, Payload: []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"),
	})
	wire.PutLength(large, wire.RequestSize+1<<20)
	plain := wire.Request{
		Method: 1, Codec: 4, Priority: 2, Timeout: 1_000_000, Payload: []byte{0x08, 7, 0x10, 8},
	}
	traced, described, both, oneway, stream := plain, plain, plain, plain, plain
	traced.Trace = someTrace
	described.Metadata = someMetadata
	both.Trace, both.Metadata, both.Attempt, both.Priority = someTrace, someMetadata, 1, 3
	oneway.Timeout, oneway.Priority = 0, 0
	stream.Payload = []byte{}
	packed, asking, compressions := plain, plain, wire.DefaultSettings()
	packed.Compression, packed.Payload = 3, []byte{4, 0x0C, 0x08, 7, 0x10, 8}
	asking.Compression = 4
	lost := plain
	lost.Payload = []byte{0x08, 7, 0x10, 8, 0x25, 0x57, 0x69, 0x99}
	for id := range uint8(5) {
		compressions.AddCompression(id + 1)
	}
	compressions.AddCompression(64)
	trailers := wire.AppendMetadata(nil, []wire.Pair{{Key: "took-us", Value: "42"}})

	keyed := plain
	keyed.Attempt = 1
	keyed.Metadata = wire.AppendMetadata(nil, []wire.Pair{{Key: "anser-idempotency-key", Value: "QKJ6-41"}})
	server := plain
	server.Codec, server.Payload = 5, []byte{0x92, 38, 7}

	header := func(typ wire.Type, flags wire.Flags, id uint64) wire.Header {
		return wire.Header{Type: typ, Flags: flags, ID: id}
	}
	return map[string]goldenFrame{
		"settings.hex":                {header(1, 0, 0), settings},
		"settings_session.hex":        {header(1, 0, 0), session},
		"settings_life.hex":           {header(1, 0, 0), life},
		"settings_checksums.hex":      {header(1, 0, 0), sums},
		"request_checksum_lost.hex":   {header(3, 0, 1), lost},
		"settings_auth.hex":           {header(1, 0, 0), authenticates},
		"settings_parts.hex":          {header(1, 0, 0), parted},
		"settings_compressions.hex":   {header(1, 0, 0), compressions},
		"request_compressed.hex":      {header(3, wire.FlagForced, 1), packed},
		"request_plain.hex":           {header(3, wire.FlagPlain, 1), asking},
		"reply_compressed.hex":        {header(4, 0, 1), wire.Reply{Codec: 4, Compression: 3, Payload: []byte{2, 4, 0x08, 56}}},
		"settings_defaults.hex":       {header(1, 0, 0), wire.DefaultSettings()},
		"method.hex":                  {header(2, 0, 0), methodBody{1, "Arith.Mul"}},
		"request.hex":                 {header(3, 0, 1), plain},
		"request_trace.hex":           {header(3, wire.FlagTrace, 1), traced},
		"request_metadata.hex":        {header(3, wire.FlagMetadata, 1), described},
		"request_trace_metadata.hex":  {header(3, wire.FlagTrace|wire.FlagMetadata, 258), both},
		"request_idempotency_key.hex": {header(3, wire.FlagMetadata, 3), keyed},
		"request_oneway.hex":          {header(3, wire.FlagOneway, 1), oneway},
		"request_stream.hex":          {header(3, wire.FlagStream, 7), stream},
		"request_checksum.hex":        {header(3, wire.FlagCRC, 1), plain},
		"request_server.hex":          {header(3, 0, 1<<63+1), server},
		"reply.hex":                   {header(4, 0, 1), wire.Reply{Codec: 4, Payload: []byte{0x08, 56}}},
		"reply_trailers.hex": {header(4, wire.FlagMetadata|wire.FlagIdempotent, 1), wire.Reply{
			Codec: 4, Metadata: trailers, Payload: []byte{0x08, 56},
		}},
		"error.hex": {header(5, 0, 1), wire.ErrorBody{
			Code: wire.ResourceExhausted, Outcome: wire.Refused, RetryAfter: 250, Message: "too many calls", Details: []byte{},
		}},
		"error_details.hex": {header(5, wire.FlagMetadata, 1), wire.ErrorBody{
			Code: wire.FailedPrecondition, Outcome: wire.Executed, RetryAfter: wire.RetryNever, Message: "no such account",
			Metadata: wire.AppendMetadata(nil, []wire.Pair{{Key: "shard", Value: "7"}}), Details: []byte{0x0A, 1, 'x'},
		}},
		"cancel.hex":       {header(6, 0, 2), cancelBody{}},
		"ping.hex":         {header(7, 0, 0), pingBody(0x0807060504030201)},
		"pong.hex":         {header(8, 0, 0), pingBody(0x0807060504030201)},
		"drain.hex":        {header(9, 0, 0), drainBody(30_000)},
		"drain_ack.hex":    {header(9, wire.FlagAck, 0), drainBody(0)},
		"close.hex":        {header(10, 0, 0), closeBody{wire.Normal, "server is stopping"}},
		"data.hex":         {header(11, 0, 7), dataBody{4, 0, []byte{0x08, 7, 0x10, 8}}},
		"data_more.hex":    {header(11, wire.FlagMore, 7), dataBody{4, 0, []byte{0x08, 7}}},
		"end.hex":          {header(12, 0, 7), endBody(nil)},
		"end_trailers.hex": {header(12, wire.FlagMetadata, 7), endBody(trailers)},
		"window.hex":       {header(13, 0, 7), windowBody(65_536)},
		"window_conn.hex":  {header(13, 0, 0), windowBody(65_536)},
		"auth.hex":         {header(14, 0, 0), authBody{"token", []byte("open-sesame-42")}},
		"part_first.hex":   {header(15, 0, 7), partBody(large)},
		"part_early.hex":   {header(15, 0, 7), partBody{}},
		"skippable.hex":    {header(0x80, 0xFF, 5), unknownBody{1, 2, 3}},
	}
}

func TestGoldenFrames(t *testing.T) {
	for name, golden := range goldenFrames() {
		t.Run(name, func(t *testing.T) {
			want := readHex(t, name)
			if got := encodeFrame(golden.header, golden.value); !bytes.Equal(got, want) {
				t.Errorf("appended\n% X, want\n% X", got, want)
			}
			negotiated := golden.header.Flags & wire.FlagCRC
			if golden.header.Type >= wire.FirstSkippable {
				negotiated = 0 // without a negotiation, all flags are allowed
			}
			h, value, err := parseFrame(want, negotiated)
			if err != nil {
				t.Fatal(err)
			}
			header := golden.header
			header.Length = uint32(len(want) - wire.HeaderSize)
			if h != header {
				t.Errorf("header is %+v, want %+v", h, header)
			}
			if !reflect.DeepEqual(value, golden.value) {
				t.Errorf("parsed\n%+v, want\n%+v", value, golden.value)
			}
		})
	}
}

func TestGoldenPreface(t *testing.T) {
	want := readHex(t, "preface.hex")
	if got := wire.AppendPreface(nil); !bytes.Equal(got, want) {
		t.Errorf("appended % X, want % X", got, want)
	}
	if err := wire.ParsePreface(want); err != nil {
		t.Error(err)
	}
}

// On a connection with checksums an ignored frame has one, too, so that a flipped bit cannot turn
// another frame into an ignored one.
func TestGoldenSkippableChecksum(t *testing.T) {
	want := readHex(t, "skippable_checksum.hex")
	frame := append(wire.AppendHeader(nil, wire.Header{Length: 3, Type: 0x80, ID: 5}), 1, 2, 3)
	if got := wire.AppendChecksum(frame, 0); !bytes.Equal(got, want) {
		t.Errorf("appended % X, want % X", got, want)
	}
	if _, value, err := parseFrame(want, wire.FlagCRC); err != nil || !reflect.DeepEqual(value, unknownBody{1, 2, 3}) {
		t.Errorf("parsed %v, %v", value, err)
	}
	_, _, err := parseFrame(readHex(t, "reply.hex"), wire.FlagCRC)
	wantReason(t, err, wire.BadChecksum)
	_, _, err = parseFrame(readHex(t, "request_checksum_lost.hex"), wire.FlagCRC)
	wantReason(t, err, wire.BadChecksum)
	reply := wire.AppendChecksum(readHex(t, "reply.hex"), 0)
	reply[4] ^= byte(wire.FirstSkippable)
	_, _, err = parseFrame(reply, wire.FlagCRC)
	wantReason(t, err, wire.BadChecksum)
}

func TestGoldenMetadata(t *testing.T) {
	want := readHex(t, "metadata.hex")
	pairs := []wire.Pair{{Key: "tenant", Value: "acme"}, {Key: "cursor-bin", Value: "\x00\xFF\r\n"}, {Key: "note"}}
	if got := wire.AppendMetadata(nil, pairs); !bytes.Equal(got, want) {
		t.Errorf("appended % X, want % X", got, want)
	}
	if got, err := wire.ParseMetadata(want, noLimit); err != nil || !reflect.DeepEqual(got, pairs) {
		t.Errorf("parsed %q, %v; want %q", got, err, pairs)
	}
}

// Every golden file must be used.
func TestGoldenFilesAreAllTested(t *testing.T) {
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil {
		t.Fatal(err)
	}
	frames := goldenFrames()
	for _, file := range files {
		name := filepath.Base(file)
		if _, ok := frames[name]; !ok && name != "preface.hex" && name != "metadata.hex" && name != "skippable_checksum.hex" {
			t.Errorf("%s belongs to no test", file)
		}
	}
}

var hexBlock = regexp.MustCompile("(?ms)^```hex *([^\n]*)\n(.*?)^```$")

// The examples in the protocol are the golden files.
func TestProtocolShowsGoldenFiles(t *testing.T) {
	page, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, block := range hexBlock.FindAllStringSubmatch(string(page), -1) {
		name, text := block[1], block[2]
		shown[name] = true
		file, err := os.ReadFile(filepath.Join("testdata", filepath.Base(name)))
		if err != nil {
			t.Errorf("a hex block names %q: %v", name, err)
		} else if text != string(file) {
			t.Errorf("the block %s in docs/protocol.md is not the golden file:\n%s", name, text)
		}
	}
	for _, name := range []string{
		"preface.hex", "settings.hex", "settings_session.hex", "settings_auth.hex", "auth.hex", "request_server.hex", "method.hex", "request.hex", "request_trace_metadata.hex", "reply.hex",
		"error.hex", "cancel.hex", "ping.hex", "drain.hex", "close.hex", "data.hex", "end_trailers.hex", "window.hex", "request_checksum.hex", "settings_checksums.hex", "request_checksum_lost.hex", "skippable_checksum.hex", "metadata.hex", "settings_parts.hex", "part_first.hex", "part_early.hex",
	} {
		if !shown[name] {
			t.Errorf("docs/protocol.md has no block ```hex %s", name)
		}
	}
}
