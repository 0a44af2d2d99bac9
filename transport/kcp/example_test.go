package kcp_test

import (
	"crypto/tls"
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/transport/kcp"
)

func Example() {
	var config, trust *tls.Config // with a certificate for rpc.example.org; with its CA
	tokens, err := auth.OpenTokens("tokens.json")
	if err != nil {
		log.Fatal(err)
	}
	server := anser.NewServer(anser.TLS(config), anser.Authenticate(tokens))
	secret := kcp.Passphrase("correct horse battery staple", "a salt for this service")
	l, err := kcp.Listen("0.0.0.0:4000", secret, kcp.FEC(10, 3))
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(l)

	c, err := anser.Dial("kcp://rpc.example.org:4000", kcp.Transport(secret, kcp.FEC(10, 3)), anser.TLS(trust), auth.TokenFile("token"))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}
