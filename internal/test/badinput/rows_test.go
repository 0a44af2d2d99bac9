package badinput_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// The methods that every bad client names before its bad input, in this order.
const (
	badBytes   = 1 // must not run
	badStruct  = 2 // takes a struct, must not run
	goodEcho   = 3
	goodWait   = 4 // returns when its context ends
	goodSlow   = 5 // replies after a moment
	badProto   = 6 // takes a protobuf message, must not run
	badSelf    = 7 // takes a type whose own method panics, must not run
	badOnly    = 8 // takes JSON only, must not run
	goodHold   = 9 // a stream that receives nothing until its context ends
	firstBadID = 1
	goodID     = 1 << 20 // of the call after a bad one
)

const maxStreams = 8 // of the server, per connection

type kind int // the effect of a row

const (
	works    kind = iota // nothing fails
	closes               // C: the connection closes with the reason
	fails                // S: the call fails with code and outcome, and the connection stays open
	breaks               // S: the same for a stream whose handler runs
	refused              // X: the connection closes with the reason before the end of the handshake
	finishes             // the call is answered, then the connection closes with the reason
)

// want is the effect of a row.
type want struct {
	kind    kind
	reason  wire.Reason
	code    wire.Code
	outcome wire.Outcome
	replies bool // the call with firstBadID is good, too: it is answered
}

func ends(r wire.Reason) want   { return want{kind: closes, reason: r} }
func refuse(r wire.Reason) want { return want{kind: refused, reason: r} }
func fail(c wire.Code) want     { return want{kind: fails, code: c, outcome: wire.Refused} }

func breakStream(c wire.Code) want {
	return want{kind: breaks, code: c, outcome: wire.OutcomeUnknown}
}

// row is one bad input. Several rows may have the same number.
type row struct {
	number int
	name   string
	toServer
	toClient
	note string // why the row is not tested here, or differently
}

// toServer is the row as sent by a client. Without bytes it is skipped.
type toServer struct {
	instead []byte // in place of preface and settings
	send    []byte // after preface, settings and methods
	want    want
	failing uint64 // ID of the call that fails, if not firstBadID
	sealed  bool   // the frames of the connection have checksums, which are part of send
	// asMuchAs is a good request with the same cost for a server, if the number and length of the
	// frames do not show it.
	asMuchAs []byte
	manner
}

// toClient is the row as sent by a server. Without functions it is skipped.
type toClient struct {
	hello func() []byte          // in place of preface and settings
	reply func(id uint64) []byte // to a request
	good  bool                   // the call succeeds, with the following data
	opens bool                   // it opens a stream
	codec uint8                  // of the request: 3 or 5, otherwise raw
	how   manner
	why   wire.Reason // with which the client closes the connection, unless 0

	compressor compress.Compressor // requested by the client; nil: none
	sealed     bool                // as in toServer
}

// manner is the behaviour after the bytes.
type manner struct {
	hangup  bool // close the connection after them
	trickle bool // send a byte now and then
	stall   bool // send nothing more; the receiver is impatient
	late    bool // with stall: the receiver is patient, and has a ReadTimeout
	// flood returns the i-th of an unlimited number of further messages.
	flood func(i int) []byte
}

func frame(length uint32, typ wire.Type, flags wire.Flags, id uint64, body ...byte) []byte {
	return append(wire.AppendHeader(nil, wire.Header{Length: length, Type: typ, Flags: flags, ID: id}), body...)
}

func bad(id uint64) []byte { return wirepeer.Request(id, badBytes, []byte("bad")) }

func badWith(block []byte) []byte {
	return wire.AppendRequest(nil, firstBadID, 0, &wire.Request{Method: badBytes, Codec: 1, Priority: 2, Metadata: block})
}

func pairs(p ...wire.Pair) []byte { return wire.AppendMetadata(nil, p) }

func pair(key, value string) []byte { return pairs(wire.Pair{Key: key, Value: value}) }

func block(length uint32, count uint16, entries ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, length)
	return append(binary.LittleEndian.AppendUint16(b, count), entries...)
}

func replyWith(block []byte) func(id uint64) []byte {
	return func(id uint64) []byte {
		f := wire.AppendReplyHead(nil, id, 0, 1, 0, block)
		wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
		return f
	}
}

