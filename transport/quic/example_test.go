package quic_test

import (
	"crypto/tls"
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/quic"
)

func Example() {
	var config *tls.Config // with a certificate for rpc.example.org
	server := anser.NewServer()
	l, err := quic.Listen("0.0.0.0:443", config)
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(l)

	c, err := anser.Dial("quic://rpc.example.org:443", quic.Transport())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}
