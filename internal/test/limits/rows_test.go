package limits_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

const (
	message  = 1000
	overhead = 64 << 10 // of a frame, in addition to its message
	memory   = 400_000
)

func rows() []row {
	return append(append(append(messageRows(), callRows()...), connRows()...), fixedRows()...)
}

// messageRows are about the size of messages.
func messageRows() []row {
	exhausted := anser.ResourceExhausted
	small := []anser.ServerOption{anser.MaxMessage(message)}
	return []row{
		{
			name: "request", limit: message, opts: small, counter: "MaxMessage", text: "over the limit of %d: raise it with anser.MaxMessage",
			code: exhausted, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error { return answer(t, g.peer(t), request(1, echo, zeros(n))) },
		},
		{
			name: "message of a stream", limit: message, opts: small, counter: "MaxMessage", text: "over the limit of %d bytes: raise it with anser.MaxMessage",
			code: exhausted, outcome: anser.Executed,
			try: func(t *testing.T, g *target, n int) error {
				data := append(wire.AppendDataHead(nil, 1, 0, 1, 0), zeros(n)...)
				wire.PutLength(data, uint32(len(data)-wire.HeaderSize))
				return answer(t, g.peer(t), wire.AppendRequest(nil, 1, wire.FlagStream, &wire.Request{Method: take, Codec: 1, Priority: 2}), data)
			},
		},
		{
			name: "frame", limit: message + overhead, opts: small, counter: "MaxMessage", text: fmt.Sprintf("over the limit of %d bytes for a message and %d for what goes with it: raise it with anser.MaxMessage", message, overhead),
			reason: wire.FrameTooLarge,
			try: func(t *testing.T, g *target, n int) error { // a skippable one, which has no other effect
				frame := append(wire.AppendHeader(nil, wire.Header{Length: uint32(n), Type: wire.FirstSkippable}), zeros(n)...)
				return after(t, g.peer(t), frame)
			},
		},
		{
			name: "reply", limit: message, text: "over the limit of %d: raise it with anser.MaxMessage on the client",
			code: exhausted, outcome: anser.Executed,
			try: func(t *testing.T, g *target, n int) error {
				c, err := anser.Dial(g.addr, silent, anser.NoSnapshot(), anser.MaxMessage(message), anser.Timeout(bound))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				in := zeros(n)
				_, err = anser.Call[[]byte](context.Background(), c, "Limit.Echo", &in)
				return err
			},
		},
		{
			name: "decompressed message", limit: message, opts: small, counter: "MaxMessage",
			text: "over the limit of %d bytes after decompression with gzip: raise it with anser.MaxMessage", code: exhausted, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				packed, err := compress.Gzip().Append(nil, zeros(n))
				if err != nil {
					t.Fatal(err)
				}
				return answer(t, g.peer(t), packedRequest(compress.GzipID, packed))
			},
		},
		{
			name: "expansion", limit: 100 * 20 << 10, opts: []anser.ServerOption{anser.AcceptCompression(blow{})}, counter: "MaxExpansion",
			text: "over the limit of 100 times: send the message uncompressed, or raise the limit with anser.MaxExpansion", code: exhausted, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				packed := zeros(20 << 10)
				copy(packed, fmt.Sprint(n))
				return answer(t, g.peer(t), packedRequest(64, packed))
			},
		},
		{
			name: "memory of requests", limit: memory, opts: []anser.ServerOption{anser.MaxMessage(memory / 4), anser.MaxMemory(memory)}, counter: "MaxMemory",
			text: "over the server's limit of %d bytes of requests at once (anser.MaxMemory)", code: exhausted, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				const part = memory / 8 // its frame needs no larger buffer
				p := g.peer(t)
				err := after(t, p, request(1, wait, zeros(n-7*part)))
				for id := range uint64(7) {
					if err == nil {
						err = after(t, p, request(id+2, wait, zeros(part)))
					}
				}
				return err
			},
		},
	}
}

