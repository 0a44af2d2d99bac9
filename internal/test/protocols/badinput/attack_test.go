package badinput_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/metadata"

	"github.com/anser-rpc/anser"
)

func bearer(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// row is one bad input. Several rows may have the same number.
type row struct {
	number int
	name   string
	send   []byte
	// more returns the i-th of further writes, until the connection ends or it returns nil.
	more func(i int) []byte
	// flood is for rows that the server ends for the rate of their frames alone.
	flood flood
	// conns is the number of connections that send the row; 0 is one.
	conns   int
	h2      bool // the answer is HTTP/2
	hangup  bool // the client closes its side after the row
	slow    bool // the row waits for a time limit
	auth    bool // the server requires a token
	options []anser.ServerOption
	want    effect
	counted func(before, after anser.ServerStats) bool
}

// effect is what a client sees.
type effect struct {
	contains string          // of the answer
	closed   bool            // the server has closed the connection
	away     http2.ErrCode   // of GOAWAY
	reset    http2.ErrCode   // of stream 1
	status   string          // of stream 1: :status, and grpc-status behind a slash
	any      []http2.ErrCode // one of these, in place of reset
	lost     bool            // the answer may be lost, since the client still sends when the server closes
	slow     bool            // a flood was so slow that the server takes all of it
}

// flood is what a server takes of frames that cost work and carry nothing: burst at once, and rate
// in a second.
type flood struct {
	each        int // frames in each further write; 0: the row is not a flood
	burst, rate float64
}

// isPermitted reports whether a server may take what n writes have sent in a time: a slow machine
// handles no more. The tests of protocols/internal/h2 send such floods without the clock.
func (f flood) isPermitted(n int, in time.Duration) bool {
	return f.each > 0 && in > 20*time.Second && float64(n*f.each) < 2*f.burst+f.rate*in.Seconds()
}

func (want effect) matches(got effect) bool {
	if want.lost && got.closed && got.contains == "" && got.away == 0 {
		return true
	}
	if want.away != 0 {
		got.reset, got.status = 0, "" // what came before
	}
	for _, code := range want.any {
		if got.reset == code {
			got.reset = want.reset
		}
	}
	return strings.Contains(got.contains, want.contains) && want.closed == got.closed && want.away == got.away && want.reset == got.reset &&
		strings.HasPrefix(got.status, want.status)
}

// patience is how long an answer is waited for that ends neither with the connection nor as the row
// wants.
const patience = bound

// attack sends the row, and returns what the first of its connections sees. release closes them.
func (r *row) attack(t *testing.T, g *target, bytewise bool) (got effect, release func()) {
	t.Helper()
	var conns []net.Conn
	for range max(r.conns, 1) {
		nc, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		nc.SetDeadline(time.Now().Add(bound))
		conns = append(conns, nc)
	}
	written := make(chan struct{})
	var slow atomic.Bool
	go func() {
		defer close(written)
		for _, nc := range conns[1:] {
			nc.Write(r.send)
		}
		if r.write(conns[0], bytewise) {
			slow.Store(true)
			conns[0].SetReadDeadline(time.Now())
		}
	}()
	if r.h2 {
		got = r.readH2(conns[0])
	} else {
		got = r.read(conns[0])
	}
	got.slow = slow.Load()
	return got, func() {
		for _, nc := range conns {
			nc.Close()
		}
		<-written
	}
}

// write reports whether it has ended a flood because the machine is too slow for it.
func (r *row) write(nc net.Conn, bytewise bool) (slow bool) {
	b := r.send
	if bytewise {
		for i := range min(len(b), 512) {
			if _, err := nc.Write(b[i : i+1]); err != nil {
				return false
			}
		}
		b = b[min(len(b), 512):]
	}
	if len(b) > 0 {
		if _, err := nc.Write(b); err != nil {
			return false
		}
	}
	begun := time.Now()
	for i := 0; r.more != nil; i++ {
		if r.flood.isPermitted(i, time.Since(begun)) {
			return true
		}
		p := r.more(i)
		if p == nil {
			break
		}
		if _, err := nc.Write(p); err != nil {
			return false
		}
	}
	if r.hangup {
		nc.(*net.TCPConn).CloseWrite()
	}
	return false
}

// read reads an answer that is not HTTP/2, until it has what the row wants. An answer may have tens
// of megabytes: each byte is searched once.
func (r *row) read(nc net.Conn) (got effect) {
	nc.SetReadDeadline(time.Now().Add(patience))
	var all []byte
	b := make([]byte, 64<<10)
	for {
		n, err := nc.Read(b)
		from := max(0, len(all)-len(r.want.contains)) // it may have begun in the bytes before
		all = append(all, b[:n]...)
		if !r.want.closed && r.want.contains != "" && bytes.Contains(all[from:], []byte(r.want.contains)) {
			return effect{contains: string(all)}
		}
		if err != nil {
			var timeout net.Error
			got.closed = !errors.As(err, &timeout) || !timeout.Timeout()
			got.contains = string(all)
			return got
		}
	}
}

func (r *row) readH2(nc net.Conn) (got effect) {
	nc.SetReadDeadline(time.Now().Add(patience))
	fr := http2.NewFramer(io.Discard, nc)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	fr.MaxHeaderListSize = 1 << 20
	for {
		if !r.want.closed && (r.want.reset != 0 || len(r.want.any) > 0) && got.reset != 0 || r.want.status != "" && strings.HasPrefix(got.status, r.want.status) ||
			r.want.contains != "" && strings.Contains(got.contains, r.want.contains) {
			return got
		}
		f, err := fr.ReadFrame()
		if err != nil {
			var timeout net.Error
			got.closed = !errors.As(err, &timeout) || !timeout.Timeout()
			return got
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			got.away = f.ErrCode
		case *http2.RSTStreamFrame:
			if f.StreamID == 1 {
				got.reset = f.ErrCode
			}
		case *http2.MetaHeadersFrame:
			for _, h := range f.RegularFields() {
				if h.Name == "grpc-status" {
					got.contains += " grpc-status: " + h.Value
				}
			}
			if f.StreamID != 1 {
				break
			}
			if s := f.PseudoValue("status"); s != "" {
				got.status = s + "/"
			}
			for _, h := range f.RegularFields() {
				if h.Name == "grpc-status" {
					got.status += h.Value
				}
			}
		}
	}
}

// frames builds the bytes of an HTTP/2 client, beginning with its preface.
type frames struct {
	bytes.Buffer
	fr    *http2.Framer
	enc   *hpack.Encoder
	block bytes.Buffer
}

func newFrames() *frames {
	f := new(frames)
	f.fr = http2.NewFramer(&f.Buffer, nil)
	f.fr.AllowIllegalWrites = true
	f.enc = hpack.NewEncoder(&f.block)
	f.WriteString(http2.ClientPreface)
	f.fr.WriteSettings()
	return f
}

// header returns the block of a gRPC call. The fields are names and values; those of the call
// itself are replaced.
func (f *frames) header(path string, fields ...string) []byte {
	f.block.Reset()
	all := []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: path},
		{Name: ":authority", Value: "127.0.0.1"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}
next:
	for i := 0; i < len(fields); i += 2 {
		for j := range all {
			if all[j].Name == fields[i] {
				all[j].Value = fields[i+1]
				continue next
			}
		}
		all = append(all, hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	for _, field := range all {
		f.enc.WriteField(field)
	}
	return bytes.Clone(f.block.Bytes())
}

// open begins a request.
func (f *frames) open(id uint32, end bool, block []byte) {
	f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: end})
}

// frame appends a frame of any kind.
func frame(kind http2.FrameType, flags http2.Flags, id uint32, p []byte) []byte {
	b := []byte{byte(len(p) >> 16), byte(len(p) >> 8), byte(len(p)), byte(kind), byte(flags)}
	return append(binary.BigEndian.AppendUint32(b, id), p...)
}

// message returns a gRPC message with this flag.
func message(flag byte, p []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(p))), p...)
}

func headerField(name, value string) hpack.HeaderField {
	return hpack.HeaderField{Name: name, Value: value}
}
