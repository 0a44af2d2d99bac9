package badinput_test

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"fmt"
	"net/rpc"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/anser-rpc/anser"
)

const (
	badPath   = "/test.Bad/Run"
	echoPath  = "/test.Good/Echo"
	jsonType  = "Content-Type: application/json\r\n"
	calm      = http2.ErrCodeEnhanceYourCalm
	malformed = http2.ErrCodeProtocol
)

func rows() []row {
	return slices.Concat(floodRows(), headerRows(), bodyRows(), http1Rows(), jsonRPCRows(), socketRows(), portRows(), memoryRows(), rpcxRows())
}

// closedWith reports whether a connection was closed for this reason.
func closedWith(reason string) func(before, after anser.ServerStats) bool {
	return func(before, after anser.ServerStats) bool { return after.Closed[reason] == before.Closed[reason]+1 }
}

// floodRows send frames that cost work and carry nothing, until the server has enough.
func floodRows() []row {
	const at = 100 // frames, or pairs of them, that are made together
	controls, resets := flood{2 * at, 10_000, 2_000}, flood{2 * at, 20_000, 5_000}
	of := func(limit flood, number int, name string, begin func(f *frames), next func(i int) []byte) row {
		f := newFrames()
		if begin != nil {
			begin(f)
		}
		return row{
			number: number, name: name, h2: true, send: f.Bytes(), want: effect{away: calm, closed: true, lost: true}, counted: closedWith("FLOOD"),
			more: func(i int) []byte { return bytes.Join([][]byte{next(2 * i), next(2*i + 1)}, nil) }, flood: limit,
		}
	}
	trailer := []byte{0x82} // :method
	always := func(p []byte) func(int) []byte { return func(int) []byte { return bytes.Repeat(p, at) } }
	each := func(p func(id uint32) []byte) func(int) []byte {
		return func(i int) (b []byte) {
			for n := range uint32(at) {
				b = append(b, p(2*(uint32(i)*at+n)+1)...)
			}
			return b
		}
	}
	headers := func(id uint32, flags http2.Flags, block []byte) []byte {
		return frame(http2.FrameHeaders, flags|http2.FlagHeadersEndHeaders, id, block)
	}
	plain := func(more ...string) []byte { // without the table, so that it can be repeated
		g := newFrames()
		g.enc.SetMaxDynamicTableSize(0)
		return g.header(badPath, more...)
	}
	open, lies := plain(), plain("content-length", "7")
	return []row{
		of(resets, 95, "rapid reset", nil, each(func(id uint32) []byte {
			return append(headers(id, 0, open), frame(http2.FrameRSTStream, 0, id, []byte{0, 0, 0, 8})...)
		})),
		of(controls, 96, "CONTINUATION", func(f *frames) { f.Write(frame(http2.FrameHeaders, 0, 1, open)) }, always(frame(http2.FrameContinuation, 0, 1, nil))),
		of(resets, 125, "resets by the server: lengths", nil, each(func(id uint32) []byte {
			return append(headers(id, 0, lies), frame(http2.FrameData, http2.FlagDataEndStream, id, []byte("x"))...)
		})),
		of(resets, 125, "resets by the server: windows", nil, each(func(id uint32) []byte {
			return append(headers(id, 0, open), frame(http2.FrameWindowUpdate, 0, id, []byte{0x7f, 0xff, 0xff, 0xff})...)
		})),
		of(resets, 125, "resets by the server: trailers", nil, each(func(id uint32) []byte {
			return append(headers(id, 0, open), headers(id, http2.FlagHeadersEndStream, trailer)...)
		})),
		of(controls, 126, "SETTINGS", nil, always(frame(http2.FrameSettings, 0, 0, nil))),
		of(controls, 127, "PING", nil, always(frame(http2.FramePing, 0, 0, make([]byte, 8)))),
		of(controls, 128, "WINDOW_UPDATE", nil, always(frame(http2.FrameWindowUpdate, 0, 0, []byte{0, 0, 0, 1}))),
		of(controls, 129, "empty DATA", func(f *frames) { f.Write(headers(1, 0, open)) }, always(frame(http2.FrameData, 0, 1, nil))),
		of(controls, 129, "padding alone", func(f *frames) { f.Write(headers(1, 0, open)) }, always(frame(http2.FrameData, http2.FlagDataPadded, 1, []byte{3, 0, 0, 0}))),
		of(controls, 130, "PRIORITY", nil, each(func(id uint32) []byte { return frame(http2.FramePriority, 0, id, make([]byte, 5)) })),
		of(controls, 130, "unknown frames", nil, always(frame(0xfe, 0, 0, nil))),
	}
}

