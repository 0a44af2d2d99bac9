package anser_test

import (
	"bytes"
	"compress/flate"
	"context"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/compress/zstd"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// Messages of streams arrive unchanged, and are compressed if the client's mode says so, in both
// directions.
func TestCompressedStreams(t *testing.T) {
	messages := []string{"", "x", prose(199), prose(1000), randomText(5000), prose(1 << 20), randomText(100 << 10)}
	l := listen(t)
	s := serveStreams(t, l, map[string]streamHandler{"Chat.Talk": talk}, anser.AcceptCompression(all.Compressors()...))
	for _, z := range all.Compressors() {
		for mode, packed := range map[anser.CompressMode]int64{anser.Forced: int64(len(messages)), anser.Dynamic: 2} {
			t.Run(z.Name()+"/"+mode.String(), func(t *testing.T) {
				before := sumPacked(s.Stats().Compression, z.Name())
				// A price that no busy machine exceeds: learning has tests of its own.
				c := dial(t, l.Addr().String(), anser.Compress(z, mode, anser.CompressPrice(1<<30)))
				st, err := anser.OpenWith[[]byte, []byte](context.Background(), c, "Chat.Talk", text(messages[0]))
				if err != nil {
					t.Fatal(err)
				}
				for i, m := range messages {
					if i > 0 {
						say(t, st, m)
					}
					hear(t, st, m)
				}
				if err := st.CloseSend(); err != nil {
					t.Fatal(err)
				}
				if _, err := st.Recv(); ended(err) != nil {
					t.Fatal(err)
				}
				if n := sumPacked(c.Status().Compression, z.Name()); n != packed {
					t.Errorf("the client sent %d of %d messages compressed, want %d", n, len(messages), packed)
				}
				if n := sumPacked(s.Stats().Compression, z.Name()) - before; n != packed {
					t.Errorf("the server sent %d of %d messages compressed, want %d", n, len(messages), packed)
				}
			})
		}
	}
}

func sumPacked(list []anser.CompressionStats, algorithm string) (n int64) {
	for _, st := range list {
		if st.Algorithm == algorithm {
			n += st.Packed
		}
	}
	return n
}

// On the wire, the REQUEST names the compression, and so does each DATA frame whose message is
// compressed. With a server that lacks the algorithm, or an option of the stream that disables
// compression, everything is sent as it is.
func TestCompressionOfStreamsOnTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		takes []uint8
		opts  []anser.CallOption
		want  uint8
	}{
		"taken":         {[]uint8{compress.ZstdID}, nil, compress.ZstdID},
		"not taken":     {[]uint8{compress.GzipID}, nil, 0},
		"not wanted":    {[]uint8{compress.ZstdID}, []anser.CallOption{anser.Compress(nil)}, 0},
		"of the stream": {[]uint8{compress.ZstdID, compress.GzipID}, []anser.CallOption{anser.Compress(compress.Gzip(), anser.Forced)}, compress.GzipID},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			type seen struct {
				frame       wire.Type
				flags       wire.Flags
				compression uint8
			}
			frames := make(chan seen, 10)
			rawServerWith(t, l, c.takes, func(p *wirepeer.Peer) {
				for {
					f, err := p.NextOf(wire.TypeRequest, wire.TypeData)
					if err != nil {
						return
					}
					if f.Type == wire.TypeData {
						frames <- seen{f.Type, f.Flags, f.Body[1]}
						continue
					}
					var r wire.Request
					if err := wire.ParseRequest(f.Flags, f.Body, &r); err != nil {
						t.Error(err)
					}
					frames <- seen{f.Type, f.Flags & (wire.FlagPlain | wire.FlagForced), r.Compression}
				}
			})
			cl := dial(t, l.Addr().String(), anser.Compress(zstd.New(), anser.Forced))
			st := open(t, context.Background(), cl, "Chat.Talk", c.opts...)
			defer st.Close()
			say(t, st, prose(1000))
			flags := wire.FlagPlain | wire.FlagForced
			if c.want == 0 {
				flags = 0
			}
			if got, want := <-frames, (seen{wire.TypeRequest, flags, c.want}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if got, want := <-frames, (seen{wire.TypeData, 0, c.want}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// A message that cannot be decompressed fails its stream, and nothing else.
func TestBadCompressedMessages(t *testing.T) {
	good, _ := compress.Deflate().Append(nil, []byte(prose(1000)))
	var bomb bytes.Buffer
	bomb.Write([]byte{0x78, 0x9c})
	w, _ := flate.NewWriter(&bomb, flate.BestCompression)
	w.Write(make([]byte, 64<<20))
	w.Close()
	data := func(flags wire.Flags, compression uint8, payload []byte) []byte {
		f := dataFrame(1, flags, payload)
		f[wire.HeaderSize+1] = compression
		return f
	}
	for name, c := range map[string]struct {
		frames [][]byte
		code   wire.Code
	}{
		"good":                {[][]byte{data(0, 2, good)}, 0},
		"good, in pieces":     {[][]byte{data(wire.FlagMore, 2, good[:5]), data(0, 2, good[5:])}, 0},
		"uncompressed":        {[][]byte{data(0, 0, []byte("plain"))}, 0},
		"truncated":           {[][]byte{data(0, 2, good[:len(good)-1])}, wire.InvalidArgument},
		"a wrong checksum":    {[][]byte{data(0, 2, append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1))}, wire.DataLoss},
		"another compression": {[][]byte{data(0, 1, good)}, wire.Unimplemented},
		"mixed pieces":        {[][]byte{data(wire.FlagMore, 2, good[:5]), data(0, 0, good[5:])}, wire.InvalidArgument},
		"a bomb":              {[][]byte{data(0, 2, bomb.Bytes())}, wire.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Sink": sink}, anser.FlowControlWindows(1<<20, 1<<20))
				p := rawClient(t, network, "a:1")
				p.Send(wire.AppendMethod(nil, 1, "Chat.Sink"), wire.AppendMethod(nil, 2, "Echo.Say"),
					wire.AppendRequest(nil, 1, wire.FlagStream|wire.FlagPlain, &wire.Request{Method: 1, Codec: 1, Compression: 2, Priority: 2}))
				p.Send(c.frames...)
				p.Send(wire.AppendEnd(nil, 1, nil))
				f, err := p.NextOf(wire.TypeEnd, wire.TypeError)
				switch {
				case err != nil || f.ID != 1:
					t.Fatalf("%+v, %v", f, err)
				case c.code == 0 && f.Type != wire.TypeEnd:
					t.Errorf("the stream failed: %s", f.Body)
				case c.code != 0:
					if e, err := wire.ParseError(f.Flags, f.Body); err != nil || e.Code != c.code {
						t.Errorf("%+v, %v; want %v", e, err, c.code)
					}
				}
				synctest.Wait()
				p.Send(wirepeer.Request(2, 2, []byte("lives")))
				if f, err := p.NextOf(wire.TypeReply); err != nil || f.ID != 2 {
					t.Errorf("the next call: %+v, %v", f, err)
				}
			})
		})
	}
}
