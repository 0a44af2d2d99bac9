package quic_test

import (
	"crypto/tls"
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/transport/quic"
)

func Example() {
	var config *tls.Config // with a certificate for rpc.example.org
	tokens, err := auth.OpenTokens("tokens.json")
	if err != nil {
		log.Fatal(err)
	}
	server := anser.NewServer(anser.Authenticate(tokens))
	l, err := quic.Listen("0.0.0.0:443", config)
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(l)

	c, err := anser.Dial("quic://rpc.example.org:443", quic.Transport(), auth.TokenFile("token"))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}
