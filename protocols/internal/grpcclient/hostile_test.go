package grpcclient_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/protocols/internal/grpcclient"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

// server writes frames as no good server does.
type server struct {
	out bytes.Buffer
	buf bytes.Buffer
	enc *hpack.Encoder
}

func newServer() *server {
	s := new(server)
	s.enc = hpack.NewEncoder(&s.buf)
	return s
}

func (s *server) frame(kind, flags byte, id uint32, p []byte) {
	s.out.Write(h2.FrameHeader(len(p), kind, flags, id))
	s.out.Write(p)
}

func (s *server) header(flags byte, id uint32, pairs ...string) {
	s.buf.Reset()
	for ; len(pairs) > 0; pairs = pairs[2:] {
		s.enc.WriteField(hpack.HeaderField{Name: pairs[0], Value: pairs[1]})
	}
	s.frame(h2.FrameHeaders, flags|h2.FlagEndHeaders, id, bytes.Clone(s.buf.Bytes()))
}

// requests are what an Anser client sends: its preface, a unary call and a stream.
func requests() []byte {
	b := wire.AppendSettings(wire.AppendPreface(nil), wire.DefaultSettings())
	b = wire.AppendMethod(b, 1, "test.Echo.Say")
	b = wire.AppendRequest(b, 1, 0, &wire.Request{Method: 1, Codec: 4, Payload: []byte("hello")})
	return wire.AppendRequest(b, 2, wire.FlagStream, &wire.Request{Method: 1, Codec: 4})
}

// talk connects a client to a server that sends its settings, reads the requests and then sends
// what s has. It returns the frames that the client gets until nothing more comes, and the end.
func talk(t testing.TB, s *server) (frames []wire.Header, bodies [][]byte, end error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	sent := make(chan struct{})
	go io.Copy(io.Discard, far)
	go func() {
		defer far.Close()
		far.Write(h2.FrameHeader(0, h2.FrameSettings, 0, 0))
		<-sent
		far.Write(s.out.Bytes())
	}()
	near.SetDeadline(time.Now().Add(time.Minute))
	nc, err := grpcclient.New(near, "test:1")
	if err == nil {
		defer nc.Close()
		_, err = nc.Write(requests())
	}
	close(sent)
	if err != nil {
		return nil, nil, err
	}
	all, end := io.ReadAll(nc)
	if len(all) < wire.PrefaceSize {
		return nil, nil, end
	}
	for all = all[wire.PrefaceSize:]; len(all) > 0; {
		h, err := wire.ParseHeader(all)
		if err != nil || len(all) < wire.HeaderSize+int(h.Length) {
			t.Fatalf("the client gets a malformed frame: %v", err)
		}
		frames = append(frames, h)
		bodies = append(bodies, all[wire.HeaderSize:wire.HeaderSize+int(h.Length)])
		all = all[wire.HeaderSize+int(h.Length):]
	}
	return frames, bodies, end
}

var good = []string{":status", "200", "content-type", "application/grpc"}

