package h2_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/protocols/internal/h2"
)

// The types of frames that the test sends.
const (
	data, headers, priority, reset, settings, ping, windowUpdate, continuation = 0, 1, 2, 3, 4, 6, 8, 9
)

// client writes frames as no good client does.
type client struct {
	t   *testing.T
	nc  net.Conn
	out bytes.Buffer
	enc *hpack.Encoder
	buf bytes.Buffer

	frameTime time.Duration // of the server; 0: so long that a busy machine keeps it
}

// echo answers each request with its body.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Write(b)
}

// open connects to a server of one connection, which ends with the test. All of these tests run in
// bubbles, so that a slow machine does not slow down what a server must get within some time.
func open(t *testing.T) *client {
	t.Helper()
	return openWith(t, &budget{left: 1 << 30}, echo)
}

// newClient returns a client that is not connected.
func newClient(t *testing.T) *client {
	c := &client{t: t}
	c.enc = hpack.NewEncoder(&c.buf)
	c.out.WriteString(h2.Preface)
	c.frame(settings, 0, 0, nil)
	return c
}

// budget is the memory of a server.
type budget struct {
	mu   sync.Mutex
	left int
}

func (b *budget) hold(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

func (b *budget) free() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

func openWith(t *testing.T, memory *budget, handler http.HandlerFunc) *client {
	t.Helper()
	c := newClient(t)
	c.connect(memory, handler)
	return c
}

// connect connects the client, in memory, to a server of one connection, which ends with the test.
func (c *client) connect(memory *budget, handler http.HandlerFunc) {
	near, far := ansertest.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.serve(far, memory, handler)
	}()
	c.t.Cleanup(func() {
		near.Close()
		<-ended
	})
	c.nc = near
}

// serve serves the client on a connection until it ends.
func (c *client) serve(nc net.Conn, memory *budget, handler http.HandlerFunc) {
	site := &h2.Site{Handler: handler, Context: context.Background()}
	h2.New(nc, nil, &h2.Config{
		MaxStreams: 100, MaxHeader: 16 << 10, Window: 64 << 10, ConnWindow: 128 << 10, Stall: 2 * time.Second, Request: site.Serve,
		FrameTime: cmp.Or(c.frameTime, time.Minute),
		Hold:      memory.hold, Release: memory.release,
	}).Serve()
}

func (c *client) frame(kind, flags byte, id uint32, p []byte) {
	c.out.Write([]byte{byte(len(p) >> 16), byte(len(p) >> 8), byte(len(p)), kind, flags})
	binary.Write(&c.out, binary.BigEndian, id)
	c.out.Write(p)
}

// header returns the block of a request with further fields.
func (c *client) header(more ...hpack.HeaderField) []byte {
	c.buf.Reset()
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "x"},
	}, more...) {
		c.enc.WriteField(f)
	}
	return bytes.Clone(c.buf.Bytes())
}

// request returns the block of a request with these pseudo-header fields.
func (c *client) request(method, path, authority string) []byte {
	c.buf.Reset()
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path}, {Name: ":authority", Value: authority},
	} {
		c.enc.WriteField(f)
	}
	return bytes.Clone(c.buf.Bytes())
}

// send writes what was collected, and reads meanwhile. It returns the code of the GOAWAY, the codes
// of the resets by stream, and whether the server has closed the connection.
func (c *client) send(wait time.Duration) (away h2.Code, resets map[uint32]h2.Code, status map[uint32]string, closed bool) {
	c.t.Helper()
	return c.sendUntil(wait, func(map[uint32]h2.Code, map[uint32]string) bool { return false })
}

// sendUntil is send, and returns at once when enough is true of the resets and the statuses.
func (c *client) sendUntil(wait time.Duration, enough func(map[uint32]h2.Code, map[uint32]string) bool) (away h2.Code, resets map[uint32]h2.Code, status map[uint32]string, closed bool) {
	c.t.Helper()
	go func() {
		c.nc.Write(c.out.Bytes())
	}()
	resets, status = make(map[uint32]h2.Code), make(map[uint32]string)
	dec := hpack.NewDecoder(4096, nil)
	away = ^h2.Code(0)
	c.nc.SetReadDeadline(time.Now().Add(wait))
	for !enough(resets, status) {
		var head [9]byte
		if _, err := io.ReadFull(c.nc, head[:]); err != nil {
			var timeout net.Error
			return away, resets, status, !errors.As(err, &timeout) || !timeout.Timeout()
		}
		p := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.nc, p); err != nil {
			return away, resets, status, true
		}
		id := binary.BigEndian.Uint32(head[5:])
		switch head[3] {
		case 7:
			away = h2.Code(binary.BigEndian.Uint32(p[4:]))
		case reset:
			resets[id] = h2.Code(binary.BigEndian.Uint32(p))
		case headers:
			if fields, err := dec.DecodeFull(p); err == nil && len(fields) > 0 {
				status[id] = fields[0].Value
			}
		}
	}
	return away, resets, status, false
}

