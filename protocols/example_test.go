package protocols_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// A server speaks all protocols on its port: here a method is called over Anser's protocol, and with
// JSON over HTTP as from curl.
func Example() {
	s := anser.NewServer(protocols.All())
	defer s.Close()
	anser.Handle(s, "Words.Upper", func(_ context.Context, in *word) (*word, error) {
		return &word{strings.ToUpper(in.Text)}, nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	reply, err := anser.Call[word](context.Background(), c, "Words.Upper", &word{"tea"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)

	resp, err := http.Post("http://"+l.Addr().String()+"/Words/Upper", "application/json", strings.NewReader(`{"Text": "coffee"}`))
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(body))
	// Output:
	// TEA
	// {"Text":"COFFEE"}
}

type word struct{ Text string }