// Each fault of a server ends its call with an error that says what is wrong, and each fault that
// concerns the connection ends that.
func TestFaultsOfServers(t *testing.T) {
	message := func(size uint32, p string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{0}, size), p...)
	}
	for name, row := range map[string]struct {
		send func(s *server)
		call uint64 // the call that fails, or 0
		code wire.Code
		text string // of the error of the call, or of the end of the connection
	}{
		"no gRPC": {func(s *server) { s.header(0, 1, ":status", "503", "content-type", "text/html") }, 1, wire.Unavailable, `HTTP status 503`},
		"no status": {func(s *server) {
			s.header(0, 1, good...)
			s.frame(h2.FrameData, 0, 1, message(1, "x"))
			s.header(h2.FlagEndStream, 1, "x", "y")
		}, 1, wire.InternalError, "no status"},
		"no message": {func(s *server) {
			s.header(0, 1, good...)
			s.header(h2.FlagEndStream, 1, "grpc-status", "0")
		}, 1, wire.Unimplemented, "no message"},
		"two messages": {func(s *server) {
			s.header(0, 1, good...)
			s.frame(h2.FrameData, 0, 1, append(message(1, "x"), message(1, "x")...))
		}, 1, wire.Unimplemented, "more than one message"},
		"half a message": {func(s *server) {
			s.header(0, 1, good...)
			s.frame(h2.FrameData, 0, 1, message(10, "x"))
			s.header(h2.FlagEndStream, 1, "grpc-status", "0")
		}, 1, wire.InternalError, "inside the message"},
		"half a message of a stream": {func(s *server) {
			s.header(0, 3, good...)
			s.frame(h2.FrameData, 0, 3, message(10, "x"))
			s.header(h2.FlagEndStream, 3, "grpc-status", "0")
		}, 2, wire.InternalError, "inside a message"},
		"4 GiB": {func(s *server) {
			s.header(0, 1, good...)
			s.frame(h2.FrameData, 0, 1, message(1<<32-1, "x"))
		}, 1, wire.ResourceExhausted, "4294967295 bytes"},
		"4 GiB on a stream": {func(s *server) {
			s.header(0, 3, good...)
			s.frame(h2.FrameData, 0, 3, message(1<<32-1, "x"))
		}, 2, wire.ResourceExhausted, "4294967295 bytes"},
		"compressed without a word": {func(s *server) {
			s.header(0, 1, good...)
			s.frame(h2.FrameData, 0, 1, []byte{1, 0, 0, 0, 1, 'x'})
			s.header(h2.FlagEndStream, 1, "grpc-status", "0")
		}, 1, wire.InternalError, "not agreed on"},
		"end without trailers": {func(s *server) {
			s.header(0, 1, good...)
			s.frame(h2.FrameData, h2.FlagEndStream, 1, message(1, "x"))
		}, 1, wire.InternalError, "without a status"},
		"data first":  {func(s *server) { s.frame(h2.FrameData, 0, 1, []byte("x")) }, 1, wire.InternalError, "before the header"},
		"two headers": {func(s *server) { s.header(0, 1, good...); s.header(0, 1, good...) }, 1, wire.InternalError, "second header"},
		"refused":     {func(s *server) { s.frame(h2.FrameReset, 0, 1, []byte{0, 0, 0, 7}) }, 1, wire.Unavailable, "REFUSED_STREAM"},

		"idle stream":      {func(s *server) { s.header(0, 99, good...) }, 0, 0, "idle"},
		"push":             {func(s *server) { s.frame(h2.FramePushPromise, 0, 1, make([]byte, 8)) }, 0, 0, "PUSH_PROMISE"},
		"frame too large":  {func(s *server) { s.frame(h2.FrameData, 0, 1, make([]byte, 17<<10)) }, 0, 0, "a frame of"},
		"no end of header": {func(s *server) { s.frame(h2.FrameHeaders, 0, 1, nil); s.frame(h2.FramePing, 0, 0, make([]byte, 8)) }, 0, 0, "not complete"},
		"continuation flood": {func(s *server) {
			s.frame(h2.FrameHeaders, 0, 1, nil)
			for range 100 {
				s.frame(h2.FrameContinuation, 0, 1, nil)
			}
		}, 0, 0, "header of more than"},
		"ping flood": {func(s *server) {
			for range 20_000 {
				s.frame(h2.FramePing, 0, 0, make([]byte, 8))
			}
		}, 0, 0, "too many frames"},
		"informational headers": {func(s *server) {
			for range 20_000 {
				s.header(0, 1, ":status", "103")
			}
		}, 0, 0, "too many frames"},
		"headers of a call that has ended": {func(s *server) {
			s.frame(h2.FrameReset, 0, 1, []byte{0, 0, 0, 7})
			for range 20_000 {
				s.header(0, 1, good...)
			}
		}, 0, 0, "too many frames"},
		"empty data": {func(s *server) {
			s.header(0, 3, good...)
			for range 20_000 {
				s.frame(h2.FrameData, 0, 3, nil)
			}
		}, 0, 0, "too many frames"},
		"beyond the window": {func(s *server) {
			s.header(0, 3, good...)
			for range 20 {
				s.frame(h2.FrameData, 0, 3, append(message(1<<20, ""), make([]byte, 16<<10-5)...))
			}
		}, 0, 0, "beyond the window"},
		"window overflow": {func(s *server) {
			s.frame(h2.FrameWindowUpdate, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff})
		}, 0, 0, "WINDOW_UPDATE"},
		"HPACK": {func(s *server) { s.frame(h2.FrameHeaders, h2.FlagEndHeaders, 1, []byte{0xff, 0xff, 0xff, 0xff}) }, 0, 0, "the header"},
		"HPACK bomb": {func(s *server) {
			s.header(0, 1, append(good, "x", strings.Repeat("y", 4000))...)
			for range 40 {
				s.frame(h2.FrameHeaders, h2.FlagEndHeaders, 3, bytes.Repeat([]byte{0xbe}, 16<<10))
			}
		}, 0, 0, "a header of more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			row.send(s)
			frames, bodies, end := talk(t, s)
			if row.call == 0 && row.text != "" {
				if end == nil || !strings.Contains(end.Error(), row.text) {
					t.Errorf("the connection ends with %v, want %q", end, row.text)
				}
				return
			}
			if row.call == 0 {
				return
			}
			failed := 0
			for i, h := range frames {
				if h.Type != wire.TypeError || h.ID != row.call {
					continue
				}
				failed++
				e, err := wire.ParseError(h.Flags, bodies[i])
				if err != nil || e.Code != row.code || !strings.Contains(e.Message, row.text) {
					t.Errorf("the call fails with %v: %q (%v), want %v: %q", e.Code, e.Message, err, row.code, row.text)
				}
			}
			if failed != 1 {
				t.Errorf("the call has failed %d times", failed)
			}
		})
	}
}