// headerRows are about the HTTP/2 and gRPC headers.
func headerRows() []row {
	of := func(number int, name string, w effect, fields ...string) row {
		f := newFrames()
		f.open(1, true, f.header(badPath, fields...))
		return row{number: number, name: name, h2: true, send: f.Bytes(), want: w}
	}
	raw := func(number int, name string, w effect, counted func(a, b anser.ServerStats) bool, block func(f *frames) []byte) row {
		f := newFrames()
		f.open(1, true, block(f))
		return row{number: number, name: name, h2: true, send: f.Bytes(), want: w, counted: counted}
	}
	fault := effect{reset: malformed}
	bomb := newFrames()
	bomb.open(1, true, bomb.header(echoPath, "x", strings.Repeat("y", 3900)))
	bomb.open(3, true, append(bomb.header(badPath), bytes.Repeat([]byte{0x80 | 62}, 10_000)...))
	gone := effect{away: http2.ErrCodeCompression, closed: true, lost: true}
	wider := newFrames()
	wider.fr.WriteWindowUpdate(0, 1<<31-1)
	return []row{
		of(92, "a path without a slash", fault, ":path", "test.Bad/Run"),
		of(93, "a timeout of 9 digits", effect{status: "200/13"}, "grpc-timeout", "123456789S"),
		of(93, "a timeout without a unit", effect{status: "200/13"}, "grpc-timeout", "1"),
		{number: 97, name: "header bomb", h2: true, send: bomb.Bytes(), want: effect{away: calm, closed: true, lost: true}, counted: closedWith("FLOOD")},
		{number: 128, name: "the window of the connection overflows", h2: true, send: wider.Bytes(), want: effect{away: http2.ErrCodeFlowControl, closed: true}, counted: closedWith("FLOW_CONTROL")},
		raw(131, "a header table of 64 KiB", gone, closedWith("BAD_FRAME"), func(f *frames) []byte { return append([]byte{0x3f, 0xe1, 0xff, 0x03}, f.header(badPath)...) }),
		raw(131, "an entry that is not there", gone, closedWith("BAD_FRAME"), func(f *frames) []byte { return append(f.header(badPath), 0x80|126) }),
		raw(131, "an integer without end", gone, closedWith("BAD_FRAME"), func(f *frames) []byte { return append(f.header(badPath), bytes.Repeat([]byte{0xff}, 100)...) }),
		raw(131, "a broken Huffman code", gone, closedWith("BAD_FRAME"), func(f *frames) []byte { return append(f.header(badPath), 0, 0x81, 0xff, 0x81, 0xff) }),
		of(134, "an unknown pseudo-header field", fault, ":protocol", "x"),
		raw(134, "two paths", fault, nil, func(f *frames) []byte { return append(f.header(badPath), f.header(badPath)...) }),
		raw(134, "a pseudo-header field at the end", fault, nil, func(f *frames) []byte {
			all := f.header(badPath)
			return append(all[1:], all[0]) // :method
		}),
		of(134, "a name in capital letters", fault, "Upper", "x"),
		of(134, "an empty path", fault, ":path", ""),
		of(134, "a method of two words", fault, ":method", "GET /x"),
		of(134, "a path of two words", fault, ":path", badPath+" HTTP/1.1"),
		of(134, "an absolute path", fault, ":path", "http://x"+badPath),
		of(134, "a line break in a value", fault, "x", "a\r\nb: c"),
		of(134, "NUL in a value", fault, "x", "a\x00b"),
		of(135, "connection", fault, "connection", "close"),
		of(135, "transfer-encoding", fault, "transfer-encoding", "chunked"),
		of(135, "upgrade", fault, "upgrade", "h2c"),
		of(135, "te", fault, "te", "gzip"),
		of(136, "a host that is not the authority", fault, "host", "evil.example"),
		raw(136, "two authorizations", fault, nil, func(f *frames) []byte {
			b := f.header(badPath, "authorization", "Bearer a")
			f.block.Reset()
			f.enc.WriteField(headerField("authorization", "Bearer b"))
			return append(b, f.block.Bytes()...)
		}),
		of(136, "two content lengths in one", fault, "content-length", "0, 0"),
		of(147, "garbage in a -bin field", effect{status: "200/12"}, "x-bin", "!!!not base64!!!"),
	}
}

