package grpcclient_test

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/protocols/internal/grpcclient"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

// session is a connection between a client and a server that the test plays.
type session struct {
	client, server net.Conn

	mu     sync.Mutex // guards what follows
	data   int        // bytes of DATA that the server got
	kinds  map[byte]int
	up     []byte // what the client got
	reader sync.WaitGroup
}

// begin connects a client to a server whose first bytes are given, and ends with the test.
func begin(t *testing.T, first []byte) *session {
	t.Helper()
	near, far := net.Pipe()
	s := &session{server: far, kinds: make(map[byte]int)}
	s.reader.Go(s.serve)
	s.reader.Go(func() { far.Write(first) })
	var err error
	if s.client, err = grpcclient.New(near, "test:1"); err != nil {
		t.Fatal(err)
	}
	s.reader.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, err := s.client.Read(b)
			s.mu.Lock()
			s.up = append(s.up, b[:n]...)
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		s.client.Close()
		far.Close()
		s.reader.Wait()
	})
	s.write(wire.AppendMethod(wire.AppendSettings(wire.AppendPreface(nil), wire.DefaultSettings()), 1, "test.Echo.Say"))
	return s
}

// serve reads what the client sends.
func (s *session) serve() {
	if _, err := io.CopyN(io.Discard, s.server, int64(len(h2.Preface))); err != nil {
		return
	}
	head := make([]byte, h2.HeaderSize)
	for {
		if _, err := io.ReadFull(s.server, head); err != nil {
			return
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, s.server, size); err != nil {
			return
		}
		s.mu.Lock()
		if s.kinds[head[3]]++; head[3] == h2.FrameData {
			s.data += int(size)
		}
		s.mu.Unlock()
	}
}

// write sends frames of the client.
func (s *session) write(b []byte) { s.client.Write(b) }

// frames returns the frames that the client got, by their type, and the errors.
func (s *session) frames(t *testing.T) (kinds map[wire.Type]int, errors []wire.ErrorBody) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds = make(map[wire.Type]int)
	for b := s.up[min(len(s.up), wire.PrefaceSize):]; len(b) > 0; {
		h, err := wire.ParseHeader(b)
		if err != nil || len(b) < wire.HeaderSize+int(h.Length) {
			t.Fatalf("the client gets a malformed frame: %v", err)
		}
		kinds[h.Type]++
		if h.Type == wire.TypeError {
			e, err := wire.ParseError(h.Flags, b[wire.HeaderSize:wire.HeaderSize+int(h.Length)])
			if err != nil {
				t.Fatal(err)
			}
			errors = append(errors, e)
		}
		b = b[wire.HeaderSize+int(h.Length):]
	}
	return kinds, errors
}

func (s *session) received() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data
}

// request appends a unary request of n bytes.
func request(b []byte, id uint64, n int, timeout time.Duration) []byte {
	return wire.AppendRequest(b, id, 0, &wire.Request{Method: 1, Codec: 4, Payload: make([]byte, n), Timeout: uint64(timeout / time.Microsecond)})
}

func settings(pairs ...uint32) []byte {
	b := h2.FrameHeader(3*len(pairs), h2.FrameSettings, 0, 0)
	for ; len(pairs) > 0; pairs = pairs[2:] {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(pairs[0])), pairs[1])
	}
	return b
}

// held returns the bytes of the heap after f beyond those before it.
func held(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// What follows the first settings in one packet counts, although nothing more comes.
func TestFramesBehindTheSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, h2.AppendWindowUpdate(settings(uint32(h2.SettingWindow), 1<<20), 0, 1<<20))
		s.write(request(nil, 1, 200_000, 0))
		synctest.Wait()
		if got := s.received(); got != 200_000+5 {
			t.Errorf("the server gets %d bytes", got)
		}
	})
}

// A server that goes away at once is left at once.
func TestGoAwayBehindTheSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, append(append(settings(), h2.FrameHeader(8, h2.FrameGoAway, 0, 0)...), make([]byte, 8)...))
		s.write(request(nil, 1, 1, 0))
		synctest.Wait()
		kinds, errors := s.frames(t)
		if kinds[wire.TypeDrain] != 1 || len(errors) != 1 || errors[0].Outcome != wire.Refused {
			t.Errorf("the client gets %v, %+v", kinds, errors)
		}
	})
}

// A server that opens no streams does not make the client keep calls whose time is over, or more
// calls than a connection may have.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, settings(uint32(h2.SettingMaxStreams), 0))
		for round := range uint64(3) {
			var b []byte
			for i := range uint64(8_000) {
				b = request(b, 1+round*8_000+i, 10, time.Second)
			}
			s.write(b)
			time.Sleep(20 * time.Second)
		}
		var b []byte
		for i := range uint64(10_100) {
			b = request(b, 100_000+i, 10, 0)
		}
		s.write(b)
		synctest.Wait()
		_, errors := s.frames(t)
		codes := make(map[wire.Code]int)
		for _, e := range errors {
			if codes[e.Code]++; e.Outcome != wire.Refused {
				t.Fatalf("%+v", e)
			}
		}
		if codes[wire.DeadlineExceeded] != 24_000 || codes[wire.ResourceExhausted] != 100 || len(errors) != 24_100 {
			t.Errorf("the client gets errors %v", codes)
		}
	})
}