const (
	endStream  = 1
	endHeaders = 4
	padded     = 8
)

// Clients that flood, or that begin what they do not finish, lose the connection with a reason.
func TestHostileClients(t *testing.T) {
	for name, row := range map[string]struct {
		send func(c *client)
		code h2.Code
	}{
		"rapid reset": {func(c *client) {
			block := c.header()
			for i := range uint32(60_000) {
				c.frame(headers, endHeaders, 2*i+1, block)
				c.frame(reset, 0, 2*i+1, []byte{0, 0, 0, 8})
			}
		}, h2.EnhanceYourCalm},
		"resets that the client provokes": {func(c *client) {
			block := c.header(hpack.HeaderField{Name: "content-length", Value: "5"})
			for i := range uint32(60_000) {
				c.frame(headers, endHeaders, 2*i+1, block)
				c.frame(data, endStream, 2*i+1, []byte("x"))
			}
		}, h2.EnhanceYourCalm},
		"windows that the client overflows": {func(c *client) {
			block := c.header()
			for i := range uint32(60_000) {
				c.frame(headers, endHeaders, 2*i+1, block)
				c.frame(windowUpdate, 0, 2*i+1, []byte{0x7f, 0xff, 0xff, 0xff})
			}
		}, h2.EnhanceYourCalm},
		"trailers that the client breaks": {func(c *client) {
			block, bad := c.header(), []byte{0x82} // :method GET
			for i := range uint32(60_000) {
				c.frame(headers, endHeaders, 2*i+1, block)
				c.frame(headers, endHeaders|endStream, 2*i+1, bad)
			}
		}, h2.EnhanceYourCalm},
		"flood of small DATA on a stream that has ended": {func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header())
			for range 30_000 {
				c.frame(data, 0, 1, []byte("x"))
			}
		}, h2.EnhanceYourCalm},
		"window of the connection": {func(c *client) {
			c.frame(windowUpdate, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff})
		}, h2.FlowControlError},
		"updates of the header table": {func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, append([]byte{0x3f, 0xe1, 0xff, 0x03}, c.header()...)) // to 64 KiB
		}, h2.CompressionError},
		"an integer without end in a header": {func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, append(c.header(), append([]byte{0xff}, bytes.Repeat([]byte{0xff}, 100)...)...))
		}, h2.CompressionError},
		"flood of CONTINUATION": {func(c *client) {
			c.frame(headers, 0, 1, c.header())
			for range 1000 {
				c.frame(continuation, 0, 1, nil)
			}
		}, h2.EnhanceYourCalm},
		"flood of SETTINGS": {func(c *client) {
			for range 30_000 {
				c.frame(settings, 0, 0, nil)
			}
		}, h2.EnhanceYourCalm},
		"flood of PING": {func(c *client) {
			for range 30_000 {
				c.frame(ping, 0, 0, make([]byte, 8))
			}
		}, h2.EnhanceYourCalm},
		"flood of PRIORITY": {func(c *client) {
			for i := range uint32(30_000) {
				c.frame(priority, 0, 2*i+1, make([]byte, 5))
			}
		}, h2.EnhanceYourCalm},
		"flood of empty DATA": {func(c *client) {
			c.frame(headers, endHeaders, 1, c.header())
			for range 30_000 {
				c.frame(data, 0, 1, nil)
			}
		}, h2.EnhanceYourCalm},
		"flood of padding": {func(c *client) {
			c.frame(headers, endHeaders, 1, c.header())
			for range 30_000 {
				c.frame(data, padded, 1, []byte{3, 0, 0, 0})
			}
		}, h2.EnhanceYourCalm},
		"flood of unknown frames": {func(c *client) {
			for range 30_000 {
				c.frame(0xfe, 0, 0, nil)
			}
		}, h2.EnhanceYourCalm},
		"flood of window updates": {func(c *client) {
			for range 30_000 {
				c.frame(windowUpdate, 0, 0, []byte{0, 0, 0, 1})
			}
		}, h2.EnhanceYourCalm},
		"flood of malformed requests": {func(c *client) {
			for i := range uint32(30_000) {
				c.frame(headers, endHeaders|endStream, 2*i+1, c.header(hpack.HeaderField{Name: "Upper", Value: "x"}))
			}
		}, h2.EnhanceYourCalm},
		"header bomb": {func(c *client) {
			// One large field in the table, and then references to it: each byte means 4 KB.
			block := c.header(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 3900)})
			c.frame(headers, endHeaders|endStream, 1, block)
			c.frame(headers, endHeaders|endStream, 3, append(c.header(), bytes.Repeat([]byte{0x80 | 62}, 10_000)...))
		}, h2.EnhanceYourCalm},
		"half a header": {func(c *client) { c.frame(headers, 0, 1, c.header()) }, h2.EnhanceYourCalm},
		"half a frame": {func(c *client) {
			c.frame(headers, endHeaders, 1, c.header())
			c.frame(data, 0, 1, make([]byte, 100))
			c.out.Truncate(c.out.Len() - 50)
		}, h2.EnhanceYourCalm},
		"no SETTINGS": {func(c *client) {
			c.out.Reset()
			c.out.WriteString(h2.Preface)
			c.frame(ping, 0, 0, make([]byte, 8))
		}, h2.ProtocolError},
		"a frame that is too large": {func(c *client) { c.frame(data, 0, 1, make([]byte, 20_000)) }, h2.FrameSizeError},
		"beyond the window": {func(c *client) {
			c.frame(headers, endHeaders, 1, c.header())
			for range 20 {
				c.frame(data, 0, 3, make([]byte, 16_000)) // on a stream that is idle
			}
		}, h2.ProtocolError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			row.send(c)
			if strings.HasPrefix(name, "half a ") {
				c.frameTime = time.Second
			}
			synctest.Test(t, func(t *testing.T) {
				c.t = t
				c.connect(&budget{left: 1 << 30}, echo)
				away, _, _, closed := c.send(time.Minute)
				if away != row.code || !closed {
					t.Errorf("GOAWAY says %v, closed: %v; want %v, and closed", away, closed, row.code)
				}
			})
		})
	}
}