func packedRequest(compression uint8, payload []byte) []byte {
	return wire.AppendRequest(nil, 1, 0, &wire.Request{Method: echo, Codec: 1, Compression: compression, Priority: 2, Payload: payload})
}

// callRows are about the number of open calls and streams.
func callRows() []row {
	exhausted := anser.ResourceExhausted
	streams := open(hold, wire.FlagStream)
	return []row{
		{
			name: "calls in flight", limit: 3, opts: []anser.ServerOption{anser.MaxInFlight(3)}, counter: "MaxInFlight",
			text: "limit of %d calls in flight (anser.MaxInFlight)", code: exhausted, outcome: anser.Refused, try: open(wait, 0),
		},
		{
			name: "calls in flight of a method", limit: 3, handle: []anser.HandleOption{anser.MaxInFlight(3)}, counter: "MaxInFlight",
			text: "the method Limit.Wait is at its limit of %d calls in flight (anser.MaxInFlight)", code: exhausted, outcome: anser.Refused, try: open(wait, 0),
		},
		{
			name: "calls in flight with the default", limit: 10_000, opts: []anser.ServerOption{anser.MaxCalls(20_000)}, counter: "MaxInFlight",
			text: "limit of %d calls in flight (anser.MaxInFlight)", code: exhausted, outcome: anser.Refused, try: open(wait, 0),
		},
		{
			name: "streams in flight", limit: 3, opts: []anser.ServerOption{anser.MaxInFlight(3)}, counter: "MaxInFlight",
			text: "limit of %d calls in flight (anser.MaxInFlight)", code: exhausted, outcome: anser.Refused, try: streams,
		},
		{
			name: "calls of a connection", limit: 3, opts: []anser.ServerOption{anser.MaxCalls(3)}, counter: "MaxCalls",
			text: "limit of %d open calls (anser.MaxCalls)", code: exhausted, outcome: anser.Refused, try: open(wait, 0),
		},
		{
			name: "streams of a connection", limit: 3, opts: []anser.ServerOption{anser.MaxStreams(3)}, counter: "MaxStreams",
			text: "limit of %d streams (anser.MaxStreams)", code: exhausted, outcome: anser.Refused, try: streams,
		},
		{
			name: "streams of a connection with the default", limit: 1000, counter: "MaxStreams",
			text: "limit of %d streams (anser.MaxStreams)", code: exhausted, outcome: anser.Refused, try: streams,
		},
		{
			name: "calls with keys", limit: 51, opts: []anser.ServerOption{anser.ReplyCache(anser.ReplyCacheLimits{Bytes: 4096})},
			handle: []anser.HandleOption{anser.Deduplicate()}, counter: "ReplyCache",
			text: "limit of 4096 bytes for idempotency keys (anser.ReplyCache)", code: exhausted, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				p := g.peer(t)
				for id := range uint64(n) {
					block := wire.AppendMetadata(nil, []wire.Pair{{Key: wire.IdempotencyKey, Value: fmt.Sprint("key-", id)}})
					p.Send(wire.AppendRequest(nil, id+1, 0, &wire.Request{Method: wait, Codec: 1, Priority: 2, Metadata: block}))
				}
				return settled(t, g, p, n)
			},
		},
		{
			name: "bytes of a stream", limit: 4096, opts: []anser.ServerOption{anser.FlowControlWindows(4096, 1<<20)}, text: "(anser.FlowControlWindows)",
			reason: wire.FlowControl, try: bytesOfStreams(1),
		},
		{
			name: "bytes of the streams of a connection", limit: 8192, opts: []anser.ServerOption{anser.FlowControlWindows(8192, 8192)}, text: "credit of %d (anser.FlowControlWindows)",
			reason: wire.FlowControl, try: bytesOfStreams(2),
		},
	}
}

