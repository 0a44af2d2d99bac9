package demo

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/anser-rpc/anser/registry/embedded"
)

// store is the registry of the demo. It is used by one goroutine at a time.
type store struct {
	cfg    embedded.Config
	member *embedded.Member // nil while it is stopped
}

// startStore starts the registry.
func startStore(ctx context.Context, o Options) (*store, error) {
	// Another process may use the port: report that in our own words, before etcd does.
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("the registry cannot listen on %s: %w\n"+
			"is another demo or registry running? choose another address with --listen, such as 127.0.0.1:0 for a free port", o.Listen, err)
	}
	l.Close()
	s := &store{cfg: embedded.Config{Dir: o.Data, Listen: o.Listen}}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	s.cfg.Listen = s.member.Endpoint() // so that clients find it after an outage
	return s, nil
}

func (s *store) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	member, err := embedded.Start(ctx, s.cfg)
	if err != nil {
		return err
	}
	s.member = member
	return nil
}

// stop stops the registry; its data stays.
func (s *store) stop() error {
	if s.member == nil {
		return errors.New("the registry is stopped already")
	}
	err := s.member.Close()
	s.member = nil
	return err
}

func (s *store) close() error {
	if s.member == nil {
		return nil
	}
	return s.stop()
}
