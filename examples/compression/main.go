// Command compression sends the same text uncompressed, compressed if it pays, and always
// compressed, and shows the counters of the client and the server.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/compress/lz4"
	"github.com/anser-rpc/anser/compress/zstd"
)

// Page is a message of text.
type Page struct{ Text string }

// Upper is the contract: it returns the text in upper case.
const Upper anser.Method[Page, Page] = "Text.Upper"

func upper(_ context.Context, in *Page) (*Page, error) {
	return &Page{Text: strings.ToUpper(in.Text)}, nil
}

func run(out io.Writer) error {
	s := anser.NewServer(anser.AcceptCompression(all.Compressors()...)) // the default is gzip and deflate
	Upper.Handle(s, upper)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()

	short, long := "hello", strings.Repeat("the goose that carries letters ", 1000)
	zstd, lz4 := zstd.New(), lz4.New()
	ctx := context.Background()

	// For all calls of a client, in the mode Dynamic: from 200 bytes on, if it pays.
	c, err := anser.Dial(l.Addr().String(), anser.Compress(zstd))
	if err != nil {
		return err
	}
	defer c.Close()
	for _, text := range []string{short, long} {
		if _, err := Upper.Call(ctx, c, &Page{Text: text}); err != nil {
			return err
		}
	}
	// For one call, whatever its size; and not at all for another one.
	if _, err := Upper.Call(ctx, c, &Page{Text: short}, anser.Compress(lz4, anser.Forced)); err != nil {
		return err
	}
	if _, err := Upper.Call(ctx, c, &Page{Text: long}, anser.Compress(nil)); err != nil {
		return err
	}
	show(out, "requests", c.Status().Compression)
	show(out, "replies", s.Stats().Compression)
	return nil
}

func show(out io.Writer, what string, list []anser.CompressionStats) {
	for _, st := range list {
		smaller := "not smaller"
		if st.After < st.Before/10 {
			smaller = "less than a tenth of their size"
		}
		fmt.Fprintf(out, "%s of %s, %s: %d compressed, %d not; %s\n", what, st.Method, st.Algorithm, st.Packed, st.Plain, smaller)
	}
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
