package anser_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/compress/lz4"
	"github.com/anser-rpc/anser/compress/zstd"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// prose returns n bytes that can be compressed.
func prose(n int) string { return strings.Repeat("a goose that carries letters, ", n/30+1)[:n] }

// randomText returns n bytes that cannot be compressed.
func randomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return string(b)
}

// sighting is a request as received by a server that answers "ok".
type sighting struct {
	compression uint8
	flags       wire.Flags
	payload     []byte
}

// takers starts a server that understands the compressions, and returns the requests that it
// receives.
func takers(t *testing.T, ids ...uint8) (target string, requests <-chan sighting) {
	t.Helper()
	l := listen(t)
	ch := make(chan sighting, 100)
	rawServerWith(t, l, ids, func(p *wirepeer.Peer) {
		for {
			f, err := p.NextOf(wire.TypeRequest)
			if err != nil {
				return
			}
			var r wire.Request
			if err := wire.ParseRequest(f.Flags, f.Body, &r); err != nil {
				t.Error(err)
			}
			ch <- sighting{r.Compression, f.Flags & (wire.FlagPlain | wire.FlagForced | wire.FlagOneway), bytes.Clone(r.Payload)}
			if f.Flags&wire.FlagOneway == 0 {
				p.Send(wirepeer.Reply(f.ID, []byte("ok")))
			}
		}
	})
	return l.Addr().String(), ch
}

// The form of a request on the wire, for each option, message and server.
func TestCompressedRequests(t *testing.T) {
	zstd, gzip := zstd.New(), compress.Gzip()
	own := shouter{}
	for name, c := range map[string]struct {
		client, call anser.DialCallOption
		message      string
		takes        []uint8
		id           uint8
		flags        wire.Flags
		packed       bool
	}{
		"none":                          {message: prose(1000), takes: []uint8{1, 4}},
		"dynamic":                       {client: anser.Compress(zstd), message: prose(1000), takes: []uint8{1, 4}, id: 4, packed: true},
		"dynamic, 200 bytes":            {client: anser.Compress(zstd), message: prose(200), takes: []uint8{4}, id: 4, packed: true},
		"dynamic, 199 bytes":            {client: anser.Compress(zstd), message: prose(199), takes: []uint8{4}, id: 4, flags: wire.FlagPlain},
		"dynamic from 50":               {client: anser.Compress(zstd, anser.CompressFrom(50)), message: strings.Repeat("a", 50), takes: []uint8{4}, id: 4, packed: true},
		"dynamic, does not shrink":      {client: anser.Compress(zstd), message: randomText(1000), takes: []uint8{4}, id: 4, flags: wire.FlagPlain},
		"forced, empty":                 {client: anser.Compress(zstd, anser.Forced), takes: []uint8{4}, id: 4, flags: wire.FlagForced, packed: true},
		"forced, does not shrink":       {client: anser.Compress(zstd, anser.Forced), message: randomText(1000), takes: []uint8{4}, id: 4, flags: wire.FlagForced, packed: true},
		"never":                         {client: anser.Compress(zstd, anser.Never), message: prose(1000), takes: []uint8{4}},
		"the server lacks it":           {client: anser.Compress(zstd, anser.Forced), message: prose(1000), takes: []uint8{1}},
		"the server takes nothing":      {client: anser.Compress(zstd, anser.Forced), message: prose(1000)},
		"a call":                        {call: anser.Compress(gzip), message: prose(1000), takes: []uint8{1}, id: 1, packed: true},
		"a call goes before the client": {client: anser.Compress(zstd), call: anser.Compress(gzip, anser.Forced), message: prose(10), takes: []uint8{1, 4}, id: 1, flags: wire.FlagForced, packed: true},
		"a call without":                {client: anser.Compress(zstd), call: anser.Compress(nil), message: prose(1000), takes: []uint8{4}},
		"a call with none":              {client: anser.Compress(zstd), call: anser.Compress(compress.None(), anser.Forced), message: prose(1000), takes: []uint8{4}},
		"one of the application":        {client: anser.Compress(own, anser.Forced), message: "hello", takes: []uint8{200}, id: 200, flags: wire.FlagForced, packed: true},
		"too good to be believed":       {client: anser.Compress(zstd, anser.Forced), message: string(make([]byte, 2<<20)), takes: []uint8{4}, id: 4, flags: wire.FlagForced | wire.FlagPlain},
		"good, of 1 MiB":                {client: anser.Compress(zstd), message: string(make([]byte, 1<<20)), takes: []uint8{4}, id: 4, packed: true},
		"to such instances":             {client: anser.Compress(zstd, anser.CompressTo(func(in registry.Instance) bool { return in.Address != "" })), message: prose(1000), takes: []uint8{4}, id: 4, packed: true},
		"not to such instances":         {client: anser.Compress(zstd, anser.CompressTo(func(in registry.Instance) bool { return in.Zone == "far" })), message: prose(1000), takes: []uint8{4}},
	} {
		t.Run(name, func(t *testing.T) {
			target, requests := takers(t, c.takes...)
			var opts []anser.DialOption
			var callOpts []anser.CallOption
			if c.client != nil {
				opts = append(opts, c.client)
			}
			if c.call != nil {
				callOpts = append(callOpts, c.call)
			}
			client := dial(t, target, opts...)
			for range 2 { // the pooled call of the first one leaves nothing behind
				if out, err := call(context.Background(), client, "Echo.Say", c.message, callOpts...); out != "ok" || err != nil {
					t.Fatalf("%q, %v", out, err)
				}
				got := <-requests
				if got.compression != c.id || got.flags != c.flags {
					t.Errorf("compression %d, flags %02x; want %d, %02x", got.compression, got.flags, c.id, c.flags)
				}
				if c.packed == (string(got.payload) == c.message) {
					t.Errorf("%d bytes became %d", len(c.message), len(got.payload))
				}
			}
		})
	}
}

