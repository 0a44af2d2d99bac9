package protocols_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/protocols"
)

// villain is an HTTP/2 server that plays a row of TestHostileServers on each of its connections.
type villain struct {
	nc    net.Conn
	kind  string // the content type of the call
	fr    *http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
}

// header sends a header of a stream.
func (v *villain) header(stream uint32, end bool, pairs ...string) error {
	v.block.Reset()
	for ; len(pairs) > 0; pairs = pairs[2:] {
		v.enc.WriteField(hpack.HeaderField{Name: pairs[0], Value: pairs[1]})
	}
	return v.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: v.block.Bytes(), EndHeaders: true, EndStream: end})
}

// answers begins the answer to a call.
func (v *villain) answers(more ...string) error {
	return v.header(1, false, append([]string{":status", "200", "content-type", v.kind}, more...)...)
}

// forever repeats until the connection ends, 2 GiB were sent or the client does not read.
func forever(send func() error) {
	for range 1 << 20 {
		if send() != nil {
			return
		}
	}
}

// envelope returns a gRPC message with a length that need not be true.
func envelope(flag byte, size uint32, p []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, size), p...)
}

// bomb is 256 MiB in 256 KiB.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for range 4 << 10 {
		w.Write(make([]byte, 64<<10))
	}
	w.Close()
	return b.Bytes()
})

// villains are servers that want to hurt their clients. They are called after the client has sent
// the header of its call.
var villains = map[string]func(*villain){
	"silent":        func(*villain) {},
	"only a header": func(v *villain) { v.answers() },
	"no streams": func(v *villain) {
		v.fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams})
	},
	"informational headers": func(v *villain) { forever(func() error { return v.header(1, false, ":status", "103") }) },
	"pings":                 func(v *villain) { forever(func() error { return v.fr.WritePing(false, [8]byte{1}) }) },
	"settings": func(v *villain) {
		forever(func() error { return v.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}) })
	},
	"unknown frames": func(v *villain) {
		forever(func() error { return v.fr.WriteRawFrame(0x77, 0, 0, make([]byte, 1000)) })
	},
	"resets": func(v *villain) {
		forever(func() error { return v.fr.WriteRSTStream(1, http2.ErrCodeRefusedStream) })
	},
	"window updates": func(v *villain) { forever(func() error { return v.fr.WriteWindowUpdate(1, 1<<30) }) },
	"priorities": func(v *villain) {
		for range 100 { // net/http logs each
			v.fr.WritePriority(1, http2.PriorityParam{Weight: 1})
		}
	},
	"continuations": func(v *villain) {
		v.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
		forever(func() error { return v.fr.WriteContinuation(1, false, bytes.Repeat([]byte{0, 1, 'x', 1, 'y'}, 1000)) })
	},
	"an HPACK bomb": func(v *villain) {
		v.answers("x", strings.Repeat("y", 4000))
		forever(func() error {
			return v.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: bytes.Repeat([]byte{0xbe}, 16<<10), EndHeaders: true})
		})
	},
	"empty data": func(v *villain) {
		v.answers()
		forever(func() error { return v.fr.WriteData(1, false, nil) })
	},
	"padding": func(v *villain) {
		v.answers()
		forever(func() error { return v.fr.WriteDataPadded(1, false, nil, make([]byte, 255)) })
	},
	"data beyond the window": func(v *villain) {
		v.answers()
		v.fr.WriteData(1, false, envelope(0, 4<<20, nil))
		forever(func() error { return v.fr.WriteData(1, false, make([]byte, 16<<10)) })
	},
	"data of a stream that has ended": func(v *villain) {
		v.header(1, true, ":status", "200", "content-type", v.kind, "grpc-status", "5")
		forever(func() error { return v.fr.WriteData(1, false, make([]byte, 100)) })
	},
	"headers of a stream that has ended": func(v *villain) {
		v.header(1, true, ":status", "200", "content-type", v.kind, "grpc-status", "5")
		forever(func() error { return v.answers() })
	},
	"a message of 4 GiB": func(v *villain) {
		v.answers()
		v.fr.WriteData(1, false, envelope(0, 1<<32-1, make([]byte, 1000)))
	},
	"a message that does not end": func(v *villain) {
		v.answers()
		v.fr.WriteData(1, false, envelope(0, 1<<20, []byte("x")))
		forever(func() error {
			time.Sleep(10 * time.Millisecond)
			return v.fr.WriteData(1, false, []byte("x"))
		})
	},
	"a compressed bomb": func(v *villain) {
		v.answers("grpc-encoding", "gzip", "connect-content-encoding", "gzip")
		for data := envelope(1, uint32(len(bomb())), bomb()); len(data) > 0; {
			n := min(len(data), 16<<10)
			v.fr.WriteData(1, false, data[:n])
			data = data[n:]
		}
		v.header(1, true, "grpc-status", "0")
	},
	"a message without trailers": func(v *villain) {
		v.answers()
		v.fr.WriteData(1, true, envelope(0, 1, []byte("x")))
	},
	"trailers without a header": func(v *villain) { v.header(1, true, "grpc-status", "0") },
	"a status of words": func(v *villain) {
		v.header(1, true, ":status", "200", "content-type", v.kind, "grpc-status", "ok")
	},
	"an endless message of an error": func(v *villain) {
		v.header(1, true, ":status", "200", "content-type", v.kind, "grpc-status", "5", "grpc-message", strings.Repeat("%25", 25_000))
	},
	"going away": func(v *villain) { forever(func() error { return v.fr.WriteGoAway(0, http2.ErrCodeNo, nil) }) },
	"a push": func(v *villain) {
		v.fr.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true, BlockFragment: []byte{0x88}})
	},
	"garbage": func(v *villain) {
		forever(func() error { _, err := v.nc.Write(make([]byte, 10_000)); return err })
	},
}