func data(id uint64, flags wire.Flags, size int) []byte {
	f := append(wire.AppendDataHead(nil, id, flags, 1, 0), make([]byte, size)...)
	wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
	return f
}

func stream(id uint64) []byte {
	return wire.AppendRequest(nil, id, wire.FlagStream, &wire.Request{Method: goodHold, Codec: 1, Priority: 2})
}

// fault is an ERROR for the call with a wrong length of its message.
func fault(id uint64, messageLength uint32) []byte {
	f := wirepeer.Fault(id, wire.ErrorBody{Code: wire.Aborted, Outcome: wire.Executed, Message: "message"})
	binary.LittleEndian.PutUint32(f[wire.HeaderSize+8:], messageLength)
	return f
}

func same(b []byte) func(uint64) []byte { return func(uint64) []byte { return b } }

// both is a row with the same bytes for both sides, which closes the connection.
func both(number int, name string, b []byte, r wire.Reason) row {
	return row{number: number, name: name, toServer: toServer{send: b, want: ends(r)}, toClient: toClient{reply: same(b), why: r}}
}

// metadata is a row about a block, in a request and in the trailers of a reply.
func metadata(number int, name string, block []byte, w want) row {
	return row{number: number, name: name, toServer: toServer{send: badWith(block), want: w}, toClient: toClient{reply: replyWith(block)}}
}

func rows() []row {
	return slices.Concat(frameRows(), checksumRows(), stateRows(), partRows(), metadataRows(), codecRows(), compressionRows())
}

