package badinput_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/compress/lz4"
	"github.com/anser-rpc/anser/compress/snappy"
	"github.com/anser-rpc/anser/compress/zstd"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// maxMessage is the default limit of both sides.
const maxMessage = 4 << 20

// packed returns the message in its compressed form.
func packed(c compress.Compressor, message []byte) []byte {
	b, err := c.Append(nil, message)
	if err != nil {
		panic(err)
	}
	return b
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func packedRequest(id uint64, method uint32, codec, compression uint8, payload []byte) []byte {
	return wire.AppendRequest(nil, id, 0, &wire.Request{Method: method, Codec: codec, Compression: compression, Priority: 2, Payload: payload})
}

func packedReply(compression uint8, payload []byte) func(id uint64) []byte {
	return func(id uint64) []byte {
		f := append(wire.AppendReplyHead(nil, id, 0, 1, compression, nil), payload...)
		wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
		return f
	}
}

// unpackable is a row with a payload that cannot be decompressed, for both sides.
func unpackable(number int, name string, c compress.Compressor, payload []byte, code wire.Code) row {
	return row{
		number: number, name: c.Name() + ": " + name,
		toServer: toServer{send: packedRequest(firstBadID, badBytes, 1, c.ID(), payload), want: fail(code)},
		toClient: toClient{reply: packedReply(c.ID(), payload), compressor: c},
	}
}

// fine is a row with a valid payload.
func fine(number int, name string, c compress.Compressor, message []byte) row {
	send := packedRequest(firstBadID, goodEcho, 1, c.ID(), packed(c, message))
	return row{
		number: number, name: c.Name() + ": " + name,
		toServer: toServer{send: send, want: want{kind: works, replies: true}, asMuchAs: send},
	}
}

// compressionRows are about compressed payloads.
func compressionRows() []row {
	const invalid, loss, large = wire.InvalidArgument, wire.DataLoss, wire.ResourceExhausted
	gzip, deflate, snappy, zstd, lz4 := compress.Gzip(), compress.Deflate(), snappy.New(), zstd.New(), lz4.New()
	text := bytes.Repeat([]byte("a goose that carries letters, "), 20)
	zeros := make([]byte, 64<<20)
	over := bytes.Repeat(text, maxMessage/len(text)+1)[:maxMessage+1]
	rand.NewChaCha8([32]byte{}).Read(over[:maxMessage/32]) // otherwise it also exceeds the limit of the expansion
	var list []row
	for _, c := range all.Compressors() {
		bomb := unpackable(65, "bomb of 64 MiB", c, packed(c, zeros), large)
		largest, larger := fine(67, "limit", c, over[:maxMessage]), unpackable(67, "limit + 1", c, packed(c, over), large)
		larger.asMuchAs = largest.asMuchAs
		if len(bomb.send) < maxMessage/4 { // otherwise the cost is in receiving it
			bomb.asMuchAs = largest.asMuchAs
		}
		list = append(list, bomb, fine(67, "limit - 1", c, over[:maxMessage-1]), largest, larger)
		whole := packed(c, text)
		for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
			list = append(list, unpackable(68, fmt.Sprintf("truncated after %d of %d bytes", n, len(whole)), c, whole[:n], invalid))
		}
		if c.ID() != compress.SnappyID {
			sum := bytes.Clone(whole)
			sum[len(sum)-1]++
			if c.ID() == compress.GzipID {
				sum = bytes.Clone(whole)
				sum[len(sum)-5]++ // the last four bytes are the length
			}
			list = append(list, unpackable(69, "bad checksum", c, sum, loss))
		}
		list = append(list, unpackable(71, "flag set on raw bytes", c, []byte("these are the bytes"), invalid))
		empty := fine(76, "a valid empty message", c, nil)
		empty.toClient = toClient{reply: packedReply(c.ID(), packed(c, []byte("ok"))), compressor: c, good: true}
		list = append(list, empty)
	}
	// One layer is removed; its content is not a message.
	nested := packed(gzip, packed(gzip, zeros))
	first := wire.AppendRequest(wire.AppendPreface(nil), firstBadID, 0, &wire.Request{Method: badBytes, Codec: 1, Compression: 1, Priority: 2, Payload: packed(gzip, text)})
	return append(
		list,
		row{number: 66, name: "nested bomb", toServer: toServer{send: packedRequest(firstBadID, badStruct, 3, 1, nested), want: fail(invalid)}, toClient: toClient{codec: 3, compressor: gzip, reply: func(id uint64) []byte {
			f := append(wire.AppendReplyHead(nil, id, 0, 3, 1, nil), nested...)
			wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
			return f
		}}},
		row{number: 70, name: "unknown algorithm", toServer: toServer{send: packedRequest(firstBadID, badBytes, 1, 99, text), want: fail(wire.Unimplemented)}, toClient: toClient{reply: packedReply(99, text), compressor: gzip}},
		row{number: 70, name: "an algorithm that was not asked for", toClient: toClient{reply: packedReply(4, packed(zstd, []byte("ok"))), compressor: gzip}, note: "a client asks for one algorithm, a server takes all that it announces"},
		row{number: 71, name: "not compressed, over the limit", toServer: toServer{send: wire.AppendRequest(nil, firstBadID, wire.FlagPlain, &wire.Request{
			Method: badBytes, Codec: 1, Compression: 4, Priority: 2, Payload: make([]byte, maxMessage+1),
		}), want: fail(large)}},
		unpackable(72, "declares 4 GiB", snappy, unhex("ffffffff0f00"), invalid),
		unpackable(72, "declares 3 MiB", snappy, unhex("808080030000"), invalid),
		unpackable(73, "window of 2 GiB", zstd, unhex("28b52ffd00a8010000"), invalid),
		unpackable(73, "content of 1 TiB", zstd, unhex("28b52ffde00000000000010000010000"), large),
		unpackable(73, "content of 512 KiB in an empty block", zstd, unhex("28b52ffda000000800010000"), invalid),
		unpackable(74, "many members", gzip, bytes.Repeat(packed(gzip, []byte("member")), 1000), invalid),
		unpackable(74, "many frames", zstd, bytes.Repeat(packed(zstd, []byte("frame")), 1000), invalid),
		unpackable(74, "many frames", lz4, bytes.Repeat(packed(lz4, []byte("frame")), 1000), invalid),
		unpackable(74, "many streams", deflate, bytes.Repeat(packed(deflate, []byte("stream")), 1000), invalid),
		row{number: 75, name: "compressed before the handshake", toServer: toServer{instead: first, want: refuse(wire.BadFrame)}, note: "with authentication: TestNotAuthenticated"},
	)
}

// settings returns the settings of a server that may be bad.
func (r toClient) settings() []byte {
	s := wire.DefaultSettings()
	if r.sealed {
		s = wirepeer.Sealing()
	}
	if r.compressor != nil {
		s.AddCompression(r.compressor.ID())
	}
	return wirepeer.Hello(s)
}