// A server that goes away runs the streams that it names, and the client hears which calls did not
// run.
func TestGoAway(t *testing.T) {
	s := newServer()
	s.frame(h2.FrameGoAway, 0, 0, []byte{0, 0, 0, 1, 0, 0, 0, 0})
	s.header(0, 1, good...)
	s.frame(h2.FrameData, 0, 1, []byte{0, 0, 0, 0, 2, 'o', 'k'})
	s.header(h2.FlagEndStream, 1, "grpc-status", "0")
	frames, bodies, _ := talk(t, s)
	var seen []wire.Type
	for i, h := range frames {
		seen = append(seen, h.Type)
		switch h.Type {
		case wire.TypeError:
			if e, err := wire.ParseError(h.Flags, bodies[i]); err != nil || h.ID != 2 || e.Outcome != wire.Refused || e.Code != wire.Unavailable {
				t.Errorf("call %d fails with %+v", h.ID, e)
			}
		case wire.TypeReply:
			if r, err := wire.ParseReply(h.Flags, bodies[i]); err != nil || h.ID != 1 || string(r.Payload) != "ok" {
				t.Errorf("call %d is answered with %q (%v)", h.ID, r.Payload, err)
			}
		}
	}
	want := []wire.Type{wire.TypeSettings, wire.TypeDrain, wire.TypeError, wire.TypeReply, wire.TypeClose}
	if len(seen) != len(want) {
		t.Fatalf("the client gets %v, want %v", seen, want)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("the client gets %v, want %v", seen, want)
		}
	}
}

// Whatever a server sends, the client neither panics nor hangs, and gets whole frames.
func FuzzServer(f *testing.F) {
	s := newServer()
	s.header(0, 1, good...)
	s.frame(h2.FrameData, 0, 1, []byte{0, 0, 0, 0, 2, 'o', 'k'})
	s.header(h2.FlagEndStream, 1, "grpc-status", "0")
	s.header(0, 3, good...)
	s.frame(h2.FrameData, 0, 3, []byte{0, 0, 0, 0, 2, 'o', 'k', 0, 0})
	f.Add(s.out.Bytes())
	s = newServer()
	s.frame(h2.FrameGoAway, 0, 0, []byte{0, 0, 0, 1, 0, 0, 0, 0})
	s.frame(h2.FrameSettings, 0, 0, []byte{0, 4, 0, 0, 0, 0})
	s.header(h2.FlagEndStream, 1, append(good, "grpc-status", "5", "grpc-message", "%20", "x-bin", "AA")...)
	s.frame(h2.FrameReset, 0, 3, []byte{0, 0, 0, 8})
	f.Add(s.out.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newServer()
		s.out.Write(b)
		talk(t, s)
	})
}