// frameRows are about single frames.
func frameRows() []row {
	maxFrame := uint32(wire.DefaultSettings().MaxFrame)
	reserved := wire.AppendPing(nil, wire.TypePing, 1)
	reserved[6] = 1
	http := []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n") // see also TestHTTP
	magic := []byte("\xA5NSS\x01\x00\x00\x00")
	version := append([]byte("\xA5NSR\x02\x00\x00\x00"), wire.AppendSettings(nil, wire.DefaultSettings())...)
	bits := append([]byte("\xA5NSR\x01\x00\x00\x01"), wire.AppendSettings(nil, wire.DefaultSettings())...)
	random := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{30}).Read(random)
	skippable := frame(1, 0xFE, 0xFF, 9, 1)
	trickled := manner{trickle: true, stall: true}
	stalled := manner{stall: true}
	late := manner{stall: true, late: true}
	jsonRequest := wire.AppendRequest(nil, firstBadID, 0, &wire.Request{Method: badStruct, Codec: 3, Priority: 2, Payload: []byte("{} garbage")})
	return []row{
		{number: 1, name: "wrong magic", toServer: toServer{instead: magic, want: refuse(wire.BadFrame)}, toClient: toClient{hello: func() []byte { return http }}},
		both(1, "wrong magic where a frame is due", http, wire.BadFrame),
		{number: 2, name: "unknown version", toServer: toServer{instead: version, want: refuse(wire.BadVersion)}, toClient: toClient{hello: func() []byte { return version }}},
		both(3, "reserved bits of a frame", reserved, wire.BadFrame),
		{number: 3, name: "reserved bits of the preface", toServer: toServer{instead: bits, want: refuse(wire.BadFrame)}, toClient: toClient{hello: func() []byte { return bits }}},
		both(4, "unknown frame type", frame(0, 0x10, 0, 0), wire.BadFrame),
		both(4, "frame type 0", frame(0, 0, 0, 0), wire.BadFrame),
		both(5, "AUTH of length 0", frame(0, wire.TypeAuth, 0, 0), wire.BadFrame),
		{
			number: 4, name: "unknown type, skippable", toServer: toServer{send: skippable, want: want{kind: works}},
			toClient: toClient{reply: func(id uint64) []byte { return append(slices.Clone(skippable), wirepeer.Reply(id, []byte("ok"))...) }, good: true},
		},
		{number: 5, name: "REQUEST of length 0", toServer: toServer{send: frame(0, wire.TypeRequest, 0, 1), want: ends(wire.BadFrame)}},
		{number: 5, name: "METHOD of length 0", toServer: toServer{send: frame(0, wire.TypeMethod, 0, 0), want: ends(wire.BadMethod)}},
		{number: 5, name: "REPLY of length 0", toClient: toClient{reply: func(id uint64) []byte { return frame(0, wire.TypeReply, 0, id) }}},
		{number: 5, name: "ERROR of length 0", toClient: toClient{reply: func(id uint64) []byte { return frame(0, wire.TypeError, 0, id) }}},
		both(5, "DRAIN of length 0", frame(0, wire.TypeDrain, 0, 0), wire.BadFrame),
		both(5, "DATA of length 0", frame(0, wire.TypeData, 0, 0), wire.BadID),
		both(5, "DATA of length 0 for a stream", frame(0, wire.TypeData, 0, 1), wire.BadFrame),
		both(6, "length = limit + 1", frame(maxFrame+1, wire.TypeRequest, 0, 1), wire.FrameTooLarge),
		both(7, "length 0xFFFFFFFF", frame(0xFFFFFFFF, wire.TypeReply, 0, 1), wire.FrameTooLarge),
		{
			number: 8, name: "far more declared than sent", toServer: toServer{send: frame(maxFrame, wire.TypeRequest, 0, 1, make([]byte, 100)...), want: ends(wire.Timeout), manner: stalled},
			toClient: toClient{reply: func(id uint64) []byte { return frame(1<<20, wire.TypeReply, 0, id, make([]byte, 100)...) }, how: stalled},
		},
		{
			number: 8, name: "part of a frame, and a ReadTimeout", toServer: toServer{send: frame(maxFrame, wire.TypeRequest, 0, 1, make([]byte, 100)...), want: ends(wire.Timeout), manner: late},
			toClient: toClient{reply: func(id uint64) []byte { return frame(1<<20, wire.TypeReply, 0, id, make([]byte, 100)...) }, how: late},
		},
		{
			number: 8, name: "half a handshake", toServer: toServer{instead: []byte("\xA5NSR\x01"), want: refuse(wire.Timeout), manner: stalled},
			toClient: toClient{hello: func() []byte { return []byte("\xA5NSR\x01") }, how: stalled},
		},
		{number: 9, name: "inner length beyond outer", toServer: toServer{send: badWith(block(1000, 1)), want: ends(wire.BadMetadata)}, toClient: toClient{reply: func(id uint64) []byte { return fault(id, 8) }}},
		{number: 10, name: "inner length overflows", toServer: toServer{send: badWith(block(0xFFFFFFF8, 1)), want: ends(wire.BadMetadata)}, toClient: toClient{reply: func(id uint64) []byte { return fault(id, 0xFFFFFFF4) }}},
		{
			number: 11, name: "trailing garbage", toServer: toServer{send: jsonRequest, want: fail(wire.InvalidArgument)},
			toClient: toClient{codec: 3, reply: func(id uint64) []byte {
				f := append(wire.AppendReplyHead(nil, id, 0, 3, 0, nil), "{} garbage"...)
				wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
				return f
			}},
		},
		{
			number: 12, name: "truncated header, then the end", toServer: toServer{send: bad(1)[:wire.HeaderSize-1], want: ends(wire.BadFrame), manner: manner{hangup: true}},
			toClient: toClient{reply: func(id uint64) []byte { return wirepeer.Reply(id, []byte("ok"))[:wire.HeaderSize-1] }, how: manner{hangup: true}},
		},
		{
			number: 13, name: "a byte now and then", toServer: toServer{send: bad(1)[:1], want: ends(wire.Timeout), manner: trickled},
			toClient: toClient{reply: func(id uint64) []byte { return wirepeer.Reply(id, []byte("ok"))[:1] }, how: trickled},
		},
		{number: 16, name: "REQUEST with id 0", toServer: toServer{send: bad(0), want: ends(wire.BadID)}, toClient: toClient{reply: func(uint64) []byte { return wirepeer.Reply(0, []byte("ok")) }}},
		both(16, "PING with an id", frame(8, wire.TypePing, 0, 1, make([]byte, 8)...), wire.BadID),
		both(24, "ping of 7 bytes", frame(7, wire.TypePing, 0, 0, make([]byte, 7)...), wire.BadFrame),
		both(24, "pong of 9 bytes", frame(9, wire.TypePong, 0, 0, make([]byte, 9)...), wire.BadFrame),
		{number: 30, name: "random 1 MiB", toServer: toServer{instead: random, want: refuse(wire.BadFrame)}, toClient: toClient{hello: func() []byte { return random }}},
		both(30, "random 1 MiB where a frame is due", random, wire.BadFrame),
	}
}