// Faults of one request do not touch the others on the connection.
func TestHostileRequests(t *testing.T) {
	for name, row := range map[string]struct {
		send   func(c *client)
		reset  h2.Code
		status string
	}{
		"a header that is too large": {send: func(c *client) {
			block := c.header(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 12_000), Sensitive: true}, hpack.HeaderField{Name: "z", Value: strings.Repeat("y", 12_000), Sensitive: true})
			c.frame(headers, endStream, 1, block[:16_000])
			c.frame(continuation, endHeaders, 1, block[16_000:])
		}, status: "431"},
		"a body that stops": {send: func(c *client) {
			c.frame(headers, endHeaders, 1, c.header())
			c.frame(data, 0, 1, make([]byte, 100))
		}, reset: h2.Cancel},
		"more body than declared": {send: func(c *client) {
			c.frame(headers, endHeaders, 1, c.header(hpack.HeaderField{Name: "content-length", Value: "10"}))
			c.frame(data, endStream, 1, make([]byte, 100))
		}, reset: h2.ProtocolError},
		"a smuggled connection": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header(hpack.HeaderField{Name: "transfer-encoding", Value: "chunked"}))
		}, reset: h2.ProtocolError},
		"a line break in a value": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header(hpack.HeaderField{Name: "x", Value: "a\r\nb: c"}))
		}, reset: h2.ProtocolError},
		"two content lengths": {send: func(c *client) {
			c.frame(headers, endHeaders, 1, c.header(hpack.HeaderField{Name: "content-length", Value: "1"}, hpack.HeaderField{Name: "content-length", Value: "2"}))
		}, reset: h2.ProtocolError},
		"beyond the window of the stream": {send: func(c *client) {
			c.frame(headers, endHeaders, 1, c.header())
			for range 5 {
				c.frame(data, 0, 1, make([]byte, 16_000))
			}
		}, reset: h2.FlowControlError},
		"two tokens": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header(hpack.HeaderField{Name: "authorization", Value: "a"}, hpack.HeaderField{Name: "authorization", Value: "b"}))
		}, reset: h2.ProtocolError},
		"two content types": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header(hpack.HeaderField{Name: "content-type", Value: "a"}, hpack.HeaderField{Name: "content-type", Value: "a"}))
		}, reset: h2.ProtocolError},
		"two origins": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header(hpack.HeaderField{Name: "origin", Value: ""}, hpack.HeaderField{Name: "origin", Value: "http://x"}))
		}, reset: h2.ProtocolError},
		"a host that is not the authority": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header(hpack.HeaderField{Name: "host", Value: "y"}))
		}, reset: h2.ProtocolError},
		"the host again": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header(hpack.HeaderField{Name: "host", Value: "X"}))
		}, status: "200"},
		"a method of two words": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.request("GET /x", "/", "x"))
		}, reset: h2.ProtocolError},
		"a path of two words": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.request("GET", "/ HTTP/1.1", "x"))
		}, reset: h2.ProtocolError},
		"a path without a slash": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.request("GET", "x/y", "x"))
		}, reset: h2.ProtocolError},
		"an absolute path": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.request("GET", "http://x/", "x"))
		}, reset: h2.ProtocolError},
		"more than the connection carries, after its end": {send: func(c *client) {
			c.frame(headers, endHeaders|endStream, 1, c.header())
			for range 30_000 {
				c.frame(data, 0, 1, make([]byte, 512))
			}
		}, status: "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			row.send(c)
			c.frame(headers, endHeaders, 101, c.header())
			c.frame(data, endStream, 101, []byte("good"))
			synctest.Test(t, func(t *testing.T) {
				c.t = t
				c.connect(&budget{left: 1 << 30}, echo)
				away, resets, status, closed := c.sendUntil(time.Minute, func(resets map[uint32]h2.Code, status map[uint32]string) bool {
					_, reset := resets[1]
					return status[101] != "" && (reset || status[1] != "")
				})
				if name == "beyond the window of the stream" && resets[1] == h2.Cancel {
					return // the server has read the body so fast that the window was never used up
				}
				if got, ok := resets[1]; row.status == "" && (!ok || got != row.reset) || status[1] != row.status {
					t.Errorf("stream 1 ends with %v (%v) and status %q, want %v and %q", got, ok, status[1], row.reset, row.status)
				}
				if status[101] != "200" || closed {
					t.Errorf("the good request has status %q, closed: %v, GOAWAY %v", status[101], closed, away)
				}
			})
		})
	}
}