// settled waits until n calls run, or one is refused by the workers.
func settled(t *testing.T, g *target, p *wirepeer.Peer, n int) error {
	t.Helper()
	for end := time.Now().Add(bound); ; time.Sleep(time.Millisecond) {
		st := g.Stats()
		if st.Refused > 0 {
			return answer(t, p)
		}
		if st.Methods["Limit.Wait"].Calls == int64(n) {
			return nil
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %d calls", bound, n)
		}
	}
}

// bytesOfStreams distributes n bytes over the streams, whose handlers receive nothing.
func bytesOfStreams(streams int) func(*testing.T, *target, int) error {
	return func(t *testing.T, g *target, n int) error {
		var frames [][]byte
		for id := range streams {
			frames = append(frames, wire.AppendRequest(nil, uint64(id+1), wire.FlagStream, &wire.Request{Method: hold, Codec: 1, Priority: 2}))
		}
		for id := range streams {
			size := n / streams
			if id == 0 {
				size += n % streams
			}
			data := append(wire.AppendDataHead(nil, uint64(id+1), 0, 1, 0), zeros(size-wire.DataSize)...)
			wire.PutLength(data, uint32(size))
			frames = append(frames, data)
		}
		return after(t, g.peer(t), frames...)
	}
}

// connRows are about connections.
func connRows() []row {
	return []row{
		{
			name: "connections", limit: 3, opts: []anser.ServerOption{anser.MaxConns(3)}, counter: "MaxConns",
			text: "limit of %d connections (anser.MaxConns)", reason: wire.Overload,
			try: func(t *testing.T, g *target, n int) error {
				for range n {
					if _, err := g.tryPeer(t); err != nil {
						return err
					}
				}
				return nil
			},
		},
		{
			name: "handshakes", limit: 3, opts: []anser.ServerOption{anser.MaxHandshakes(3), anser.HandshakeTimeout(time.Hour)}, counter: "MaxHandshakes",
			text: "limit of %d connections in their handshake, and this one kept it waiting (anser.MaxHandshakes)", reason: wire.Overload,
			try: func(t *testing.T, g *target, n int) error {
				first := g.dial(t)
				for range n - 1 {
					g.dial(t)
				}
				for end := time.Now().Add(bound); g.Stats().Accepted < int64(n); time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%d connections of %d were accepted", g.Stats().Accepted, n)
					}
				}
				if g.Stats().LimitsHit["MaxHandshakes"] == 0 {
					return nil
				}
				p := wirepeer.New(first) // the server has waited longest for it
				if err := p.ReadPreface(); err != nil {
					t.Fatal(err)
				}
				reason, text, err := p.ReadClose()
				if err != nil {
					t.Fatal(err)
				}
				return &closed{reason, text}
			},
		},
		{
			name: "first frame", limit: 64 << 10, counter: "first frame", text: "over the limit of %d before the handshake is over", reason: wire.FrameTooLarge,
			try: func(t *testing.T, g *target, n int) error {
				p := wirepeer.New(g.dial(t))
				p.Send(wire.AppendPreface(nil), wire.AppendHeader(nil, wire.Header{Length: uint32(n), Type: wire.TypeSettings}), zeros(n))
				if err := p.ReadPreface(); err != nil {
					t.Fatal(err)
				}
				reason, text, err := p.ReadClose()
				if err != nil {
					t.Fatal(err)
				}
				if reason == wire.BadFrame { // it was read, and has far too many entries
					return nil
				}
				return &closed{reason, text}
			},
		},
		{
			name: "entries of SETTINGS", limit: 64, text: "at most %d entries", reason: wire.BadFrame,
			try: func(t *testing.T, g *target, n int) error {
				var body []byte
				for key := range n {
					body = append(body, byte(100+key), 1, 0, 0, 0, 0, 0, 0, 0, 0)
				}
				p := wirepeer.New(g.dial(t))
				p.Send(wire.AppendPreface(nil), wire.AppendHeader(nil, wire.Header{Length: uint32(len(body)), Type: wire.TypeSettings}), body)
				if err := p.ReadPreface(); err != nil {
					t.Fatal(err)
				}
				f, err := p.Next()
				if err != nil {
					t.Fatal(err)
				}
				if f.Type == wire.TypeSettings {
					return nil
				}
				reason, text, err := wire.ParseClose(f.Body)
				if err != nil {
					t.Fatal(err)
				}
				return &closed{reason, text}
			},
		},
	}
}