// checksumRows are about frames of connections with checksums, and about checksums on others.
func checksumRows() []row {
	changed := func(frame []byte, at int, bits byte) []byte {
		frame = wirepeer.Seal(frame)
		frame[(at+len(frame))%len(frame)] ^= bits
		return frame
	}
	sealed := func(number int, name string, make func(frame []byte) []byte, r wire.Reason) row {
		return row{
			number: number, name: name, toServer: toServer{sealed: true, send: make(bad(firstBadID)), want: ends(r)},
			toClient: toClient{sealed: true, reply: func(id uint64) []byte { return make(wirepeer.Reply(id, []byte("wrong"))) }, why: r},
		}
	}
	flip := func(at int, bits byte) func([]byte) []byte {
		return func(frame []byte) []byte { return changed(frame, at, bits) }
	}
	skippable := frame(1, 0xFE, 0xFF&^wire.FlagCRC, 9, 1)
	short := func(frame []byte) []byte {
		frame = slices.Clone(frame[:wire.HeaderSize+wire.ChecksumSize-1])
		wire.PutLength(frame, wire.ChecksumSize-1)
		frame[5] |= byte(wire.FlagCRC)
		wire.PutHeaderCheck(frame)
		return frame
	}
	empty := func(typ wire.Type, id uint64) []byte {
		f := frame(0, typ, wire.FlagCRC, id)
		wire.PutHeaderCheck(f)
		return f
	}
	return []row{
		sealed(119, "a wrong checksum", flip(-1, 1), wire.BadChecksum),
		sealed(119, "a flipped bit of the payload", flip(-5, 0x10), wire.BadChecksum),
		sealed(119, "a flipped bit of the id", flip(9, 4), wire.BadChecksum),
		sealed(119, "a flipped bit that makes the type one to ignore", flip(4, 0x80), wire.BadChecksum),
		sealed(120, "no checksum where it was negotiated", slices.Clone[[]byte], wire.BadChecksum),
		sealed(120, "a checksum whose flag was lost", flip(5, byte(wire.FlagCRC)), wire.BadChecksum),
		sealed(120, "an unknown frame to ignore, without its checksum", func([]byte) []byte { return skippable }, wire.BadChecksum),
		{
			number: 120, name: "unknown type, skippable, with a checksum", toServer: toServer{sealed: true, send: wirepeer.Seal(skippable), want: want{kind: works}},
			toClient: toClient{sealed: true, reply: func(id uint64) []byte {
				return wirepeer.Seal(append(slices.Clone(skippable), wirepeer.Reply(id, []byte("ok"))...))
			}, good: true},
		},
		both(121, "a checksum where none was negotiated", wirepeer.Seal(wire.AppendPing(nil, wire.TypePing, 1)), wire.BadFrame),
		{
			number: 121, name: "a request or reply with a checksum where none was negotiated", toServer: toServer{send: wirepeer.Seal(bad(firstBadID)), want: ends(wire.BadFrame)},
			toClient: toClient{reply: func(id uint64) []byte { return wirepeer.Seal(wirepeer.Reply(id, []byte("wrong"))) }, why: wire.BadFrame},
		},
		sealed(122, "a body that is shorter than a checksum", short, wire.BadFrame),
		{
			number: 122, name: "an empty body where there are checksums", toServer: toServer{sealed: true, send: empty(wire.TypeCancel, 1), want: ends(wire.BadFrame)},
			toClient: toClient{sealed: true, reply: func(id uint64) []byte { return empty(wire.TypeEnd, id) }, why: wire.BadFrame},
		},
	}
}

// churnSize is the number of calls in churning.
const churnSize = 300

// churning opens calls from the ID on, and cancels each at once.
func churning(id uint64, method uint32, times int) (b []byte) {
	for end := id + churnSize; id < end; id++ {
		b = append(b, wirepeer.Request(id, method, nil)...)
		for range times {
			b = wire.AppendCancel(b, id)
		}
	}
	return b
}

