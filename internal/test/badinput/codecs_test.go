package badinput_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/testusage"
	"github.com/anser-rpc/anser/wire"
)

// payload is a row about a payload, in a request to a method, and in a reply in the same codec if
// a client can have requested it.
func payload(number int, name string, method uint32, codec uint8, data string, code wire.Code) row {
	r := row{number: number, name: name, toServer: toServer{
		send: wire.AppendRequest(nil, firstBadID, 0, &wire.Request{Method: method, Codec: codec, Priority: 2, Payload: []byte(data)}),
		want: fail(code),
	}}
	if method == badStruct && (codec == 3 || codec == 5) {
		r.toClient = toClient{codec: codec, reply: replyIn(codec, data)}
	}
	return r
}

// stuck is a message whose decoder blocks until the test releases it.
type stuck struct{}

var unstuck atomic.Pointer[chan struct{}]

func (*stuck) MarshalBinary() ([]byte, error) { return []byte("x"), nil }

func (*stuck) UnmarshalBinary([]byte) error {
	<-*unstuck.Load()
	return errors.New("too late")
}

// Row 63: the call ends at its deadline, and its connection still works.
func TestDecoderThatNeverReturns(t *testing.T) {
	for _, over := range transports {
		t.Run("row63/"+over.name, func(t *testing.T) {
			held.note(t, 63)
			testusage.Leaves(t, func() {
				t.Run("call", func(t *testing.T) {
					g := newTarget(t, over)
					release := make(chan struct{})
					unstuck.Store(&release)
					t.Cleanup(func() { close(release) })
					// A slow machine may not send a call before its deadline. The
					// next one has more time.
					for limit := impatience; limit < bound; limit *= 4 {
						_, err := anser.Call[stuck](context.Background(), g.good[0], "Bad.Stuck", new(stuck), anser.WithFailMode(anser.Failfast), anser.Timeout(limit))
						if anser.CodeOf(err) != anser.DeadlineExceeded {
							t.Errorf("the call: %v, want it to end at its deadline", err)
						}
						if testusage.Soon(func() bool { return g.Stats().InFlight > 0 }) {
							break
						}
					}
					g.others(t)
					if n := g.Stats().InFlight; n != 1 {
						t.Errorf("%d calls in flight, want the one whose decoder runs on", n)
					}
					if n := g.bad.Load(); n != 0 {
						t.Errorf("the handler ran %d times", n)
					}
				})
			})
		})
	}
}

func replyIn(codec uint8, data string) func(id uint64) []byte {
	return func(id uint64) []byte {
		f := append(wire.AppendReplyHead(nil, id, 0, codec, 0, nil), data...)
		wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
		return f
	}
}

// codecRows are about payloads in the codecs that every server has. The codecs in modules of their
// own test theirs in codectest's suite, under the same numbers.
func codecRows() []row {
	const (
		raw, binary, json, proto, pack, gob = 1, 2, 3, 4, 5, 6
		invalid, unknown                    = wire.InvalidArgument, wire.Unimplemented
	)
	elsewhere := func(number int, name, where string) row {
		return row{number: number, name: name, note: "in the tests of " + where + ", a module of its own"}
	}
	rows := []row{
		payload(43, "unknown codec", badBytes, 99, "x", unknown),
		payload(43, "codec 0", badBytes, 0, "x", unknown),
		{number: 43, name: "a reply in an unknown codec", toClient: toClient{reply: replyIn(99, "x")}},
		payload(44, "a codec that the method does not take", badOnly, pack, "\x80", unknown),
		payload(45, "raw bytes to a struct", badStruct, raw, "some text", invalid),
		payload(45, "raw bytes to a protobuf message", badProto, raw, "some text", invalid),
		payload(47, "MessagePack array32 of 2^31", badStruct, pack, "\xdd\x80\x00\x00\x00", invalid),
		payload(48, "MessagePack map32 of 2^31", badStruct, pack, "\xdf\x80\x00\x00\x00", invalid),
		payload(49, "100,000 levels of MessagePack", badStruct, pack, strings.Repeat("\x91", 100_000)+"\xc0", invalid),
		payload(49, "100,000 levels of JSON", badStruct, json, strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000), invalid),
		payload(50, "bin32 of 2 GiB", badStruct, pack, "\xc6\x80\x00\x00\x00x", invalid),
		payload(50, "ext32 of 2 GiB", badStruct, pack, "\xc9\x80\x00\x00\x00\x01x", invalid),
		payload(51, "truncated fixext", badStruct, pack, "\xd6\xff\x00", invalid),
		payload(52, "JSON with a key twice", badStruct, json, `{"A":1,"A":2}`, invalid),
		payload(52, "JSON with NaN", badStruct, json, `{"A":NaN}`, invalid),
		payload(52, "JSON with 1e999999", badStruct, json, `{"A":1e999999}`, invalid),
		payload(53, "JSON number of 1 MB", badStruct, json, `{"A":`+strings.Repeat("9", 1<<20)+`}`, invalid),
		payload(54, "protobuf of depth 20,000", badProto, proto, strings.Repeat("\xa3\x06", 20_000)+strings.Repeat("\xa4\x06", 20_000), invalid),
		payload(55, "varint of 11 bytes", badProto, proto, "\x10"+strings.Repeat("\x80", 10)+"\x01", invalid),
		payload(56, "protobuf length 2^31", badProto, proto, "\x0a\x80\x80\x80\x80\x08x", invalid),
		payload(57, "JSON that is not UTF-8", badStruct, json, "{\"A\":\"\xff\"}", invalid),
		payload(57, "MessagePack string that is not UTF-8", badStruct, pack, "\x81\xa1\xff\x01", invalid),
		payload(58, "unknown fields, and the required ones missing", badProto, proto, string(bytes.Repeat([]byte{0xa0, 0x06, 0x01}, 100_000)), invalid),
		elsewhere(59, "thrift list of 2^31 or negative", "codec/thrift"),
		elsewhere(60, "thrift depth 1,000", "codec/thrift"),
		payload(61, "text for a number in JSON", badStruct, json, `{"A":"x"}`, invalid),
		payload(61, "text for a number in MessagePack", badStruct, pack, "\x81\xa1A\xa1x", invalid),
		payload(62, "a type's own method panics", badSelf, binary, "x", invalid),
		{number: 63, name: "a decoder that never returns", note: "in TestDecoderThatNeverReturns; not to a client: it is the caller's own decoder"},
		payload(64, "gob where it is off", badStruct, gob, "\x03\x04\x00\x0e", unknown),
		elsewhere(64, "FlatBuffers offsets beyond the buffer (64a)", "codec/flatbuffers"),
	}
	for codec, whole := range map[uint8]string{json: `{"A":1}`, pack: "\x82\xa1A\x07\xa1B\x08"} {
		for i := range len(whole) {
			rows = append(rows, payload(46, fmt.Sprintf("codec %d truncated at %d", codec, i), badStruct, codec, whole[:i], invalid))
		}
	}
	return rows
}
