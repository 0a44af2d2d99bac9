package badinput_test

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/anser-rpc/anser"
)

// rpcx returns an rpcx message with a payload.
func rpcx(flags, codec byte, path, method string, metadata, payload []byte) []byte {
	part := func(b, p []byte) []byte { return append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...) }
	body := part(part(part(part(nil, []byte(path)), []byte(method)), metadata), payload)
	head := []byte{8, 0, flags, codec << 4, 0, 0, 0, 0, 0, 0, 0, 1}
	return part(head, body)
}

// rpcxRows are about rpcx.
func rpcxRows() []row {
	const (
		heartbeat, gzip          = 0x40, 0x04
		inJSON, messagePack, raw = 1, 3, 0
		thrift                   = 4
	)
	call := func(codec byte, payload string) []byte { return rpcx(0, codec, "Bad", "Plain", nil, []byte(payload)) }
	changed := func(b []byte, at int, value uint32) []byte {
		b = slices.Clone(b)
		binary.BigEndian.PutUint32(b[at:], value)
		return b
	}
	good := call(messagePack, "\x80")
	ends := func(number int, name string, send []byte) row {
		return row{number: number, name: "rpcx: " + name, send: send, want: effect{closed: true}, counted: closedWith("BAD_FRAME")}
	}
	fails := func(number int, name, contains string, send []byte) row {
		return row{number: number, name: "rpcx: " + name, send: send, want: effect{contains: contains}, counted: refused}
	}
	bomb := bomb()
	rows := []row{
		ends(180, "a path of 4 GiB", changed(good, 16, 1<<32-1)),
		ends(180, "metadata of 4 GiB", changed(good, 16+4+3+4+5, 1<<32-1)),
		ends(180, "a payload of 4 GiB", changed(good, 16+4+3+4+5+4, 1<<32-1)),
		ends(180, "a message shorter than its lengths", changed(good, 12, 15)),
		ends(180, "a message longer than its parts", changed(good, 12, 100)),
		ends(180, "another version behind a good message", append(slices.Clone(rpcx(0, messagePack, "", "", nil, nil)), "\x08\x01\x00\x30\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x10"...)),
		fails(181, "metadata that is cut off", "metadata of rpcx is cut off", rpcx(0, messagePack, "Bad", "Plain", []byte("\xff\xff\xff\xff"), []byte("\x80"))),
		{
			number: 182, name: "rpcx: a heartbeat of 2 KiB", send: rpcx(heartbeat, messagePack, "", "", nil, make([]byte, 2<<10)),
			want: effect{closed: true}, counted: closedWith("FRAME_TOO_LARGE"),
		},
		fails(183, "an array of 4 G", "decode the message with msgpack", call(messagePack, "\xdd\xff\xff\xff\xff")),
		fails(183, "a map of 4 G", "decode the message with msgpack", call(messagePack, "\xdf\xff\xff\xff\xff")),
		fails(183, "100,000 arrays in another", "decode the message with msgpack", call(messagePack, "\x81\xa1a"+strings.Repeat("\x91", 100_000)+"\xc0")),
		fails(183, "JSON that is deep", "decode the message with json", call(inJSON, strings.Repeat(`{"a":`, 100_000))),
		fails(184, "raw bytes for a map", "decode the message with raw", call(raw, "x")),
		fails(184, "Thrift", "Thrift is not served", call(thrift, "x")),
		fails(184, "an unknown compression", "is not known here", rpcx(2<<2, messagePack, "Bad", "Plain", nil, []byte("\x80"))),
		{
			number: 185, name: "rpcx: a bomb", send: rpcx(gzip, messagePack, "Bad", "Plain", nil, bomb),
			want: effect{contains: "resource_exhausted"}, counted: tooLarge,
		},
		fails(185, "no gzip", "invalid_argument", rpcx(gzip, messagePack, "Bad", "Plain", nil, []byte("no gzip"))),
		fails(186, "a method that is not served", "is not served here", rpcx(0, messagePack, "No", "Such", nil, []byte("\x80"))),
		{
			number: 187, name: "rpcx: a message over the limit", send: rpcx(0, messagePack, "Bad", "Plain", nil, make([]byte, 2<<20)),
			want: effect{contains: "anser.MaxMessage"}, counted: tooLarge,
		},
		{
			number: 188, name: "rpcx: a token that is none", auth: true, counted: unauthenticated, want: effect{contains: "unauthenticated"},
			send: rpcx(0, messagePack, "Bad", "Plain", []byte("\x00\x00\x00\x06__AUTH\x00\x00\x00\x05guess"), make([]byte, 512<<10)),
		},
	}
	return rows
}

// refused reports whether a call was refused.
func refused(before, after anser.ServerStats) bool { return after.Refused > before.Refused }
