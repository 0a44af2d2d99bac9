// Command streams is a chat: both sides send and receive messages on one stream at any time.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"github.com/anser-rpc/anser"
)

// Line is a message in either direction.
type Line struct{ Who, Text string }

// The contracts. Both sides use the constants, so that the compiler checks them.
const (
	Talk anser.StreamMethod[Line, Line] = "Chat.Talk"
	Book anser.StreamMethod[Line, Line] = "Chat.Book"
)

// talk answers each line until the client stops, and reports their number in its trailers.
func talk(ctx context.Context, st *anser.Stream[Line, Line]) error {
	n := 0
	for in, err := range st.All() {
		if err != nil {
			return err
		}
		n++
		if err := st.Send(&Line{"gander", strings.ToUpper(in.Text)}); err != nil {
			return err
		}
	}
	return anser.SetTrailer(ctx, "lines", fmt.Sprint(n))
}

// book sends the lines of an endless book: Send waits while the client reads slowly, and fails
// when the client leaves.
func book(_ context.Context, st *anser.Stream[Line, Line]) error {
	title, err := st.Recv()
	for page := 1; err == nil; page++ {
		err = st.Send(&Line{title.Text, fmt.Sprintf("page %d", page)})
	}
	return err
}

func run(out io.Writer) error {
	s := anser.NewServer()
	Talk.Handle(s, talk)
	Book.Handle(s, book)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	return errors.Join(chat(out, c), read(out, c))
}

// chat sends from one goroutine and receives on another.
func chat(out io.Writer, c *anser.Client) error {
	st, err := Talk.Open(context.Background(), c)
	if err != nil {
		return err
	}
	defer st.Close() // has no effect after the end
	go func() {
		for _, text := range []string{"honk", "honk honk"} {
			st.Send(&Line{"goose", text}) // Recv also returns the error of a stream
		}
		st.CloseSend()
	}()
	for in, err := range st.All() {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", in.Who, in.Text)
	}
	fmt.Fprintf(out, "%s lines\n", st.Trailer()["lines"])
	return nil
}

// read leaves an endless stream. The first message is sent with the opening.
func read(out io.Writer, c *anser.Client) error {
	st, err := Book.OpenWith(context.Background(), c, &Line{Text: "Nils Holgersson"})
	if err != nil {
		return err
	}
	defer st.Close() // cancels the stream: the handler's Send fails
	for page, err := range st.All() {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s, %s\n", page.Who, page.Text)
		if page.Text == "page 3" {
			break
		}
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