// play serves connections as the row does until the test ends, and reports whether there was a
// call.
func play(t *testing.T, row func(*villain)) (address string, called *atomic.Bool) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	called = new(atomic.Bool)
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer nc.Close()
				defer context.AfterFunc(t.Context(), func() { nc.Close() })()
				v := &villain{nc: nc, fr: http2.NewFramer(nc, nc)}
				v.fr.AllowIllegalWrites, v.fr.ReadMetaHeaders = true, hpack.NewDecoder(4096, nil)
				v.enc = hpack.NewEncoder(&v.block)
				if _, err := io.CopyN(io.Discard, nc, int64(len(http2.ClientPreface))); err != nil {
					return
				}
				v.fr.WriteSettings()
				for begun := false; ; {
					f, err := v.fr.ReadFrame()
					if err != nil {
						return
					}
					if h, ok := f.(*http2.MetaHeadersFrame); ok && !begun {
						begun = true
						called.Store(true)
						for _, f := range h.RegularFields() {
							if f.Name == "content-type" {
								v.kind = f.Value
							}
						}
						all.Go(func() { row(v) })
					}
				}
			})
		}
	})
	return l.Addr().String(), called
}

// Whatever a server does, a call ends soon after its deadline, and a stream when its client is
// closed; the client holds little, and nothing is left of it.
func TestHostileServers(t *testing.T) {
	for name, l := range map[string]struct {
		scheme    string
		transport func() anser.DialOption
	}{
		"gRPC":     {"grpc://", func() anser.DialOption { return protocols.GRPC() }},
		"gRPC-Web": {"http://", func() anser.DialOption { return protocols.GRPCWeb(protocols.UnencryptedHTTP2()) }},
		"Connect":  {"http://", func() anser.DialOption { return protocols.Connect(protocols.UnencryptedHTTP2()) }},
	} {
		for row, act := range villains {
			if name != "gRPC" && (row == "window updates" || row == "unknown frames") {
				continue // net/http waits for itself at an overflow, and logs each frame that it does not know
			}
			dial := func(t *testing.T) (*anser.Client, *atomic.Bool) {
				address, called := play(t, act)
				c, err := anser.Dial(l.scheme+address, l.transport(), silent, anser.NoSnapshot(), anser.Attempts(1), anser.Conns(1),
					anser.Codec(new(codec.JSON)), anser.Compress(compress.Gzip(), anser.Dynamic))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if c.Close(); !called.Load() {
						t.Error("the server was not called")
					}
				})
				return c, called
			}
			const lasts = 200 * time.Millisecond
			t.Run(name+"/call/"+row, func(t *testing.T) {
				t.Parallel()
				c, called := dial(t)
				for range 10 { // on a busy machine the time may be over before there is a connection
					ctx, cancel := context.WithTimeout(t.Context(), lasts)
					began := time.Now()
					_, err := anser.Call[Words](ctx, c, "test.Matrix.Say", &Words{"x"})
					cancel()
					if _, ok := errors.AsType[*anser.Error](err); !ok {
						t.Errorf("the call ends with %v", err)
					}
					if took := time.Since(began); took > time.Minute { // the machine may be busy
						t.Errorf("the call took %v", took)
					}
					if called.Load() {
						break
					}
				}
				holdsLittle(t)
			})
			t.Run(name+"/stream/"+row, func(t *testing.T) {
				t.Parallel()
				c, _ := dial(t)
				st, err := anser.Open[Words, Words](t.Context(), c, "test.Matrix.Chat")
				if err == nil {
					err = st.Send(&Words{"x"})
					time.AfterFunc(lasts, func() { c.Close() })
				}
				for err == nil {
					_, err = st.Recv()
				}
				holdsLittle(t)
			})
		}
	}
}

// holdsLittle checks the memory of the process, which several tests share.
func holdsLittle(t *testing.T) {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	if runtime.ReadMemStats(&m); m.HeapAlloc > 64<<20 {
		t.Errorf("%d MiB are held", m.HeapAlloc>>20)
	}
}