// stateRows are about frames that are invalid because of earlier ones.
func stateRows() []row {
	wait := wirepeer.Request(1, goodWait, nil)
	window := func(id uint64, credit uint32) []byte { return wire.AppendWindow(nil, id, credit) }
	settings := wire.AppendSettings(nil, wire.DefaultSettings())
	ping := wire.AppendPing(nil, wire.TypePing, 1)
	cancels := bytes.Repeat(wire.AppendCancel(nil, 1), 1000)
	churn := churning(1, goodWait, 1)
	var streams []byte
	for id := range uint64(maxStreams + 1) {
		streams = append(streams, stream(id+1)...)
	}
	repeated := func(n int, f func(id uint64) []byte) func(uint64) []byte {
		return func(id uint64) []byte { return bytes.Repeat(f(id), n) }
	}
	return []row{
		{
			number: 14, name: "duplicate live id", toServer: toServer{send: append(slices.Clone(wait), bad(1)...), want: ends(wire.BadID)},
			toClient: toClient{reply: repeated(2, func(id uint64) []byte { return wirepeer.Reply(id, []byte("ok")) }), good: true},
			note:     "to a client: a second reply comes for a call that is over, which §7 has it ignore",
		},
		{number: 15, name: "id decreases", toServer: toServer{send: append(wirepeer.Request(2, goodWait, nil), bad(1)...), want: ends(wire.BadID)}},
		{number: 15, name: "id of the other side", toServer: toServer{send: bad(1 << 63), want: ends(wire.BadID)}, toClient: toClient{reply: func(uint64) []byte { return wirepeer.Reply(1<<63, []byte("ok")) }}},
		{number: 15, name: "id of the future", toServer: toServer{send: wire.AppendCancel(nil, 7), want: ends(wire.BadID)}, toClient: toClient{reply: func(id uint64) []byte { return wirepeer.Reply(id+7, []byte("ok")) }}},
		{number: 17, name: "REPLY to a server, REQUEST to a client", toServer: toServer{send: wirepeer.Reply(1, []byte("ok")), want: ends(wire.BadFrame)}, toClient: toClient{reply: same(wirepeer.Request(1<<63, 1, nil))}},
		{number: 17, name: "REPLY for a call that the server never made", toServer: toServer{send: wirepeer.Reply(1<<63+1, []byte("ok")), want: ends(wire.BadID)}},
		{number: 17, name: "ERROR to a server, METHOD to a client", toServer: toServer{send: fault(1, 7), want: ends(wire.BadFrame)}, toClient: toClient{reply: same(wire.AppendMethod(nil, 1, "Good.Echo"))}},
		both(18, "data for 101 unknown streams", bytes.Repeat(data(1<<30, 0, 1), 101), wire.Flood),
		{
			number: 18, name: "data for 100 unknown streams", toServer: toServer{send: bytes.Repeat(data(1<<30, 0, 1), 100), want: want{kind: works}},
			toClient: toClient{reply: func(id uint64) []byte {
				return append(bytes.Repeat(data(1<<30, 0, 1), 100), wirepeer.Reply(id, []byte("ok"))...)
			}, good: true},
		},
		{
			number: 18, name: "END and WINDOW of unknown streams", toServer: toServer{send: bytes.Repeat(append(wire.AppendEnd(nil, 1<<30, nil), window(1<<31, 1)...), 51), want: ends(wire.Flood)},
			toClient: toClient{reply: same(bytes.Repeat(append(wire.AppendEnd(nil, 1<<30, nil), window(1<<31, 1)...), 51))},
		},
		{
			number: 18, name: "DATA, END and WINDOW of a call", toServer: toServer{send: slices.Concat(wait, data(1, 0, 1), wire.AppendEnd(nil, 1, nil), window(1, 1)), want: breakStream(wire.InvalidArgument)},
			toClient: toClient{reply: func(id uint64) []byte {
				return slices.Concat(data(id, 0, 1), wire.AppendEnd(nil, id, nil), window(id, 1))
			}},
		},
		{
			number: 19, name: "data after end", toServer: toServer{send: slices.Concat(stream(1), wire.AppendEnd(nil, 1, nil), data(1, 0, 1)), want: breakStream(wire.InvalidArgument)},
			toClient: toClient{opens: true, reply: func(id uint64) []byte { return append(wire.AppendEnd(nil, id, nil), data(id, 0, 1)...) }, good: true},
			note:     "to a client: it comes for a stream that is over, which §11 has it ignore",
		},
		{number: 19, name: "end after end", toServer: toServer{send: append(stream(1), bytes.Repeat(wire.AppendEnd(nil, 1, nil), 2)...), want: breakStream(wire.InvalidArgument)}},
		{
			number: 19, name: "end in the middle of a message", toServer: toServer{send: slices.Concat(stream(1), data(1, wire.FlagMore, 1), wire.AppendEnd(nil, 1, nil)), want: breakStream(wire.InvalidArgument)},
			toClient: toClient{opens: true, reply: func(id uint64) []byte { return append(data(id, wire.FlagMore, 1), wire.AppendEnd(nil, id, nil)...) }},
		},
		{number: 19, name: "REPLY to a stream", toClient: toClient{opens: true, reply: func(id uint64) []byte { return wirepeer.Reply(id, []byte("ok")) }}},
		{
			number: 20, name: "more data than the connection's credit", toServer: toServer{send: slices.Concat(
				stream(1), stream(2), stream(3), stream(4), stream(5),
				bytes.Repeat(slices.Concat(data(1, 0, 8000), data(2, 0, 8000), data(3, 0, 8000), data(4, 0, 8000), data(5, 0, 8000)), 28)), want: ends(wire.FlowControl)},
			toClient: toClient{reply: func(id uint64) []byte { return bytes.Repeat(data(id, 0, 8000), 140) }},
			note:     "to a client: for a call, which fails; that of a stream is in the tests of the root package",
		},
		{number: 20, name: "more data than the stream's credit", toServer: toServer{send: append(stream(1), bytes.Repeat(data(1, 0, 8000), 33)...), want: ends(wire.FlowControl)}},
		{
			number: 21, name: "window 0 for a stream", toServer: toServer{send: append(stream(1), window(1, 0)...), want: breakStream(wire.InvalidArgument)},
			toClient: toClient{opens: true, reply: func(id uint64) []byte { return window(id, 0) }},
		},
		both(21, "window 0 for the connection", window(0, 0), wire.FlowControl),
		both(22, "window of 2^31", window(0, 1<<31), wire.FlowControl),
		both(22, "windows of 2^31 in sum", bytes.Repeat(window(0, 1<<30), 2), wire.FlowControl),
		{
			number: 22, name: "windows of 2^31 in sum for a stream", toServer: toServer{send: append(stream(1), bytes.Repeat(window(1, 1<<30), 2)...), want: ends(wire.FlowControl)},
			toClient: toClient{opens: true, reply: func(id uint64) []byte { return bytes.Repeat(window(id, 1<<30), 2) }},
		},
		both(23, "ping flood", bytes.Repeat(ping, 100), wire.Flood),
		both(23, "pong flood", bytes.Repeat(wire.AppendPing(nil, wire.TypePong, 1), 100), wire.Flood),
		{
			number: 25, name: "calls opened and cancelled without an end", toServer: toServer{send: wait, want: ends(wire.Flood), manner: manner{flood: func(i int) []byte {
				// A slow machine does not open 10,000 calls per second, but receives as many
				// cancels.
				return churning(uint64(2+i*churnSize), goodWait, 1+10*i)
			}}},
			note: "as fast as they are taken, each cancelled more often than those before; not to a client: only callers cancel",
		},
		{
			number: 25, name: "one call cancelled without an end", toServer: toServer{send: wait, want: ends(wire.Flood), manner: manner{flood: func(int) []byte { return cancels }}},
			note: "as fast as they are taken; not to a client: only callers cancel",
		},
		{
			number: 25, name: "a few opened and cancelled", toServer: toServer{send: churn, want: want{kind: works}},
			note: "10,000 a second may go on for ever; TestOpenAndCancelFlood of the root package sends more",
		},
		both(26, "second SETTINGS", settings, wire.BadFrame),
		both(26, "settings flood", bytes.Repeat(settings, 100), wire.BadFrame),
		{
			number: 27, name: "a stream over the limit", toServer: toServer{send: streams, want: fail(wire.ResourceExhausted), failing: maxStreams + 1},
			note: "not to a client, which no server calls",
		},
		{
			number: 28, name: "flood of empty data", toServer: toServer{send: append(stream(1), bytes.Repeat(data(1, wire.FlagMore, 0), 101)...), want: ends(wire.Flood)},
			toClient: toClient{opens: true, reply: func(id uint64) []byte { return bytes.Repeat(data(id, wire.FlagMore, 0), 101) }},
		},
		{
			number: 29, name: "DRAIN in a call", toServer: toServer{send: append(wirepeer.Request(1, goodSlow, []byte("ok")), wire.AppendDrain(nil, 0, 1000)...), want: want{kind: finishes, reason: wire.Normal}},
			toClient: toClient{reply: func(id uint64) []byte {
				return append(wire.AppendDrain(nil, 0, 1000), wirepeer.Reply(id, []byte("ok"))...)
			}, good: true},
		},
	}
}