// Whole answers that the client leaves no window for count for the memory of the server. Those
// without room end at once, and the others when their time is over.
func TestAnswersThatAreNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, room = 20 << 10, 150 << 10
		memory := &budget{left: room}
		c := openWith(t, memory, func(w http.ResponseWriter, _ *http.Request) {
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
			w.Write(make([]byte, size))
		})
		c.frame(settings, 0, 0, []byte{0, byte(h2.SettingWindow), 0, 0, 0, 0})
		for i := range uint32(20) {
			c.frame(headers, endHeaders|endStream, 2*i+1, c.header())
		}
		_, resets, status, closed := c.send(8 * time.Second)
		codes := make(map[h2.Code]int)
		for _, code := range resets {
			codes[code]++
		}
		if closed || len(status) != 20 || codes[h2.Cancel] == 0 || codes[h2.EnhanceYourCalm] == 0 || codes[h2.Cancel]+codes[h2.EnhanceYourCalm] != 20 {
			t.Errorf("closed: %v, %d headers, resets: %v", closed, len(status), codes)
		}
		if free := memory.free(); free != room {
			t.Errorf("%d bytes are still held", room-free)
		}
	})
}

// Large headers count for the memory of the server until their streams end: with the table of HPACK
// a few bytes bring 64 KiB.
func TestHeadersCountForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 30 << 10
		memory := &budget{left: room}
		c := openWith(t, memory, echo)
		c.frame(headers, endHeaders|endStream, 1, c.header(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 3900)}))
		for i := range uint32(10) {
			c.frame(headers, endHeaders, 2*i+3, append(c.header(), bytes.Repeat([]byte{0x80 | 62}, 3)...))
		}
		_, resets, _, closed := c.send(time.Second)
		if closed || len(resets) != 8 {
			t.Errorf("closed: %v, resets: %v; want 8 of 10 with 12 KiB each in 30 KiB", closed, resets)
		}
		c.out.Reset()
		for i := range uint32(10) {
			c.frame(reset, 0, 2*i+3, []byte{0, 0, 0, 8})
		}
		c.send(time.Second)
		if free := memory.free(); free != room {
			t.Errorf("%d bytes are still held", room-free)
		}
	})
}