// packed returns p in gzip.
func packed(p []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(p)
	w.Close()
	return b.Bytes()
}

// bomb is 64 MiB of zeros in gzip.
var bomb = sync.OnceValue(func() []byte { return packed(make([]byte, 64<<20)) })

// bodyRows are about the gRPC, Connect and gRPC-Web messages.
func bodyRows() []row {
	bomb := bomb()
	call := func(number int, name, status string, body []byte, fields ...string) row {
		f := newFrames()
		f.open(1, false, f.header(badPath, fields...))
		for len(body) > 16<<10 {
			f.fr.WriteData(1, false, body[:16<<10])
			body = body[16<<10:]
		}
		f.fr.WriteData(1, true, body)
		return row{number: number, name: name, h2: true, send: f.Bytes(), want: effect{status: status}}
	}
	web := func(number int, name, kind, contains string, body []byte, fields string) row {
		return post(number, name, badPath, "Content-Type: "+kind+"\r\n"+fields, body, contains)
	}
	over := func(r row) row {
		r.counted = tooLarge
		return r
	}
	deep := []byte(strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000))
	huge := message(0, nil)
	copy(huge[1:], "\xff\xff\xff\xff")
	rows := []row{
		call(94, "gRPC: flag 2", "200/13", message(2, nil)),
		over(call(138, "gRPC: a bomb", "200/8", message(1, bomb), "grpc-encoding", "gzip")),
		call(138, "gRPC: a bomb in a bomb", "200/3", message(1, packed(bomb)), "grpc-encoding", "gzip"),
		call(138, "gRPC: no gzip", "200/3", message(1, []byte("no gzip")), "grpc-encoding", "gzip"),
		call(138, "gRPC: no compression was named", "200/13", message(1, bomb)),
		over(web(138, "Connect: a bomb", "application/proto", "resource_exhausted", bomb, "Content-Encoding: gzip\r\n")),
		web(138, "Connect: a bomb in a bomb", "application/proto", "invalid_argument", packed(bomb), "Content-Encoding: gzip\r\n"),
		web(138, "Connect stream: a bomb", "application/connect+proto", "resource_exhausted", message(1, bomb), "Connect-Content-Encoding: gzip\r\n"),
		web(138, "gRPC-Web: a bomb", "application/grpc-web+proto", "grpc-status: 8", message(1, bomb), "Grpc-Encoding: gzip\r\n"),
		call(139, "gRPC: deep JSON", "200/3", message(0, deep), "content-type", "application/grpc+json"),
		web(139, "Connect: deep JSON", "application/json", "invalid_argument", deep, ""),
		web(139, "gRPC-Web: base64 that is none", "application/grpc-web-text", "gAAAA", []byte("!!!!!!!!"), ""), // the trailers, in base64
		call(146, "gRPC: 4 GiB declared", "200/13", huge),
		call(146, "gRPC: cut off", "200/13", message(0, []byte("abc"))[:6]),
		call(146, "gRPC: two messages", "200/12", append(message(0, nil), message(0, nil)...)),
		call(146, "gRPC: no message", "200/12", nil),
		web(146, "gRPC-Web: 4 GiB declared", "application/grpc-web+proto", "grpc-status: 8", huge, ""),
		web(146, "Connect stream: cut off", "application/connect+proto", "invalid_argument", message(0, []byte("abc"))[:6], ""),
	}
	return rows
}