// shouter is a compressor of an application.
type shouter struct{}

func (shouter) ID() uint8    { return 200 }
func (shouter) Name() string { return "shouting" }
func (shouter) Append(dst, src []byte) ([]byte, error) {
	if string(src) == "cannot" {
		return dst, errors.New("no voice")
	}
	if string(src) == "panic" {
		panic("lost my voice")
	}
	return append(append(dst, '!'), src...), nil
}

func (shouter) Decompress(dst, src []byte, _ int) ([]byte, error) {
	if len(src) == 0 || src[0] != '!' {
		return dst, errors.New("that is not a shout")
	}
	if string(src) == "!deaf" {
		panic("heard nothing")
	}
	return append(dst, src[1:]...), nil
}

// echoServer starts a server with the methods Echo.Say and Echo.Big, which answers a number n with
// "x" n times.
func echoServer(t *testing.T, opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	l := listen(t)
	s := serve(t, l, map[string]handler{"Echo.Say": echo, "Echo.Fail": func(context.Context, *[]byte) (*[]byte, error) {
		return nil, anser.Errorf(anser.NotFound, "nothing")
	}, "Echo.Big": func(_ context.Context, in *[]byte) (*[]byte, error) {
		var n int
		_, err := fmt.Sscan(string(*in), &n)
		return text(strings.Repeat("x", n)), err
	}}, append([]anser.ServerOption{anser.AcceptCompression(all.Compressors()...)}, opts...)...)
	return s, l.Addr().String()
}

// Every algorithm in both modes, in both directions, inline and on workers.
func TestCompressionEndToEnd(t *testing.T) {
	s, target := echoServer(t)
	for _, c := range all.Compressors() {
		for _, mode := range []anser.CompressMode{anser.Dynamic, anser.Forced} {
			t.Run(c.Name()+"/"+mode.String(), func(t *testing.T) {
				client := dial(t, target, anser.Compress(c, mode), anser.Timeout(patience))
				for _, message := range []string{"", "a", prose(199), prose(200), prose(100_000), randomText(5000), prose(4 << 20)} {
					if out, err := call(context.Background(), client, "Echo.Say", message); out != message || err != nil {
						t.Fatalf("%d bytes: %d came back, %v", len(message), len(out), err)
					}
				}
				if _, err := call(context.Background(), client, "Echo.Fail", prose(1000)); !errors.Is(err, anser.NotFound) {
					t.Errorf("an error: %v", err)
				}
				// A small request asks for a compressed reply too.
				if out, err := call(context.Background(), client, "Echo.Big", "100000"); len(out) != 100_000 || err != nil {
					t.Errorf("a large reply: %d, %v", len(out), err)
				}
				if st := client.Status().Compression; len(st) != 3 || st[2].Method != "Echo.Say" || st[2].Algorithm != c.Name() || st[2].Packed == 0 || st[2].After == 0 {
					t.Errorf("the client counted %+v", st)
				}
				for _, st := range s.Stats().Compression {
					if st.Method == "Echo.Big" && st.Algorithm == c.Name() && (st.Packed == 0 || st.Before != 100_000*st.Packed || st.After >= st.Before) {
						t.Errorf("the server counted %+v", st)
					}
				}
			})
		}
	}
	if n := len(s.Stats().Compression); n < 10 {
		t.Errorf("the server counted %d entries, want one for each method and algorithm", n)
	}
}