func metadataRows() []row {
	invalid, exhausted, broken := fail(wire.InvalidArgument), fail(wire.ResourceExhausted), ends(wire.BadMetadata)
	many := func(n int) []byte { return pairs(slices.Repeat([]wire.Pair{{Key: "k"}}, n)...) }
	timeout := func(name string, t uint64) row {
		return row{number: 41, name: name, note: "not to a client: a reply has no deadline; one that is not a number cannot be written", toServer: toServer{
			send: wire.AppendRequest(nil, 1, 0, &wire.Request{Method: badBytes, Codec: 1, Priority: 2, Timeout: t}), want: invalid,
		}}
	}
	return []row{
		metadata(31, "key length beyond the block", block(4, 1, 3, 0), broken),
		metadata(31, "key length 65535", block(5, 1, 0xFF, 0xFF, 'k'), broken),
		metadata(32, "block length 0xFFFFFFFC", block(0xFFFFFFFC, 1), broken),
		metadata(32, "value length 0xFFFFFFFC", block(9, 1, 1, 0, 'k', 0xFC, 0xFF, 0xFF, 0xFF), broken),
		metadata(33, "a key without a value", block(5, 1, 1, 0, 'k'), broken),
		metadata(33, "an entry more than there is", block(9, 2, 1, 0, 'k', 0, 0, 0, 0), broken),
		metadata(33, "an entry less than there is", block(9, 0, 1, 0, 'k', 0, 0, 0, 0), broken),
		metadata(34, "10,000 keys", many(10_000), exhausted),
		metadata(34, "129 keys", many(129), exhausted),
		metadata(35, "over 64 KiB", pair("k", strings.Repeat("v", 64<<10)), exhausted),
		metadata(36, "empty key", pair("", "v"), invalid),
		metadata(37, "key that is not UTF-8", pair("k\xC3\x28", "v"), invalid),
		metadata(38, "CR in a value", pair("k", "v\r"), invalid),
		metadata(38, "LF in a value", pair("k", "v\nk: v"), invalid),
		metadata(38, "NUL in a value", pair("k", "\x00"), invalid),
		{number: 39, name: "two authentication keys", note: "does not apply: credentials travel in AUTH and no key of the metadata stands for one (row 118); a further AUTH takes the place of the one before"},
		metadata(40, "reserved key", pair("anser-token", "v"), invalid), // §12a: it fails the call
		metadata(40, "an idempotency key that is empty", pair("anser-idempotency-key", ""), invalid),
		metadata(40, "an idempotency key of 129 bytes", pair("anser-idempotency-key", strings.Repeat("k", 129)), invalid),
		metadata(40, "an idempotency key with a space", pair("anser-idempotency-key", "a b"), invalid),
		metadata(40, "two idempotency keys", pairs(wire.Pair{Key: "anser-idempotency-key", Value: "a"}, wire.Pair{Key: "anser-idempotency-key", Value: "a"}), invalid),
		{
			number: 40, name: "an idempotency key where nothing is remembered",
			toServer: toServer{send: badWith(pair("anser-idempotency-key", "k")), want: fail(wire.Unimplemented)},
			toClient: toClient{}, note: "in trailers it is any reserved key",
		},
		timeout("deadline -1", 1<<64-1),
		timeout("deadline 2^63", 1<<63),
		{
			number: 42, name: "endless continuation", toServer: toServer{send: append(stream(1), bytes.Repeat(data(1, wire.FlagMore, 8000), 140)...), want: ends(wire.FlowControl)},
			toClient: toClient{opens: true, reply: func(id uint64) []byte { return bytes.Repeat(data(id, wire.FlagMore, 8000), 600) }},
			note:     "metadata has no continuation: a message that never ends runs out of credit, or is over the limit",
		},
	}
}