// fixedRows are limits that the protocol fixes.
func fixedRows() []row {
	exhausted, invalid := anser.ResourceExhausted, anser.InvalidArgument
	return []row{
		{
			name: "bytes of metadata", limit: 64 << 10, counter: "metadata", text: "over the limit of %d, which is fixed: send less", code: exhausted, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				empty := len(wire.AppendMetadata(nil, []wire.Pair{{Key: "k"}}))
				return answer(t, g.peer(t), withMetadata(wire.Pair{Key: "k", Value: strings.Repeat("v", n-empty)}))
			},
		},
		{
			name: "keys of metadata", limit: 128, counter: "metadata", text: "over the limit of %d, which is fixed: send fewer", code: exhausted, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				var pairs []wire.Pair
				for i := range n {
					pairs = append(pairs, wire.Pair{Key: fmt.Sprint("k", i)})
				}
				return answer(t, g.peer(t), withMetadata(pairs...))
			},
		},
		{
			name: "metadata key", limit: 255, text: "want 1 to %d", code: invalid, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				return answer(t, g.peer(t), withMetadata(wire.Pair{Key: strings.Repeat("k", n)}))
			},
		},
		{
			name: "idempotency key", limit: 128, text: "want 1 to %d", code: invalid, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				block := wire.AppendMetadata(nil, []wire.Pair{{Key: wire.IdempotencyKey, Value: strings.Repeat("k", n)}})
				err := answer(t, g.peer(t), wire.AppendRequest(nil, 1, 0, &wire.Request{Method: echo, Codec: 1, Priority: 2, Metadata: block}))
				if err != nil && strings.Contains(err.Error(), "anser.Deduplicate") { // the key is valid, but nothing is remembered
					return nil
				}
				return err
			},
		},
		{
			name: "method name", limit: 512, text: "want 5 to 516", reason: wire.BadMethod,
			try: func(t *testing.T, g *target, n int) error {
				return after(t, g.peer(t), wire.AppendMethod(nil, anything+1, strings.Repeat("m", n)))
			},
		},
		{
			name: "method names", limit: 65_535, counter: "method names", text: "over the limit of %d methods for each connection", reason: wire.BadMethod,
			try: func(t *testing.T, g *target, n int) error {
				var frames bytes.Buffer
				for number := anything + 1; number <= n; number++ {
					frames.Write(wire.AppendMethod(nil, uint32(number), "m"))
				}
				return after(t, g.peer(t), frames.Bytes())
			},
		},
		{
			name: "depth of JSON", limit: codec.MaxJSONDepth, text: "%d", code: invalid, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				in := strings.Repeat("[", n) + strings.Repeat("]", n)
				return answer(t, g.peer(t), wire.AppendRequest(nil, 1, 0, &wire.Request{Method: anything, Codec: codec.JSONID, Priority: 2, Payload: []byte(in)}))
			},
		},
		{
			name: "depth of MessagePack", limit: 64, text: "%d", code: invalid, outcome: anser.Refused,
			try: func(t *testing.T, g *target, n int) error {
				in := append(bytes.Repeat([]byte{0x91}, n-1), 0x90)
				return answer(t, g.peer(t), wire.AppendRequest(nil, 1, 0, &wire.Request{Method: anything, Codec: codec.MsgpackID, Priority: 2, Payload: in}))
			},
		},
	}
}