// The form of replies on the wire, for each request and server.
func TestCompressedReplies(t *testing.T) {
	dynamic := []anser.ServerOption{}
	for name, c := range map[string]struct {
		server []anser.ServerOption
		flags  wire.Flags
		size   string
		id     uint8
	}{
		"dynamic":                          {dynamic, wire.FlagPlain, "1000", 1},
		"dynamic, small":                   {dynamic, wire.FlagPlain, "199", 0},
		"dynamic, too good to be believed": {dynamic, wire.FlagPlain, "3000000", 0},
		"forced by the client":             {dynamic, wire.FlagPlain | wire.FlagForced, "1", 1},
		"forced by the server":             {[]anser.ServerOption{anser.CompressReplies(anser.Forced)}, wire.FlagPlain, "1", 1},
		"never":                            {[]anser.ServerOption{anser.CompressReplies(anser.Never)}, wire.FlagPlain | wire.FlagForced, "1000", 0},
		"from 1001":                        {[]anser.ServerOption{anser.CompressReplies(anser.CompressFrom(1001))}, wire.FlagPlain, "1000", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, target := echoServer(t, c.server...)
			p := rawDial(t, target)
			req := wire.AppendRequest(nil, 1, c.flags, &wire.Request{Method: 1, Codec: 1, Compression: 1, Payload: []byte(c.size)})
			if err := p.Send(wire.AppendMethod(nil, 1, "Echo.Big"), req); err != nil {
				t.Fatal(err)
			}
			f, err := p.NextOf(wire.TypeReply, wire.TypeError)
			if err != nil || f.Type != wire.TypeReply {
				t.Fatalf("%v, %v", f, err)
			}
			r, err := wire.ParseReply(f.Flags, f.Body)
			if err != nil || r.Compression != c.id {
				t.Errorf("compression %d, %v; want %d", r.Compression, err, c.id)
			}
		})
	}
}

// The server announces which compressions it accepts, and refuses others.
func TestAcceptCompression(t *testing.T) {
	for name, c := range map[string]struct {
		opts []anser.ServerOption
		bits [4]uint64
		text string
	}{
		"all":      {nil, [4]uint64{0x3E}, "1 gzip, 2 deflate, 3 snappy, 4 zstd, 5 lz4"},
		"built in": {[]anser.ServerOption{anser.AcceptCompression(compress.BuiltIn()...)}, [4]uint64{6}, "1 gzip, 2 deflate;"},
		"none":     {[]anser.ServerOption{anser.AcceptCompression()}, [4]uint64{}, "takes none;"},
		"some":     {[]anser.ServerOption{anser.AcceptCompression(zstd.New(), shouter{})}, [4]uint64{0x10, 0, 0, 1 << 8}, "4 zstd, 200 shouting"},
		"the last": {[]anser.ServerOption{anser.AcceptCompression(), anser.AcceptCompression(compress.Gzip())}, [4]uint64{2}, "1 gzip;"},
	} {
		t.Run(name, func(t *testing.T) {
			s, target := echoServer(t, c.opts...)
			p, settings := rawDialSettings(t, target)
			if settings.Compressions != c.bits {
				t.Errorf("the server understands %x, want %x", settings.Compressions, c.bits)
			}
			req := wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 1, Compression: 99, Payload: []byte("1")})
			p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), req, wirepeer.Request(2, 1, []byte("lives")))
			f, err := p.NextOf(wire.TypeReply, wire.TypeError)
			if err != nil || f.Type != wire.TypeError {
				t.Fatalf("%v, %v", f, err)
			}
			e, err := wire.ParseError(f.Flags, f.Body)
			if err != nil || e.Code != wire.Unimplemented || e.Outcome != wire.Refused || !strings.Contains(e.Message, c.text) {
				t.Errorf("%+v, %v; want it to list %s", e, err, c.text)
			}
			if f, err := p.NextOf(wire.TypeReply); err != nil || f.ID != 2 {
				t.Errorf("the next call: %v, %v", f, err)
			}
			if n := s.Stats().Refused; n != 1 {
				t.Errorf("%d calls were refused", n)
			}
		})
	}
}

