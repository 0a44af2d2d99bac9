package badinput_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
)

// The opcodes and flags of WebSocket.
const (
	opMore   = 0x0
	opText   = 0x1
	opBinary = 0x2
	opClose  = 0x8
	opPing   = 0x9
	flagFin  = 0x80
	flagRSV1 = 0x40 // the message is compressed
)

const handshake = "Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

// wsFrame returns a frame of a client, masked with zeros.
func wsFrame(begin byte, payload []byte) []byte {
	b := []byte{begin}
	switch n := len(payload); {
	case n < 126:
		b = append(b, flagFin|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, flagFin|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, flagFin|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// socketRows are about WebSocket.
func socketRows() []row {
	// of is a row on an open socket, which ends with this status.
	of := func(number int, name string, status uint16, parts ...[]byte) row {
		send := append([]byte("GET /test.Good.Take HTTP/1.1\r\n"+handshake+"\r\n"), bytes.Join(parts, nil)...)
		return row{number: number, name: "WebSocket: " + name, send: send, want: effect{contains: string(binary.BigEndian.AppendUint16(nil, status))}}
	}
	text := func(s string) []byte { return wsFrame(flagFin|opText, []byte(s)) }
	opened := func(name, path, fields, contains string) row {
		return row{number: 154, name: "WebSocket: " + name, send: []byte("GET " + path + " HTTP/1.1\r\n" + fields + "\r\n"), want: effect{contains: contains}}
	}
	piece := bytes.Repeat([]byte("x"), 32<<10)
	endless := func(r row, next func(i int) []byte) row {
		r.more = next
		return r
	}
	late := func(r row, next func(i int) []byte) row {
		r.slow, r.more, r.want = true, next, effect{closed: true, lost: true}
		return r
	}
	unmasked := []byte{flagFin | opText, 2, '{', '}'}
	declared := binary.BigEndian.AppendUint64([]byte{flagFin | opText, flagFin | 127}, 1<<40)
	negative := binary.BigEndian.AppendUint64([]byte{flagFin | opText, flagFin | 127}, 1<<63)
	offers := of(150, "a compressed bomb", 1002, wsFrame(flagFin|flagRSV1|opText, packed(make([]byte, 1<<20))[:100]))
	offers.send = bytes.Replace(offers.send, []byte("\r\n\r\n"), []byte("\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"), 1)
	gone := of(149, "not masked", 0, unmasked)
	gone.want = effect{closed: true, lost: true}
	long := of(149, "a negative length", 0, negative, []byte{0, 0, 0, 0})
	long.want = effect{closed: true, lost: true}
	unknown := of(145, "without a token", 4016)
	unknown.auth, unknown.counted = true, unauthenticated
	// Its handler stays: one that returns at the end of the messages could do so before the next
	// one arrives, and then the socket ends with the result of the call.
	after := of(153, "a message after the end", 1008, text(""), text(`"AQ=="`))
	after.send = bytes.Replace(after.send, []byte("test.Good.Take"), []byte("test.Good.Hold"), 1)
	half := opened("1,000 handshakes without an end", "/test.Bad.Chat", strings.TrimSuffix(handshake, "\r\n"), "")
	half.conns, half.slow, half.want = 1000, true, effect{closed: true, lost: true}
	half.send = bytes.TrimSuffix(half.send, []byte("\r\n"))
	small := endless(of(150, "an endless message in small parts", 1009, wsFrame(opText, []byte(`"`))), func(int) []byte { return bytes.Repeat(wsFrame(opMore, []byte("x")), 1000) })
	small.options = []anser.ServerOption{anser.MaxMessage(64 << 10)} // a frame for each byte of it
	return []row{
		gone, long, offers, unknown, half, small,
		of(149, "a reserved opcode", 1002, wsFrame(flagFin|3, nil)),
		of(149, "a reserved bit", 1002, wsFrame(flagFin|0x20|opText, []byte("{}"))),
		of(149, "a part of no message", 1002, wsFrame(flagFin|opMore, []byte("x"))),
		of(149, "a message in a message", 1002, wsFrame(opText, []byte("{")), text("}")),
		of(149, "a ping in parts", 1002, wsFrame(opPing, []byte("x"))),
		of(149, "a ping of 126 bytes", 1002, wsFrame(flagFin|opPing, make([]byte, 126))),
		of(149, "half a status", 1002, wsFrame(flagFin|opClose, []byte{3})),
		of(149, "a status that is none", 1002, wsFrame(flagFin|opClose, []byte{0, 1})),
		endless(of(150, "1 TiB declared", 1009, declared, []byte{0, 0, 0, 0}), func(int) []byte { return piece }),
		endless(of(150, "an endless message in parts", 1009, wsFrame(opText, []byte(`"`))), func(int) []byte { return wsFrame(opMore, piece) }),
		late(of(151, "an endless message in empty parts", 0, wsFrame(opText, []byte(`"`))), func(int) []byte {
			time.Sleep(10 * time.Millisecond)
			return bytes.Repeat(wsFrame(opMore, nil), 100)
		}),
		late(of(151, "slow bytes of a message", 0, wsFrame(opText, []byte(`"`))), func(int) []byte {
			time.Sleep(time.Second)
			return wsFrame(opMore, []byte("x"))
		}),
		late(of(151, "half a frame", 0, text(`"AQ=="`)[:8]), nil),
		of(152, "a flood of pings", 4003, bytes.Repeat(wsFrame(flagFin|opPing, []byte("x")), 10_000), text("{")),
		of(152, "a flood of pongs", 4003, bytes.Repeat(wsFrame(flagFin|0xa, []byte("x")), 10_000), text("{")),
		of(153, "binary", 1003, wsFrame(flagFin|opBinary, []byte("{}"))),
		of(153, "no UTF-8", 1007, text("\"\xff\"")),
		of(153, "half a character at the end of a part", 1007, wsFrame(opText, []byte("\"\xe2")), wsFrame(flagFin|opMore, []byte("\""))),
		of(153, "no JSON", 4003, text("{")),
		of(153, "deep JSON", 4003, text(strings.Repeat("[", 100_000))),
		after,
		opened("a hostile origin", "/test.Bad.Chat", handshake+"Origin: https://evil.example\r\n", "403 "),
		opened("no origin of another site", "/test.Bad.Chat", handshake+"Sec-Fetch-Site: cross-site\r\n", "403 "),
		opened("the null origin", "/test.Bad.Chat", handshake+"Origin: null\r\n", "403 "),
		opened("another port of this machine", "/test.Bad.Chat", handshake+"Origin: http://127.0.0.1:1\r\n", "403 "),
		opened("a rebound name", "/test.Bad.Chat", strings.Replace(handshake, "127.0.0.1", "evil.example", 1)+"Origin: http://evil.example\r\n", "403 "),
		opened("no key", "/test.Bad.Chat", strings.Replace(handshake, "Key: AAAAAAAAAAAAAAAAAAAAAA==", "Key: x", 1), "400 "),
		opened("another version", "/test.Bad.Chat", strings.Replace(handshake, "Version: 13", "Version: 8", 1), "400 "),
		opened("two credentials", "/test.Bad.Chat", handshake+"Authorization: Bearer x\r\nSec-WebSocket-Protocol: anser.json, anser.bearer.eA\r\n", "400 "),
		opened("a method that is not a stream", "/test.Bad.Run", handshake, "400 "),
		opened("no method", "/test.Bad.No", handshake, "404 "),
		opened("a deadline in the query that is none", "/test.Bad.Chat?timeout=NaN", handshake, "400 "),
	}
}
