package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// crowdOptions are of clients that gather, or come back.
type crowdOptions struct {
	Clients int
	File    string // for the calls that they make
}

// returned is the result of clients that had lost their server.
type returned struct {
	Away    int      // clients without a reply at the end
	Failed  int      // calls until then
	Samples []sample // of their errors
	Trouble string   // the last error of one that is away
}

// gathering are clients in one process, each with a connection that it shares with no other.
type gathering struct {
	config  config
	clients []*client
}

// runCrowd is the role of many clients.
func runCrowd(c config, p *parent) error {
	if err := p.ready(); err != nil {
		return err
	}
	g := &gathering{config: c}
	err := p.obey(func(cmd command) (any, error) {
		var o crowdOptions
		if err := json.Unmarshal(cmd.Value, &o); err != nil {
			return nil, err
		}
		switch cmd.Do {
		case "gather":
			return nil, g.gather(o)
		case "return":
			return g.comeBack(o)
		}
		return nil, fmt.Errorf("a crowd cannot %s", cmd.Do)
	})
	return errors.Join(err, g.close())
}

// gather makes the clients, some at a time, and a call with each.
func (g *gathering) gather(o crowdOptions) error {
	const atOnce = 32
	calls, errs := make([]ledger.Call, o.Clients), make([]error, o.Clients)
	g.clients = make([]*client, o.Clients)
	var wg sync.WaitGroup
	for first := range atOnce {
		wg.Go(func() {
			for i := first; i < o.Clients; i += atOnce {
				if g.clients[i], errs[i] = g.client(i); errs[i] != nil {
					return
				}
				if calls[i], errs[i] = g.clients[i].make(time.Now(), i%2 == 1); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), ledger.WriteCalls(o.File, calls))
}

// client makes one of the clients.
func (g *gathering) client(i int) (*client, error) {
	if n := len(g.config.Over); n > 0 && g.config.Over[i%n] != overAnser {
		s := new(client)
		in, err := newTurn(g.config.Over[i%n], g.config, s)
		s.caller, s.end = in, in.close
		return s, err
	}
	// A client with a dialer of its own shares connections with no other.
	c, err := anser.Dial(g.config.Target, anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext), anser.NoSnapshot(),
		anser.Timeout(g.config.Timeout), anser.Logger(logger()))
	if err != nil {
		return nil, err
	}
	return &client{Client: c, caller: anserCaller{client: c}, end: c.Close}, nil
}

// comeBack has every client call, again and again, until it has a reply.
func (g *gathering) comeBack(o crowdOptions) (out returned, err error) {
	const pause = 50 * time.Millisecond
	var wg sync.WaitGroup
	var mu sync.Mutex // guards all and out
	var all []ledger.Call
	var samples sampler
	end := time.Now().Add(bound)
	for i, s := range g.clients {
		wg.Go(func() {
			for {
				c, err := s.make(time.Now(), i%2 == 1)
				mu.Lock()
				all = append(all, c)
				if err != nil {
					out.Failed++
					samples.keep(&c, err)
				}
				away := err != nil && time.Now().After(end)
				if away {
					out.Away++
					out.Trouble = err.Error()
				}
				mu.Unlock()
				if err == nil || away {
					return
				}
				time.Sleep(rand.N(2 * pause))
			}
		})
	}
	wg.Wait()
	out.Samples = samples.all()
	return out, ledger.WriteCalls(o.File, all)
}

func (g *gathering) close() error {
	var wg sync.WaitGroup
	errs := make([]error, len(g.clients))
	for i, s := range g.clients {
		if s != nil { // gather has failed otherwise
			wg.Go(func() { errs[i] = s.end() })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}
