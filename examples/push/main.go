// Command push is a chat room: the server calls its clients, over the connections that they have
// opened.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"github.com/anser-rpc/anser"
)

// Message is a line of the chat, Name is the name of a client.
type (
	Message struct{ From, Text string }
	Name    struct{ Name string }
)

// The contracts. The first two are served by the server, the others by its clients.
const (
	Join anser.Method[Name, anser.None] = "Room.Join"
	Say  anser.OnewayMethod[Message]    = "Room.Say"
	Hear anser.OnewayMethod[Message]    = "Client.Hear"
	Who  anser.Method[anser.None, Name] = "Client.Who"
)

// room serves the chat: the message of one client goes to all clients that have joined.
func room() *anser.Server {
	s := anser.NewServer()
	Join.Handle(s, func(ctx context.Context, _ *Name) (*anser.None, error) {
		client, ok := anser.SessionFrom(ctx)
		if !ok {
			return nil, anser.Errorf(anser.FailedPrecondition, "you hear nothing: dial with anser.Handlers")
		}
		client.Join("room")
		return new(anser.None), nil
	})
	Say.Handle(s, func(ctx context.Context, in *Message) error {
		s.Broadcast(ctx, string(Hear), in, anser.InGroup("room"))
		return nil
	})
	return s
}

// person returns a client that receives messages.
func person(target, name string) (*anser.Client, *anser.Server, <-chan Message, error) {
	heard := make(chan Message, 10)
	h := anser.NewServer()
	Hear.Handle(h, func(_ context.Context, in *Message) error {
		heard <- *in
		return nil
	})
	Who.Handle(h, func(context.Context, *anser.None) (*Name, error) { return &Name{name}, nil })
	c, err := anser.Dial(target, anser.Handlers(h))
	if err == nil {
		_, err = Join.Call(context.Background(), c, &Name{name})
	}
	return c, h, heard, err
}

func run(out io.Writer) error {
	s := room()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()
	var people []*anser.Client
	var ears []<-chan Message
	for _, name := range []string{"Ada", "Bob", "Eve"} {
		c, h, heard, err := person(l.Addr().String(), name)
		if err != nil {
			return err
		}
		defer h.Close()
		defer c.Close() // before its handlers
		people, ears = append(people, c), append(ears, heard)
	}
	ctx := context.Background()
	if err := Say.Send(ctx, people[0], &Message{"Ada", "hello"}); err != nil {
		return err
	}
	for i, heard := range ears {
		m := <-heard
		fmt.Fprintf(out, "person %d hears %s say %q\n", i+1, m.From, m.Text)
	}
	// A call to a client is like any other: with a reply, errors, deadlines, futures.
	for _, client := range s.Sessions() {
		who, err := Who.Call(ctx, client.Client(), new(anser.None))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "session %d is %s\n", client.ID(), who.Name)
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