// Streams over the limit are refused with a code that allows the client to send them again.
func TestStreamsOverTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t)
		for i := range uint32(110) {
			c.frame(headers, endHeaders, 2*i+1, c.header())
		}
		_, resets, _, _ := c.send(time.Second)
		refused := 0
		for _, code := range resets {
			if code == h2.RefusedStream {
				refused++
			}
		}
		if refused != 10 {
			t.Errorf("%d streams were refused, want 10: %s", refused, fmt.Sprint(resets))
		}
	})
}

// What a larger window lets out follows the acknowledgment of the setting.
func TestDataFollowsAcknowledgment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t)
		window := func(n byte) { c.frame(settings, 0, 0, []byte{0, 4, 0, 0, 0, n}) }
		kinds := func(until byte) (seen []byte) {
			c.nc.Write(c.out.Bytes())
			c.out.Reset()
			c.nc.SetReadDeadline(time.Now().Add(time.Minute))
			for len(seen) == 0 || seen[len(seen)-1] != until {
				var head [9]byte
				if _, err := io.ReadFull(c.nc, head[:]); err != nil {
					t.Fatal(err)
				}
				io.CopyN(io.Discard, c.nc, int64(head[1])<<8|int64(head[2]))
				seen = append(seen, head[3])
			}
			return seen
		}
		window(0)
		c.frame(headers, endHeaders, 1, c.header())
		c.frame(data, endStream, 1, []byte("x"))
		if seen := kinds(headers); bytes.Contains(seen, []byte{data}) {
			t.Fatalf("DATA without a window: frames %d", seen)
		}
		window(1)
		if seen := kinds(data); !bytes.Equal(seen, []byte{settings, data}) {
			t.Errorf("frames %d, want SETTINGS and DATA", seen)
		}
	})
}

// A connection can be closed at any time, also while requests arrive.
func TestCloseWhileRequestsArrive(t *testing.T) {
	c := &client{}
	c.enc = hpack.NewEncoder(&c.buf)
	c.out.WriteString(h2.Preface)
	c.frame(settings, 0, 0, nil)
	for i := range uint32(300) {
		c.frame(headers, endHeaders, 2*i+1, c.header())
		c.frame(data, endStream, 2*i+1, []byte("x"))
	}
	for range 200 {
		near, far := net.Pipe()
		go io.Copy(io.Discard, far)
		go func() {
			far.Write(c.out.Bytes())
		}()
		site := &h2.Site{Handler: http.HandlerFunc(echo), Context: context.Background()}
		var conn *h2.Conn
		seen := 0
		conn = h2.New(near, nil, &h2.Config{
			MaxStreams: 1000, MaxHeader: 4 << 10, Window: 64 << 10, ConnWindow: 128 << 10, Stall: time.Minute,
			Request: func(st *h2.Stream, r *h2.Request, end bool) h2.Receiver {
				if seen++; seen == 100 {
					go conn.Close(io.ErrClosedPipe)
				}
				if seen == 200 {
					conn.Close(io.ErrClosedPipe)
				}
				return site.Serve(st, r, end)
			},
		})
		if err := conn.Serve(); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("the connection ends with %v", err)
		}
		far.Close()
	}
}

// Whatever a client sends, the server neither panics nor hangs.
func FuzzConn(f *testing.F) {
	var good bytes.Buffer
	good.WriteString(h2.Preface)
	c := &client{}
	c.enc = hpack.NewEncoder(&c.buf)
	c.frame(settings, 0, 0, nil)
	c.frame(headers, endHeaders, 1, c.header())
	c.frame(data, endStream, 1, []byte("x"))
	f.Add(append([]byte(h2.Preface), c.out.Bytes()...))
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		go io.Copy(io.Discard, far)
		go func() {
			far.Write(b)
			far.Close()
		}()
		site := &h2.Site{Handler: http.HandlerFunc(echo), Context: context.Background()}
		h2.New(near, nil, &h2.Config{
			MaxStreams: 10, MaxHeader: 4 << 10, Window: 64 << 10, ConnWindow: 128 << 10, Stall: time.Minute, Request: site.Serve,
		}).Serve()
	})
}