// tooLarge reports whether a message was over the limits of decompression.
func tooLarge(before, after anser.ServerStats) bool {
	hits := func(s anser.ServerStats) int64 { return s.LimitsHit["MaxExpansion"] + s.LimitsHit["MaxMessage"] }
	return hits(after) > hits(before)
}

// post is a row of HTTP/1.1 with a body whose length is declared.
func post(number int, name, path, fields string, body []byte, contains string) row {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: %d\r\n\r\n", path, fields, len(body))
	return row{number: number, name: name, send: append([]byte(head), body...), want: effect{contains: contains}}
}

// http1Rows are about HTTP/1.1.
func http1Rows() []row {
	const start = "POST /test.Bad.Run HTTP/1.1\r\nHost: 127.0.0.1\r\n" + jsonType
	text := func(number int, name, send, contains string, closed bool) row {
		return row{number: number, name: name, send: []byte(send), want: effect{contains: contains, closed: closed, lost: closed}}
	}
	flood := text(84, "an endless body in chunks", start+"Transfer-Encoding: chunked\r\n\r\n", "anser.MaxMessage", true)
	chunk := append([]byte("10000\r\n"), append(bytes.Repeat([]byte(" "), 64<<10), "\r\n"...)...)
	flood.more = func(int) []byte { return chunk }
	slowHead := text(88, "slow headers", start, "", true)
	slowHead.slow, slowHead.more = true, func(i int) []byte {
		time.Sleep(time.Second)
		return []byte("X: y\r\n")[i%6 : i%6+1]
	}
	slowBody := text(89, "slow body", start+"Content-Length: 1000\r\n\r\n", "408 ", false)
	slowBody.slow, slowBody.more = true, func(i int) []byte {
		time.Sleep(time.Second)
		return []byte(" ")
	}
	rows := []row{
		flood, slowHead, slowBody,
		text(84, "a length of 1 GiB", start+"Content-Length: 1073741824\r\n\r\n", "anser.MaxMessage", true),
		text(85, "a length and chunks", start+"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 ", true),
		text(86, "two lengths", start+"Content-Length: 4\r\nContent-Length: 5\r\n\r\n\"\"", "400 ", true),
		text(86, "the same length twice", start+"Content-Length: 4\r\nContent-Length: 4\r\n\r\n\"\"  ", "400 ", true),
		text(86, "a line without CR", "POST /test.Bad.Run HTTP/1.1\r\nHost: 127.0.0.1\n"+jsonType+"Content-Length: 2\r\n\r\n\"\"", "400 ", true),
		text(86, "a folded line", start+"X: a\r\n b\r\nContent-Length: 2\r\n\r\n\"\"", "400 ", true),
		text(86, "a chunk of a wrong length", start+"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "400 ", true),
		text(87, "1 MiB of headers", start+"X: "+strings.Repeat("y", 1<<20)+"\r\n\r\n", "431 ", true),
		text(90, "TRACE", strings.Replace(start, "POST", "TRACE", 1)+"\r\n", "405 ", false),
		text(90, "CONNECT", "CONNECT /test.Bad.Run HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "405 ", false),
		post(98, "text", "/test.Bad.Run", "Content-Type: text/plain\r\n", []byte(`""`), "415 "),
		post(99, "a hostile origin", "/test.Bad.Run", jsonType+"Origin: https://evil.example\r\n", []byte(`""`), "403 "),
		post(138, "JSON over HTTP: a bomb", "/test.Bad.Run", jsonType+"Content-Encoding: gzip\r\n", bomb(), "413 "),
		post(139, "JSON over HTTP: deep", "/Bad.Plain", jsonType, []byte(strings.Repeat(`{"a":`, 100_000)), "400 "),
		text(142, "a query of 1 MiB", "GET "+badPath+"?connect=v1&encoding=proto&message="+strings.Repeat("y", 1<<20)+" HTTP/1.1\r\n", "", true),
		text(142, "GET of a method with effects", "GET "+badPath+"?connect=v1&encoding=json&message=%22%22 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "405 ", false),
	}
	for _, path := range []string{
		"//test.Bad.Run", "/x/../test.Bad.Run", "/x/%2e%2e/test.Bad.Run", "/%74est.Bad.Run", "/test.Bad%2ERun", "/test.Bad.Run/", "/test.Bad.Run%00",
		"/TEST.Bad.Run", "/test.Bad.Run;x", "/test.Bad.Run%2f..", "/test%2FBad%2FRun", "/test.Bad//Run", "/test.Bad/./Run", "/test.Bad/Run%20",
	} {
		rows = append(rows, post(91, path, path, jsonType, []byte(`""`), "404 "))
	}
	return rows
}

// jsonRPCRows are about JSON-RPC 2.0 over HTTP.
func jsonRPCRows() []row {
	of := func(number int, name, body, contains string) row {
		return post(number, "JSON-RPC: "+name, "/jsonrpc", jsonType, []byte(body), contains)
	}
	return []row{
		of(78, "without params", `{"jsonrpc":"2.0","method":"test.Bad.Run","id":1}`, "-32602"),
		of(79, "params null", `{"jsonrpc":"2.0","method":"test.Bad.Run","params":null,"id":1}`, "-32602"),
		of(79, "params a number", `{"jsonrpc":"2.0","method":"test.Bad.Run","params":7,"id":1}`, "-32602"),
		of(80, "a batch of 10,000", "["+strings.Repeat(`{"jsonrpc":"2.0","method":"test.Bad.Run","params":[""]},`, 9999)+"1]", "-32600"),
		of(81, "an empty batch", "[]", "-32600"),
		of(82, "an id that is an object", `{"jsonrpc":"2.0","method":"test.Bad.Run","params":[""],"id":{}}`, "-32600"),
		of(83, "invalid JSON", `{"jsonrpc":"2.0",,}`, "-32700"),
		of(83, "two keys", `{"jsonrpc":"2.0","method":"test.Good.Echo","method":"test.Bad.Run","params":[""],"id":1}`, "-32700"),
		of(139, "deep", `{"jsonrpc":"2.0","method":"Bad.Plain","params":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`,"id":1}`, "-32700"),
		post(138, "JSON-RPC: a bomb", "/jsonrpc", jsonType+"Content-Encoding: gzip\r\n", bomb(), "413 "),
		of(140, "answers of 34 MB", "["+strings.Repeat(`{"jsonrpc":"2.0","method":"test.Good.Large","params":[""],"id":1},`, 99)+`{"jsonrpc":"2.0","method":"test.Good.Large","params":[""],"id":2}]`, "anser.MaxMemory"),
	}
}

// portRows are about the first bytes of a connection.
func portRows() []row {
	closes := func(number int, name string, send string) row {
		return row{number: number, name: name, send: []byte(send), hangup: true, want: effect{closed: true}}
	}
	var calls bytes.Buffer
	gob.NewEncoder(&calls).Encode(&rpc.Request{ServiceMethod: "test.Bad.Run", Seq: 1})
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 500)
	many := closes(143, "1,000 connections that say nothing", "")
	many.conns, many.hangup = 1000, false
	half := closes(143, "1,000 connections that stop after a byte", "P")
	half.conns, half.hangup = 1000, false
	return []row{
		closes(141, "gob: a length of 2^64", calls.String()+"\xf8\xff\xff\xff\xff\xff\xff\xff\xff"),
		closes(141, "gob: types that refer to each other", calls.String()+"\x0f\xfe\x03\xe7\x02\x01\x02\xfe\x03\xe8\x00\x01\xfe\x03\xe7\x00\x00"),
		closes(141, "JSON-RPC over TCP: 100,000 levels", `{"method":"Bad.Plain","params":`+strings.Repeat("[", 100_000)),
		many, half,
		closes(144, "TLS to a port without it", hello),
		closes(144, "a line of the PROXY protocol", "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nPOST /test.Bad.Run HTTP/1.1\r\n"),
		closes(144, "the PROXY protocol, version 2", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"+strings.Repeat("\x00", 12)),
		closes(144, "SSH", "SSH-2.0-OpenSSH_9.2\r\n"),
		closes(144, "an absolute target", "POST http://127.0.0.1/test.Bad.Run HTTP/1.1\r\nHost: x\r\n\r\n"),
		closes(144, "HTTP/0.9", "GET /\r\n"),
		{number: 144, name: "half a preface of HTTP/2", h2: true, send: []byte(http2.ClientPreface[:20] + "GET / HTTP/1.1\r\n\r\n"), want: effect{away: malformed, closed: true}, counted: closedWith("BAD_FRAME")},
	}
}

// memoryRows make the server hold what it should not.
func memoryRows() []row {
	stalled := newFrames()
	stalled.Write(frame(http2.FrameSettings, 0, 0, []byte{0, 4, 0, 0, 0, 0})) // a window of 0
	for i := range uint32(60) {
		stalled.open(2*i+1, false, stalled.header("/test.Good/Large"))
		stalled.fr.WriteData(2*i+1, true, message(0, nil))
	}
	half := newFrames()
	half.open(1, false, half.header(badPath))
	half.fr.WriteData(1, false, message(0, make([]byte, 1000))[:100])
	cut := newFrames()
	cut.open(1, false, cut.header(badPath))
	cut.Write(frame(http2.FrameData, 0, 1, make([]byte, 100))[:50])
	filled := newFrames()
	const streams, parts = 30, 40
	for i := range uint32(streams) {
		filled.open(2*i+1, false, filled.header("/test.Good/Take"))
	}
	begin := message(0, make([]byte, maxMessage-100))[:16<<10]
	unknown := func(name, status string, fields ...string) row {
		f := newFrames()
		f.open(1, false, f.header(badPath, fields...))
		return row{number: 145, name: name, h2: true, auth: true, send: f.Bytes(), want: effect{status: status}, counted: unauthenticated}
	}
	silent := func(name, path, fields, contains string) row {
		return row{
			number: 145, name: name, auth: true, want: effect{contains: contains}, counted: unauthenticated,
			send: fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: 1000000\r\n\r\n", path, fields),
		}
	}
	return []row{
		{number: 132, name: "answers without a window", h2: true, slow: true, send: stalled.Bytes(), want: effect{any: []http2.ErrCode{calm, http2.ErrCodeCancel}}},
		{number: 133, name: "half a message", h2: true, slow: true, send: half.Bytes(), want: effect{reset: http2.ErrCodeCancel}},
		{number: 133, name: "half a frame", h2: true, slow: true, send: cut.Bytes(), want: effect{away: calm, closed: true}, counted: closedWith("FLOOD")},
		{number: 148, name: "messages of streams that are not complete", h2: true, send: filled.Bytes(), want: effect{contains: "grpc-status: 8"}, more: func(i int) []byte {
			if i >= streams*parts {
				return nil
			}
			time.Sleep(time.Millisecond) // the handler must wait for more, which gives the window back
			if i%parts == 0 {
				return frame(http2.FrameData, 0, uint32(2*(i/parts)+1), begin)
			}
			return frame(http2.FrameData, 0, uint32(2*(i/parts)+1), make([]byte, 16<<10))
		}},
		unknown("gRPC without a token and its body", "200/16"),
		unknown("gRPC with a wrong token", "200/16", "authorization", "Bearer wrong"),
		silent("JSON without a token and its body", "/test.Bad.Run", jsonType, "401 "),
		silent("Connect without a token and its body", badPath, "Content-Type: application/proto\r\nContent-Encoding: gzip\r\n", "401 "),
		silent("gRPC-Web without a token and its body", badPath, "Content-Type: application/grpc-web+proto\r\n", "grpc-status: 16"),
		silent("JSON with a wrong token", "/test.Bad.Run", jsonType+"Authorization: Bearer wrong\r\n", "401 "),
	}
}

func unauthenticated(before, after anser.ServerStats) bool {
	return after.Refused > before.Refused || fmt.Sprint(after.Unauthenticated) != fmt.Sprint(before.Unauthenticated)
}
