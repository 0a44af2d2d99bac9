package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// idleOptions configure idle connections.
type idleOptions struct{ Conns int }

// dialOptions are of connections that are left at once.
type dialOptions struct {
	Rate  int // each second
	Lasts time.Duration
}

// dialAndLeave makes connections and leaves them, and returns how many there were.
func dialAndLeave(address string, o dialOptions) int64 {
	const dialers = 16
	var wg sync.WaitGroup
	var made atomic.Int64
	began := time.Now()
	for range dialers {
		wg.Go(func() {
			for time.Since(began) < o.Lasts {
				if made.Load() >= int64(time.Since(began).Seconds()*float64(o.Rate)) {
					time.Sleep(time.Millisecond)
					continue
				}
				nc, err := net.DialTimeout("tcp", address, time.Second)
				if err != nil {
					continue
				}
				made.Add(1)
				nc.(*net.TCPConn).SetLinger(0) // otherwise the ports are soon used up
				nc.Close()
			}
		})
	}
	wg.Wait()
	return made.Load()
}

// opened is the result of opening them.
type opened struct {
	Conns  int   // all that are open now
	Serial int64 // of the server's certificate
}

// runIdle is the role of a client that opens connections, shakes hands and leaves them alone.
func runIdle(c config, p *parent) error {
	if err := p.ready(); err != nil {
		return err
	}
	var conns []net.Conn
	var answering sync.WaitGroup
	defer answering.Wait()
	defer func() {
		for _, nc := range conns {
			nc.Close()
		}
	}()
	var config *tls.Config
	if c.TLS != nil {
		files, err := c.TLS.open()
		if err != nil {
			return err
		}
		defer files.Close()
		config = files.Client().Clone()
		config.ServerName = "ledger"
		if c.Peer != "" {
			config.NextProtos = peerALPN[c.Peer]
		}
	}
	return p.obey(func(cmd command) (any, error) {
		if cmd.Do == "dial" {
			var o dialOptions
			if err := json.Unmarshal(cmd.Value, &o); err != nil {
				return nil, err
			}
			return dialAndLeave(c.Target, o), nil
		}
		var o idleOptions
		if err := json.Unmarshal(cmd.Value, &o); err != nil {
			return nil, err
		}
		if cmd.Do != "open" {
			return nil, fmt.Errorf("an idle client cannot %s", cmd.Do)
		}
		more, err := openIdle(c.Peer, c.Target, config, o.Conns, &answering)
		conns = append(conns, more...)
		out := opened{Conns: len(conns)}
		if len(more) > 0 {
			if nc, ok := more[0].(*tls.Conn); ok && len(nc.ConnectionState().PeerCertificates) > 0 {
				out.Serial = nc.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
			}
		}
		return out, err
	})
}

// openIdle opens n connections, some at a time.
func openIdle(peer, address string, config *tls.Config, n int, answering *sync.WaitGroup) (conns []net.Conn, err error) {
	const dialers = 16
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	var mu sync.Mutex // guards conns and err
	for range dialers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				nc, e := net.Dial("tcp", address)
				if e == nil && config != nil {
					nc = tls.Client(nc, config)
				}
				if e == nil {
					e = introduce(peer, nc, answering)
				}
				mu.Lock()
				if nc != nil {
					conns = append(conns, nc)
				}
				if e != nil && err == nil {
					err = fmt.Errorf("connection %d: %w", len(conns), e)
					left.Store(0)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return conns, err
}

// answerPings answers the server's pings until the connection ends.
func answerPings(p *wirepeer.Peer) {
	for {
		f, err := p.NextOf(wire.TypePing)
		if err != nil {
			return
		}
		value, err := wire.ParsePing(f.Body)
		if err != nil {
			return
		}
		if err := p.Send(wire.AppendPing(nil, wire.TypePong, value)); err != nil {
			return
		}
	}
}
