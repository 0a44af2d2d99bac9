package filetransfer_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()
	s := anser.NewServer()
	if _, err := filetransfer.Serve(s, root); err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	text := strings.NewReader("honk")
	if _, err := filetransfer.PutFrom(ctx, c, text, text.Size(), "geese/grey.txt", filetransfer.Parents()); err != nil {
		log.Fatal(err)
	}
	for info, err := range filetransfer.List(ctx, c, "geese") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.Path, info.Size)
	}
	var b bytes.Buffer
	if _, err := filetransfer.GetTo(ctx, c, "geese/grey.txt", &b); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.String())
	_, err = filetransfer.GetTo(ctx, c, "../etc/passwd", &b)
	fmt.Println(anser.CodeOf(err))
	// Output:
	// geese/grey.txt 4
	// honk
	// invalid argument
}
