package tlsfiles_test

import (
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/tlsfiles"
)

// Mutual TLS with certificates that may be replaced at any time.
func Example() {
	files, err := tlsfiles.Open(
		tlsfiles.Certificate("/etc/anser/server.pem", "/etc/anser/server.key"),
		tlsfiles.Authorities("/etc/anser/clients.pem"),
	)
	if err != nil {
		log.Fatal(err)
	}
	s := anser.NewServer(anser.TLS(files.Server()))
	if err := s.ListenAndServe("0.0.0.0:8972"); err != nil {
		log.Fatal(err)
	}
	files.Close()
}
