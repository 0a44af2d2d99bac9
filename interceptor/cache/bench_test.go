package cache_test

import (
	"net"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// BenchmarkHit measures calls answered by the cache of a client, of a server, and without a cache.
func BenchmarkHit(b *testing.B) {
	for _, where := range []string{"client", "server", "nowhere"} {
		b.Run(where, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			k := newCache(b)
			var onServer []anser.Interceptor
			var onClient []anser.DialOption
			switch where {
			case "client":
				onClient = append(onClient, anser.Intercept(k.Intercept))
			case "server":
				onServer = append(onServer, k.Intercept)
			}
			c := start(b, l, new(service), onServer, onClient...)
			b.Run("struct", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := anser.Call[reply](b.Context(), c, "Catalog.Get", &request{Name: "x"}); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("bytes64", func(b *testing.B) {
				b.ReportAllocs()
				in, out := make([]byte, 64), make([]byte, 0, 64)
				for b.Loop() {
					if err := c.Call(b.Context(), "Catalog.Bytes", &in, &out); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("proto581", func(b *testing.B) {
				b.ReportAllocs()
				in := benchpb.Filled()
				for b.Loop() {
					if _, err := anser.Call[benchpb.BenchmarkMessage](b.Context(), c, "Catalog.Proto", in); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
