package main

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// tlsRows are the rows about certificates.
func tlsRows() []row {
	return []row{
		{
			name: "certificates", fault: "the certificates of all servers and clients are replaced every 10 s (mutual TLS)", run: rotated,
			bar: "0 failed calls; new connections get the new certificate",
		},
		{
			name: "revoked", fault: "the certificate of one of two clients is revoked (mutual TLS)", run: revoked,
			bar: "it is refused within 10 s; 0 failed calls of the other one",
		},
	}
}

// rotated replaces certificates again and again. Connections that stand go on; after each change
// new ones are made too, to each server.
func rotated(w *world) (*result, error) {
	every := 10 * time.Second
	if !w.o.Long {
		every = 2 * time.Second // the files are read once a second
	}
	dir, err := w.folder("certificates")
	if err != nil {
		return nil, err
	}
	a, err := newCertifier(dir)
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
					// A new process each time: it reads the current files.
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

// revoked puts the certificate of a second client on the list of its authority, while both make
// calls on connections that stand.
func revoked(w *world) (*result, error) {
	const rate = 100 // calls/s of the second client
	a, err := w.certify("server", "client", "second")
	if err != nil {
		return nil, err
	}
	list, err := a.revoke(1)
	if err != nil {
		return nil, err
	}
	c, err := w.cluster(clusterOptions{servers: config{TLS: a.names("server"), Revoked: list}, client: config{TLS: a.names("client")}})
	if err != nil {
		return nil, err
	}
	second, err := c.newClient("second", config{TLS: a.names("second")})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(w.dir, "second.calls")
	var at time.Time
	o, err := c.survive(scenario{
		files: []string{file},
		began: func(*observation) { err = second.ask("load", loadOptions{Callers: 4, Rate: rate}, nil) },
		fault: func(c *cluster) error {
			if err != nil {
				return err
			}
			at = time.Now()
			if _, err := a.revoke(2, 4); err != nil { // the third that was issued
				return err
			}
			var before, now usage
			_, err := w.until("the client whose certificate was revoked is refused", func() (bool, error) {
				if err := second.ask("usage", nil, &now); err != nil {
					return false, err
				}
				if now.Succeeded != before.Succeeded {
					before = now
				}
				return now.Calls > before.Calls+rate/2, nil // that many in a row have failed
			})
			return err
		},
		heal: func(*cluster) error { return second.ask("stop", file, nil) },
	})
	if err != nil {
		return nil, err
	}
	its, err := ledger.ReadCalls(file)
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	var last time.Time // of its calls that succeeded
	for i := range its {
		if began := time.Unix(0, its[i].Began); its[i].Outcome == ledger.OK && began.After(last) {
			last = began
		}
	}
	r.fact("calls of the client whose certificate was revoked", float64(len(its)), "")
	failed := count(its, func(c *ledger.Call) bool { return c.Outcome != ledger.OK })
	r.fact("of them failed", float64(failed), "")
	r.promise("of these not as unauthenticated", float64(failed-count(its, by(anser.Unauthenticated))), "", "not all of them", count(its, by(anser.Unauthenticated)) > 0)
	r.within("its last call that succeeded began after", max(0, last.Sub(at)), 10*time.Second, true)
	return r, nil
}
