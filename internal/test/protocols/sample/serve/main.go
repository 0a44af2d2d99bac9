// Command serve serves the methods of package sample over all protocols, for tests that are not
// written in Go. It prints its address, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
	"github.com/anser-rpc/anser/protocols"
)

func main() {
	opts := []anser.ServerOption{protocols.All(protocols.OpenAPI(protocols.Info{
		Title: "Sample", Version: "1.0", Description: "Methods of every kind.", License: protocols.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
	}))}
	if len(os.Args) > 1 { // a token
		tokens, err := auth.NewTokens(auth.Grant{Subject: "caller", SHA256: auth.Digest(os.Args[1])})
		if err != nil {
			log.Fatal(err)
		}
		opts = append(opts, anser.Authenticate(tokens))
	}
	s := anser.NewServer(opts...)
	sample.Add(s)
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		s.Close()
	}()
	fmt.Println(l.Addr())
	s.Serve(l)
}
