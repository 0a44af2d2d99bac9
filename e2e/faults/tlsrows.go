package main

import (
	"errors"
	"time"
)

// tlsRows are those of certificates.
func tlsRows() []row {
	return []row{{
		name: "certificates", fault: "the certificates of all servers and clients are replaced every 10 s (mutual TLS)", run: rotated,
		bar: "0 failed calls; new connections get the new certificate",
	}}
}

// rotated replaces certificates again and again. Connections that stand go on; after each change new
// ones are made too, to each server.
func rotated(w *world) (*result, error) {
	every := 10 * time.Second
	if !w.o.Long {
		every = 2 * time.Second // the files are read once a second
	}
	dir, err := w.folder("certificates")
	if err != nil {
		return nil, err
	}
	a, err := newAuthority(dir)
	if err != nil {
		return nil, err
	}
	number := int64(1)
	rotate := func() error {
		number++
		return errors.Join(a.issue("server", number), a.issue("client", number))
	}
	if err := rotate(); err != nil {
		return nil, err
	}
	server, client := a.names("server"), a.names("client")
	changes, connections := 0, 0
	var late time.Duration
	o, err := w.survive(scenario{
		cluster: clusterOptions{servers: config{TLS: server}, client: config{TLS: client}},
		fault: func(c *cluster) error {
			for end := time.Now().Add(max(w.o.phase(), every)); time.Now().Before(end); {
				if err := rotate(); err != nil {
					return err
				}
				changes++
				began := time.Now()
				for _, p := range c.servers {
					// A process of its own each time: what it has read is new.
					fresh, err := w.start("idle", "client", config{TLS: client, Target: p.config.Listen})
					if err != nil {
						return err
					}
					var got opened
					took, err := w.until("a new connection has the new certificate", func() (bool, error) {
						err := fresh.ask("open", idleOptions{1}, &got)
						connections++
						return got.Serial == number, err
					})
					if err := errors.Join(err, fresh.stop()); err != nil {
						return err
					}
					late = max(late, took)
				}
				if err := w.sleep(time.Until(began.Add(every))); err != nil {
					return err
				}
			}
			return nil
		},
		heal: func(*cluster) error { return nil },
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.fact("changes of all certificates", float64(changes), "")
	r.fact("new connections, none of which failed", float64(connections), "")
	r.within("new connections have the new certificate within", late, 10*time.Second, true)
	return r, nil
}