// The limit applies to the message, not to its form on the wire: limit-1, limit, limit+1, in both
// directions.
func TestCompressionLimit(t *testing.T) {
	const limit = 100_000
	_, target := echoServer(t, anser.MaxMessage(limit))
	_, open := echoServer(t)
	for _, c := range all.Compressors() {
		t.Run(c.Name(), func(t *testing.T) {
			to := dial(t, target, anser.Compress(c, anser.Forced))
			from := dial(t, open, anser.Compress(c, anser.Forced), anser.MaxMessage(limit))
			for n, ok := range map[int]bool{limit - 1: true, limit: true, limit + 1: false} {
				for _, message := range []string{prose(n), randomText(n)} {
					out, err := call(context.Background(), to, "Echo.Say", message)
					if ok && (err != nil || out != message) {
						t.Errorf("a request of %d bytes: %v", n, err)
					} else if !ok {
						e := wantFault(t, err, anser.ResourceExhausted, anser.Refused)
						if !strings.Contains(e.Message, "anser.MaxMessage") || !e.Remote {
							t.Errorf("the error names no option: %v", e)
						}
					}
					out, err = call(context.Background(), from, "Echo.Say", message)
					if ok && (err != nil || out != message) {
						t.Errorf("a reply of %d bytes: %v", n, err)
					} else if !ok {
						e := wantFault(t, err, anser.ResourceExhausted, anser.Executed)
						if !strings.Contains(e.Message, "anser.MaxMessage") || e.Remote {
							t.Errorf("the error names no option: %v", e)
						}
					}
				}
			}
		})
	}
}

// An expansion by more than 100 times is refused above 1 MiB, unless the option says otherwise.
func TestMaxExpansion(t *testing.T) {
	bomb, err := compress.Gzip().Append(nil, make([]byte, 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	for times, ok := range map[int]bool{100: false, 10_000: true} {
		_, target := echoServer(t, anser.MaxExpansion(times))
		p := rawDial(t, target)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 1, Compression: 1, Payload: bomb}))
		f, err := p.NextOf(wire.TypeReply, wire.TypeError)
		if err != nil {
			t.Fatal(err)
		}
		if (f.Type == wire.TypeReply) != ok {
			t.Errorf("with %d times: %s", times, f.Type)
		}
		if f.Type == wire.TypeError {
			e, err := wire.ParseError(f.Flags, f.Body)
			if err != nil || e.Code != wire.ResourceExhausted || !strings.Contains(e.Message, "anser.MaxExpansion") {
				t.Errorf("%+v, %v", e, err)
			}
		}
	}
}

