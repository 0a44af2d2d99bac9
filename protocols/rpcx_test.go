package protocols_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
)

// old is an rpcx client that sends what a test wants.
type old struct {
	net.Conn
	r *bufio.Reader
}

func dialRPCX(t testing.TB, addr string) *old {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(2 * time.Minute))
	return &old{nc, bufio.NewReader(nc)}
}

// receive reads a message.
func (o *old) receive() (h rpcxwire.Head, md map[string]string, payload []byte, err error) {
	head := make([]byte, rpcxwire.HeadSize)
	if _, err = io.ReadFull(o.r, head); err != nil {
		return
	}
	if h, err = rpcxwire.ParseHead(head); err != nil {
		return
	}
	body := make([]byte, h.Size)
	if _, err = io.ReadFull(o.r, body); err != nil {
		return
	}
	f, _, err := rpcxwire.ParseFront(&h, body)
	if err != nil {
		return
	}
	md, err = rpcxwire.Pairs(f.Metadata)
	return h, md, body[f.Size:], err
}

func msgpacked(t testing.TB, v any) []byte {
	t.Helper()
	b, err := msgpack.New().Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var inMessagePack = rpcxwire.Head{Serialization: rpcxwire.MessagePack, Seq: 1}

type tree struct {
	Left, Right *tree
	Names       map[string]int
	Numbers     []int
	Bytes       []byte
	Any         any
}

// A few bytes of a client do not make the server allocate much, and only the call fails.
func TestHostileMessagePack(t *testing.T) {
	s, addr := serve(t)
	anser.Handle(s, "Tree.Keep", func(_ context.Context, in *tree) (*reply, error) { return &reply{len(in.Numbers)}, nil })
	name := func(s string) string { return "\x81" + string([]byte{0xa0 | byte(len(s))}) + s }
	for what, payload := range map[string]string{
		"array of 4 G":               "\xdd\xff\xff\xff\xff",
		"map of 4 G":                 "\xdf\xff\xff\xff\xff",
		"text of 4 GiB":              "\xdb\xff\xff\xff\xff",
		"bytes of 4 GiB":             "\xc6\xff\xff\xff\xff",
		"extension of 4 GiB":         "\xc9\xff\xff\xff\xff\x01",
		"field: array of 4 G":        name("Numbers") + "\xdd\xff\xff\xff\xff",
		"field: map of 4 G":          name("Names") + "\xdf\xff\xff\xff\xff",
		"field: bytes of 4 GiB":      name("Bytes") + "\xc6\xff\xff\xff\xff",
		"field: any array of 4 G":    name("Any") + "\xdd\xff\xff\xff\xff",
		"field: any map of 4 G":      name("Any") + "\xdf\xff\xff\xff\xff",
		"100,000 arrays in another":  name("Any") + strings.Repeat("\x91", 100_000) + "\xc0",
		"100,000 nodes in another":   strings.Repeat(name("Left"), 100_000) + "\x80",
		"nothing":                    "",
		"half a message":             name("Names"),
		"something after the value":  "\x80\x80",
		"a number where a struct is": "\x07",
	} {
		c := dialRPCX(t, addr)
		message := rpcxwire.Append(nil, inMessagePack, "Tree", "Keep", nil, []byte(payload))
		before := allocated()
		c.Write(message)
		h, md, _, err := c.receive()
		if grown := allocated() - before; grown > 4<<20 {
			t.Errorf("%s: %d bytes were allocated for %d", what, grown, len(payload))
		}
		if err != nil || !h.IsFailed() || h.Seq != 1 || !strings.Contains(md[rpcxwire.ErrorKey], "decode the message with msgpack") || md[rpcxwire.OutcomeKey] != "refused" {
			t.Errorf("%s: %+v, %q, %v", what, h, md, err)
		}
		c.Write(rpcxwire.Append(nil, inMessagePack, "Arith", "Mul", nil, msgpacked(t, &args{7, 8})))
		if h, _, out, err := c.receive(); err != nil || h.IsFailed() || !bytes.Equal(out, msgpacked(t, &reply{56})) {
			t.Errorf("%s: the call after it: %+v, %q, %v", what, h, out, err)
		}
	}
}

// allocated returns the bytes that the process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A small message that is a large one after decompression is refused.
func TestHostileGzipOfRPCX(t *testing.T) {
	_, addr := serve(t, anser.MaxMessage(1<<20))
	bomb, err := compress.Gzip().Append(nil, make([]byte, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	c := dialRPCX(t, addr)
	h := inMessagePack
	h.Flags = rpcxwire.Gzip
	before := allocated()
	for _, payload := range [][]byte{bomb, bomb[:100], []byte("no gzip")} {
		c.Write(rpcxwire.Append(nil, h, "Arith", "Mul", nil, payload))
		if got, md, _, err := c.receive(); err != nil || !got.IsFailed() || md[rpcxwire.OutcomeKey] != "refused" {
			t.Errorf("%+v, %q, %v", got, md, err)
		}
	}
	if grown := allocated() - before; grown > 16<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
	h.Flags = 2 << 2
	c.Write(rpcxwire.Append(nil, h, "Arith", "Mul", nil, msgpacked(t, &args{7, 8})))
	if got, md, _, err := c.receive(); err != nil || !got.IsFailed() || !strings.Contains(md[rpcxwire.ErrorKey], "compression 2 of rpcx is not known") {
		t.Errorf("%+v, %q, %v", got, md, err)
	}
}

// Requests, replies and heartbeats arrive in any pieces.
func TestRPCXInPieces(t *testing.T) {
	_, addr := serve(t)
	c := dialRPCX(t, addr)
	var all []byte
	beat := inMessagePack
	beat.Flags, beat.Seq = rpcxwire.Heartbeat, 2
	answer := inMessagePack
	answer.Flags, answer.Seq = rpcxwire.Response, 3
	all = rpcxwire.Append(all, inMessagePack, "Arith", "Mul", map[string]string{"k": "v"}, msgpacked(t, &args{7, 8}))
	all = rpcxwire.Append(all, beat, "", "", nil, []byte("now"))
	all = rpcxwire.Append(all, answer, "Arith", "Mul", nil, []byte("an answer to nothing is passed over"))
	oneway := inMessagePack
	oneway.Flags, oneway.Seq = rpcxwire.Oneway, 4
	all = rpcxwire.Append(all, oneway, "Arith", "Nothing", nil, nil)
	all = rpcxwire.Append(all, rpcxwire.Head{Serialization: rpcxwire.JSON, Seq: 5}, "Arith", "Mul", nil, []byte(`{"A":6,"B":7}`))
	for i := range all {
		c.Write(all[i : i+1])
	}
	got := make(map[uint64]string)
	for range 3 {
		h, _, payload, err := c.receive()
		if err != nil || !h.Has(rpcxwire.Response) || h.IsFailed() {
			t.Fatalf("%+v, %q, %v", h, payload, err)
		}
		got[h.Seq] = string(payload)
	}
	if got[1] != string(msgpacked(t, &reply{56})) || got[2] != "now" || got[5] != `{"C":42}` {
		t.Errorf("%v", got)
	}
}

// What declares too much ends the connection, and nothing is allocated for it.
func TestHostileRPCX(t *testing.T) {
	_, addr := serve(t)
	for what, change := range map[string]func([]byte){
		"path of 4 GiB":      func(b []byte) { binary.BigEndian.PutUint32(b[16:], 1<<32-1) },
		"message of 4 GiB":   func(b []byte) { binary.BigEndian.PutUint32(b[12:], 1<<32-1) },
		"message too short":  func(b []byte) { binary.BigEndian.PutUint32(b[12:], 15) },
		"second magic byte":  func(b []byte) { copy(b[len(b)-16:], "\x09") },
		"heartbeat of 4 GiB": func(b []byte) { b[2] = rpcxwire.Heartbeat; binary.BigEndian.PutUint32(b[12:], 1<<32-1) },
	} {
		c := dialRPCX(t, addr)
		b := rpcxwire.Append(nil, inMessagePack, "Arith", "Mul", nil, msgpacked(t, &args{7, 8}))
		if what == "second magic byte" {
			b = append(b, b[:16]...)
		}
		change(b)
		before := allocated()
		c.Write(b)
		for {
			if _, _, _, err := c.receive(); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s: %v", what, err)
				break
			}
		}
		if grown := allocated() - before; grown > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", what, grown)
		}
	}
}

// A client without an identity gets its refusal before its payload has arrived.
func TestRPCXWithoutIdentity(t *testing.T) {
	tokens, err := auth.NewTokens(auth.Grant{Subject: "carol", SHA256: auth.Digest("carol-0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	_, addr := serve(t, anser.Authenticate(tokens))
	c := dialRPCX(t, addr)
	b := rpcxwire.Append(nil, inMessagePack, "Arith", "Mul", map[string]string{rpcxwire.AuthKey: "a guess"}, make([]byte, 1<<20))
	c.Write(b[:200])
	h, md, _, err := c.receive()
	if err != nil || !h.IsFailed() || md[rpcxwire.CodeKey] != "unauthenticated" {
		t.Fatalf("%+v, %q, %v", h, md, err)
	}
}
