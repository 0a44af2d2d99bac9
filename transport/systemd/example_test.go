//go:build unix

package systemd_test

import (
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/systemd"
)

// A service that systemd starts on its first connection.
func Example() {
	listeners, err := systemd.Listeners()
	if err != nil {
		log.Fatal(err)
	}
	s := anser.NewServer()
	ended := make(chan error)
	for _, l := range listeners {
		go func() { ended <- s.Serve(l) }()
	}
	if err := systemd.Notify(systemd.Ready); err != nil {
		log.Print(err)
	}
	log.Fatal(<-ended)
}