// A compressor that fails or panics fails its call.
func TestBadCompressor(t *testing.T) {
	_, target := echoServer(t, anser.AcceptCompression(shouter{}))
	c := dial(t, target, anser.Compress(shouter{}, anser.Forced))
	for in, want := range map[string]string{"cannot": "no voice", "panic": "lost my voice"} {
		_, err := call(context.Background(), c, "Echo.Say", in)
		if e := wantFault(t, err, anser.Internal, anser.NotSent); !strings.Contains(e.Message, want) || e.Phase != anser.PhaseEncode {
			t.Errorf("%v", e)
		}
	}
	p := rawDial(t, target)
	ask := func(id uint64, in string) wire.ErrorBody {
		req := wire.AppendRequest(nil, id, wire.FlagPlain|wire.FlagForced, &wire.Request{Method: 1, Codec: 1, Compression: 200, Payload: []byte(in)})
		p.Send(req)
		f, err := p.NextOf(wire.TypeError)
		if err != nil {
			t.Fatal(err)
		}
		e, err := wire.ParseError(f.Flags, f.Body)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
	if e := ask(1, "cannot"); e.Code != wire.InternalError || !strings.Contains(e.Message, "no voice") {
		t.Errorf("%+v", e)
	}
	if e := ask(2, "panic"); e.Code != wire.InternalError || !strings.Contains(e.Message, "panicked on the reply") {
		t.Errorf("%+v", e)
	}
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

// A compressor that panics on a request refuses the call, also one with an idempotency key.
func TestDeafCompressor(t *testing.T) {
	l := listen(t)
	s := anser.NewServer(silent, anser.AcceptCompression(shouter{}))
	anser.Handle(s, "Echo.Say", echo, anser.Deduplicate())
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Compress(shouter{}, anser.Forced))
	for name, opts := range map[string][]anser.CallOption{"without a key": nil, "with a key": {anser.IdempotencyKey("one")}} {
		_, err := anser.Call[[]byte](t.Context(), c, "Echo.Say", text("deaf"), opts...)
		if e := wantFault(t, err, anser.Internal, anser.Refused); !strings.Contains(e.Message, "the codec panicked on the request") {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// Futures and oneway calls are compressed like other calls.
func TestCompressedFuturesAndOneway(t *testing.T) {
	target, requests := takers(t, 4)
	for _, opts := range [][]anser.DialOption{nil, {anser.Intercept(func(next anser.Func) anser.Func { return next })}} {
		c := dial(t, target, append(opts, anser.Compress(zstd.New(), anser.Forced))...)
		message := prose(1000)
		for range 2 { // the first one has no connection yet
			if out, err := anser.Go[[]byte](context.Background(), c, "Echo.Say", text(message)).Wait(); err != nil || string(*out) != "ok" {
				t.Fatalf("a future: %v", err)
			}
			if r := <-requests; r.compression != 4 || len(r.payload) > 100 || r.flags != wire.FlagForced {
				t.Errorf("a future: compression %d, flags %02x, %d bytes", r.compression, r.flags, len(r.payload))
			}
		}
		if err := anser.Send(context.Background(), c, "Echo.Say", text(message)); err != nil {
			t.Fatal(err)
		}
		if r := <-requests; r.compression != 4 || len(r.payload) > 100 || r.flags != wire.FlagForced|wire.FlagOneway {
			t.Errorf("a oneway call: compression %d, flags %02x, %d bytes", r.compression, r.flags, len(r.payload))
		}
	}
	_, target = echoServer(t)
	c := dial(t, target, anser.Compress(lz4.New(), anser.Forced))
	var list []*anser.Future[[]byte]
	for n := range 100 {
		list = append(list, anser.Go[[]byte](context.Background(), c, "Echo.Say", text(prose(100*n))))
	}
	for n, f := range list {
		if out, err := f.Wait(); err != nil || string(*out) != prose(100*n) {
			t.Errorf("future %d: %v", n, err)
		}
	}
}

// BenchmarkCompressedCalls measures calls of an echo method with 64 KiB of text in both directions.
func BenchmarkCompressedCalls(b *testing.B) {
	l := listen(b)
	serve(b, l, map[string]handler{"Echo.Say": echo}, anser.AcceptCompression(all.Compressors()...))
	r := rand.New(rand.NewPCG(1, 2))
	var message []byte
	for len(message) < 64<<10 {
		message = fmt.Appendf(message, `{"id":%d,"name":"user %d","tags":["a","b"],"score":%d.5},`, r.IntN(1e6), r.IntN(1000), r.IntN(100))
	}
	for _, z := range append([]compress.Compressor{compress.None()}, all.Compressors()...) {
		b.Run(z.Name(), func(b *testing.B) {
			c := dial(b, l.Addr().String(), anser.Compress(z, anser.Forced))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// rawServerWith is rawServer for a server that understands compressions.
func rawServerWith(t testing.TB, l net.Listener, compressions []uint8, f func(p *wirepeer.Peer)) {
	t.Helper()
	own := wire.DefaultSettings()
	own.MaxFrame = 32 << 20
	for _, id := range compressions {
		own.AddCompression(id)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				p := wirepeer.New(nc)
				if p.Send(wirepeer.Hello(own)) != nil {
					return
				}
				if _, err := p.ReadHello(); err == nil {
					f(p)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait() // the clients, which were made later, are closed
	})
}

// rawDial connects to a server over TCP and returns a peer that has completed the handshake.
func rawDial(t testing.TB, address string) *wirepeer.Peer {
	t.Helper()
	p, _ := rawDialSettings(t, address)
	return p
}

func rawDialSettings(t testing.TB, address string) (*wirepeer.Peer, wire.Settings) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	p := wirepeer.New(nc)
	settings, err := p.Handshake()
	if err != nil {
		t.Fatal(err)
	}
	return p, settings
}
