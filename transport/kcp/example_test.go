package kcp_test

import (
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/kcp"
)

func Example() {
	server := anser.NewServer()
	secret := kcp.Passphrase("correct horse battery staple", "a salt for this service")
	l, err := kcp.Listen("0.0.0.0:4000", secret, kcp.FEC(10, 3))
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(l)

	c, err := anser.Dial("kcp://rpc.example.org:4000", kcp.Transport(secret, kcp.FEC(10, 3)))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}