// Calls that the client has given up leave nothing behind, whatever they waited for.
func TestCancelledCallsLeaveNothing(t *testing.T) {
	for name, first := range map[string][]byte{
		"for a stream":                   settings(uint32(h2.SettingMaxStreams), 0),
		"for credit of the connection":   settings(uint32(h2.SettingWindow), 1<<20),
		"for credit of the stream alone": settings(uint32(h2.SettingWindow), 0),
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, first)
			var b []byte
			id := uint64(0)
			calls := func(n int) {
				for range n {
					id++
					b = wire.AppendCancel(request(b[:0], id, 1000, 0), id)
					s.write(b)
				}
			}
			calls(1000)
			if n := held(func() { calls(50_000) }); n > 4<<20 {
				t.Errorf("%d bytes are held", n)
			}
		})
	}
}

// A server that ends a stream before the client has, and then resets it, has ended it with its
// status, although the client has not taken all messages yet.
func TestResetAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, settings())
		s.write(wire.AppendRequest(nil, 2, wire.FlagStream, &wire.Request{Method: 1, Codec: 4}))
		synctest.Wait()
		server := newServer()
		server.header(0, 1, good...)
		const size, part = 256<<10 - 5, 1000
		message := append(binary.BigEndian.AppendUint32([]byte{0}, size), make([]byte, size)...)
		for ; len(message) > 0; message = message[min(part, len(message)):] { // with Anser's heads it is more than the client takes
			server.frame(h2.FrameData, 0, 1, message[:min(part, len(message))])
		}
		server.header(h2.FlagEndStream, 1, "grpc-status", "0")
		server.frame(h2.FrameReset, 0, 1, []byte{0, 0, 0, 0})
		s.server.Write(server.out.Bytes())
		synctest.Wait()
		s.write(wire.AppendWindow(wire.AppendWindow(nil, 0, 1<<20), 2, 1<<20))
		synctest.Wait()
		kinds, errors := s.frames(t)
		if kinds[wire.TypeEnd] != 1 || kinds[wire.TypeData] < size/part || len(errors) != 0 {
			t.Errorf("the client gets %v, %+v", kinds, errors)
		}
	})
}

// What arrives after the credit of the client was used to the last byte is delivered.
func TestCreditUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, settings())
		s.write(wire.AppendRequest(nil, 2, wire.FlagStream, &wire.Request{Method: 1, Codec: 4}))
		synctest.Wait()
		const parts, credit, more = 32, 256 << 10, 1000
		const size = credit - parts*wire.DataSize
		server := newServer()
		server.header(0, 1, good...)
		message := append(binary.BigEndian.AppendUint32([]byte{0}, size+more), make([]byte, size)...)
		for i := range parts {
			n := size / parts
			if i == 0 {
				n += 5 + size%parts
			}
			server.frame(h2.FrameData, 0, 1, message[:n])
			message = message[n:]
		}
		s.server.Write(server.out.Bytes())
		synctest.Wait()
		s.write(wire.AppendWindow(wire.AppendWindow(nil, 0, credit), 2, credit))
		synctest.Wait()
		server.out.Reset()
		server.frame(h2.FrameData, 0, 1, make([]byte, more))
		server.header(h2.FlagEndStream, 1, "grpc-status", "0")
		s.server.Write(server.out.Bytes())
		synctest.Wait()
		if kinds, errors := s.frames(t); kinds[wire.TypeData] != parts+1 || kinds[wire.TypeEnd] != 1 || len(errors) != 0 {
			t.Errorf("the client gets %v, %+v", kinds, errors)
		}
	})
}

// A message that does not end is an error, although the credit of the client was used up.
func TestEndInsideAMessageWithoutCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, settings())
		s.write(wire.AppendRequest(nil, 2, wire.FlagStream, &wire.Request{Method: 1, Codec: 4}))
		synctest.Wait()
		const parts, credit = 32, 256 << 10
		const size = credit - parts*wire.DataSize
		server := newServer()
		server.header(0, 1, good...)
		server.frame(h2.FrameData, 0, 1, binary.BigEndian.AppendUint32([]byte{0}, size+1))
		for range parts {
			server.frame(h2.FrameData, 0, 1, make([]byte, size/parts))
		}
		server.header(h2.FlagEndStream, 1, "grpc-status", "0")
		s.server.Write(server.out.Bytes())
		synctest.Wait()
		s.write(wire.AppendWindow(wire.AppendWindow(nil, 0, credit), 2, credit))
		synctest.Wait()
		if kinds, errors := s.frames(t); len(errors) != 1 {
			t.Errorf("the client gets %v, %+v", kinds, errors)
		}
	})
}

// Of several sizes of a window in one frame the last one counts.
func TestSeveralWindowsInAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, h2.AppendWindowUpdate(settings(uint32(h2.SettingWindow), 0), 0, 1<<20))
		s.write(request(nil, 1, 1000, 0))
		synctest.Wait()
		w := uint32(h2.SettingWindow)
		s.server.Write(settings(w, 1<<20, w, 0, w, 100))
		synctest.Wait()
		if got := s.received(); got != 100 {
			t.Errorf("the server gets %d bytes", got)
		}
	})
}
