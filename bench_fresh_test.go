package anser_test

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/anser-rpc/anser"
)

// BenchmarkFresh makes a client and a connection for each call, with server and client in one
// process: a call that waits for the server's preface, one that goes out with the client's own, and
// as many bytes over a bare connection.
func BenchmarkFresh(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	serveUnary(b, l)
	payload := make([]byte, 64)
	for name, opts := range map[string][]anser.DialOption{"waits": nil, "early": {anser.Idempotent()}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			opts := append(opts, anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext)) // which keeps the connection from others
			for b.Loop() {
				c, err := anser.Dial(l.Addr().String(), opts...)
				if err != nil {
					b.Fatal(err)
				}
				var out []byte
				if err := c.Call(context.Background(), "Echo.Bytes", &payload, &out); err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
	}
	b.Run("bare", func(b *testing.B) { freshBare(b, payload) })
}

// freshBare sends the payload to an echo and back over a connection of its own.
func freshBare(b *testing.B, payload []byte) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				io.Copy(nc, nc)
			}()
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		nc.Write(payload)
		if _, err := io.ReadFull(nc, make([]byte, len(payload))); err != nil {
			b.Fatal(err)
		}
		nc.Close()
	}
}
