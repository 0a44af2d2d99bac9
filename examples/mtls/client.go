package main

import (
	"context"
	"log"
	"net"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/tlsfiles"
)

// ask opens a connection of its own and asks for the client's identity.
func ask(address string, files *tlsfiles.Files) (string, error) {
	c, err := anser.Dial(address, anser.TLS(files.Client()), anser.Dialer(new(net.Dialer).DialContext))
	if err != nil {
		return "", err
	}
	defer c.Close()
	reply, err := WhoAmI.Call(context.Background(), c, &anser.None{})
	if err != nil {
		return "", err
	}
	return reply.Name, nil
}

// load makes calls until stop, on existing connections and on new ones.
func load(address string, files *tlsfiles.Files) (failed *atomic.Int64, stop func()) {
	failed = new(atomic.Int64)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := ask(address, files); err != nil {
					log.Print(err)
					failed.Add(1)
				}
			}
		})
	}
	return failed, func() { cancel(); wg.Wait() }
}
