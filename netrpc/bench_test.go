package netrpc_test

import (
	"bytes"
	stock "net/rpc"
	stockjson "net/rpc/jsonrpc"
	"testing"

	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// Pages is a service with larger messages.
type Pages struct{}

// Page is a message of some size.
type Page struct {
	Name  string
	Lines []string
	Marks map[string]int
}

// Turn returns the page.
func (Pages) Turn(in *Page, out *Page) error {
	*out = *in
	return nil
}

// BenchmarkCall makes calls over loopback: with one caller, or with 64 that share a connection.
// Client and server are both of net/rpc or both of this package.
func BenchmarkCall(b *testing.B) {
	small := &Args{7, 8}
	page := &Page{Name: "one", Lines: make([]string, 50), Marks: map[string]int{"a": 1, "b": 2}}
	for i := range page.Lines {
		page.Lines[i] = string(bytes.Repeat([]byte{'x'}, 20))
	}
	for _, wire := range []struct {
		name string
		dial func(b *testing.B) (caller, error)
	}{
		{"gob/net_rpc", func(b *testing.B) (caller, error) { return stock.Dial("tcp", stockServe(b, nil, new(Arith), Pages{})) }},
		{"gob/netrpc", func(b *testing.B) (caller, error) {
			return netrpc.Dial("tcp", serve(b, quiet(new(Arith), Pages{}), nil))
		}},
		{"JSON/net_rpc", func(b *testing.B) (caller, error) {
			return stockjson.Dial("tcp", stockServe(b, stockjson.NewServerCodec, new(Arith), Pages{}))
		}},
		{"JSON/netrpc", func(b *testing.B) (caller, error) {
			return jsonrpc.Dial("tcp", serve(b, quiet(new(Arith), Pages{}), jsonrpc.NewServerCodec))
		}},
	} {
		b.Run(wire.name, func(b *testing.B) {
			c, err := wire.dial(b)
			client(b, c, err)
			one := func(b *testing.B, method string, in, out any) {
				if err := c.Call(method, in, out); err != nil {
					b.Error(err)
				}
			}
			b.Run("small", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					one(b, "Arith.Mul", small, new(Reply))
				}
			})
			b.Run("page", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					one(b, "Pages.Turn", page, new(Page))
				}
			})
			b.Run("small64", func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32) // per processor
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one(b, "Arith.Mul", small, new(Reply))
					}
				})
			})
		})
	}
}
