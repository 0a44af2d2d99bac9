package main

import (
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/wirepeer"
)

// strangers are connections that come to a server in order to take room.
type strangers struct {
	target string
	conns  []net.Conn
	open   sync.WaitGroup
}

// runStrangers is the role of many strangers.
func runStrangers(c config, p *parent) error {
	if err := p.ready(); err != nil {
		return err
	}
	s := &strangers{target: c.Target}
	defer s.leave()
	return p.obey(func(cmd command) (any, error) {
		switch cmd.Do {
		case "occupy":
			var n int
			if err := json.Unmarshal(cmd.Value, &n); err != nil {
				return nil, err
			}
			return nil, s.occupy(n)
		case "leave":
			s.leave()
			return nil, nil
		case "visit":
			return s.visit()
		}
		return nil, fmt.Errorf("strangers cannot %s", cmd.Do)
	})
}

// occupy makes n connections. It does not wait until the server shakes hands: it may have no room
// for all of them.
func (s *strangers) occupy(n int) error {
	for range n {
		nc, err := net.DialTimeout("tcp", s.target, bound)
		if err != nil {
			return err
		}
		s.conns = append(s.conns, nc)
		s.open.Go(func() {
			p := wirepeer.New(nc)
			if _, err := p.Handshake(); err == nil {
				answerPings(p)
			}
		})
	}
	return nil
}

// leave closes all connections.
func (s *strangers) leave() {
	for _, nc := range s.conns {
		nc.Close()
	}
	s.conns = nil
	s.open.Wait()
}

// visit returns how long it takes until a new connection has shaken hands, and leaves again.
func (s *strangers) visit() (time.Duration, error) {
	began := time.Now()
	nc, err := net.DialTimeout("tcp", s.target, bound)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	nc.SetDeadline(began.Add(bound))
	_, err = wirepeer.New(nc).Handshake()
	return time.Since(began), err
}
