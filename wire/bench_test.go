package wire_test

import (
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// benchRequest is a typical request: no trace context, no metadata, a small message.
func benchRequest() wire.Request {
	return wire.Request{Method: 1, Codec: 4, Priority: 2, Timeout: 1_000_000, Payload: make([]byte, 64)}
}

func BenchmarkParseHeader(b *testing.B) {
	r := benchRequest()
	frame := wire.AppendRequest(nil, 7, 0, &r)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.ParseHeader(frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseRequest(b *testing.B) {
	r := benchRequest()
	full := fullRequest()
	for _, c := range []struct {
		name  string
		flags wire.Flags
		body  []byte
	}{
		{"plain", 0, wire.AppendRequest(nil, 7, 0, &r)[wire.HeaderSize:]},
		{"full", wire.FlagTrace | wire.FlagMetadata, wire.AppendRequest(nil, 7, wire.FlagTrace, &full)[wire.HeaderSize:]},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := wire.ParseRequest(c.flags, c.body, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendRequest(b *testing.B) {
	r := benchRequest()
	dst := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		dst = wire.AppendRequest(dst[:0], 7, 0, &r)
	}
}

func BenchmarkParseReply(b *testing.B) {
	body := append(wire.AppendReplyHead(nil, 7, 0, 4, 0, nil), make([]byte, 64)...)[wire.HeaderSize:]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.ParseReply(0, body); err != nil {
			b.Fatal(err)
		}
	}
}

// benchPairs are eight entries, as forwarded by a gateway.
var benchPairs = []wire.Pair{
	{Key: "tenant", Value: "acme"},
	{Key: "user-agent", Value: "anser-go/1.0 (linux; amd64)"},
	{Key: "x-request-id", Value: "5f3c0d0e-9b7e-4c55-8a3e-3f2f6f2f9a10"},
	{Key: "x-forwarded-for", Value: "203.0.113.7"},
	{Key: "accept-language", Value: "de-CH,de;q=0.9,en;q=0.8"},
	{Key: "baggage", Value: "region=eu-west-1,canary=false"},
	{Key: "cursor-bin", Value: "\x00\x01\x02\x03\x04\x05\x06\x07"},
	{Key: "page-size", Value: "50"},
}

func BenchmarkParseMetadata(b *testing.B) {
	block := wire.AppendMetadata(nil, benchPairs)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.ParseMetadata(block, 64<<10); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendMetadata(b *testing.B) {
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = wire.AppendMetadata(dst[:0], benchPairs)
	}
}

func BenchmarkChecksum(b *testing.B) {
	r := benchRequest()
	frame := wire.AppendRequest(make([]byte, 0, 256), 7, 0, &r)
	b.ReportAllocs()
	for b.Loop() {
		summed := wire.AppendChecksum(frame, 0)
		if _, err := wire.CheckChecksum(summed[:wire.HeaderSize], summed[wire.HeaderSize:]); err != nil {
			b.Fatal(err)
		}
	}
}
