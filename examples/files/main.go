// Command files serves a folder, sends a file to it over a connection that breaks, fetches it, and
// tries to leave the folder.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

const size = 4 << 20

// serve serves the folder and returns the address.
func serve(out io.Writer, dir string) (address string, stop func(), err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", nil, err
	}
	s := anser.NewServer()
	_, err = filetransfer.Serve(s, root,
		filetransfer.MaxSize(1<<30),
		filetransfer.Authorize(func(_ context.Context, op filetransfer.Op, path string) error {
			if op == filetransfer.OpPut && path == "precious" {
				return errors.New("this file is read-only")
			}
			return nil
		}),
		filetransfer.OnComplete(func(_ context.Context, r filetransfer.Result) {
			fmt.Fprintf(out, "server: %s is complete, %d bytes\n", r.Path, r.Size)
		}))
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go s.Serve(l)
	return l.Addr().String(), func() { s.Close(); root.Close() }, nil
}

// breaking returns a dial function, and one that breaks the first connection.
func breaking() (dial func(ctx context.Context, network, address string) (net.Conn, error), cut func()) {
	var first net.Conn
	var dialed, broken sync.Once
	dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		dialed.Do(func() { first = nc })
		return nc, err
	}
	return dial, func() { broken.Do(func() { first.Close() }) }
}

// source breaks the connection after half of it was read.
type source struct {
	*bytes.Reader
	cut func()
}

func (s source) ReadAt(b []byte, at int64) (int, error) {
	if at >= size/2 {
		s.cut()
	}
	return s.Reader.ReadAt(b, at)
}

func run(out io.Writer) error {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	address, stop, err := serve(out, dir)
	if err != nil {
		return err
	}
	defer stop()
	dial, cut := breaking()
	c, err := anser.Dial(address, anser.Conns(1), anser.Dialer(dial))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx := context.Background()
	r, err := filetransfer.PutFrom(ctx, c, source{bytes.NewReader(make([]byte, size)), cut}, size, "a/zeros", filetransfer.Parents())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "sent %d bytes, interrupted %d time, sum %.8s…\n", r.Size, r.Breaks, r.Sum)
	if r, err = filetransfer.Get(ctx, c, "a/zeros", filepath.Join(dir, "copy")); err != nil {
		return err
	}
	fmt.Fprintf(out, "fetched %d bytes, sum %.8s…\n", r.Size, r.Sum)
	for info, err := range filetransfer.List(ctx, c, "a") {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, info.Path, info.Size)
	}
	for _, path := range []string{"precious", "../outside"} {
		_, err := filetransfer.PutFrom(ctx, c, bytes.NewReader(nil), 0, path)
		fmt.Fprintf(out, "%s: %v\n", path, anser.CodeOf(err))
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
