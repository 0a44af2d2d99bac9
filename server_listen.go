package anser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/internal/unixsocket"
)

// ListenAndServe listens on address, "host:port" or "unix:///path", and serves until Shutdown,
// Close, or a signal. SIGTERM and SIGINT drain the server; a second signal ends the process. The
// option [NoSignals] disables the handling of signals.
//
// After a drain by signal the result is nil, so that main can return and the process exits with
// code 0. It is an error if calls were still in flight when [DrainGrace] ended. After Shutdown or
// Close the result is [ErrServerClosed], immediately: a program that calls Shutdown waits for that
// to return. So a main function is:
//
//	if err := s.ListenAndServe("127.0.0.1:8972"); err != nil {
//		log.Fatal(err)
//	}
//
// On any address other than loopback it requires TLS and authentication, which is [Authenticate] or
// a TLS configuration that requires and verifies certificates, unless [InsecurePublic] is given.
func (s *Server) ListenAndServe(address string) error {
	l, err := s.Listen(address)
	if err != nil {
		return err
	}
	if !s.o.signals {
		return s.Serve(l)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return err
	case sig := <-signals:
		signal.Stop(signals)
		s.log.Info("draining", "signal", sig.String(), "grace", s.o.grace)
		ctx, cancel := context.WithTimeout(context.Background(), s.o.grace)
		defer cancel()
		err := s.Shutdown(ctx)
		if e := <-served; !errors.Is(e, ErrServerClosed) {
			return e
		}
		return err
	}
}

// Listen returns a listener for Serve, with the same checks as ListenAndServe.
//
// The unix socket of a process that has ended, which a crash leaves behind, is replaced. A socket
// on which a process listens, or a file that is not a socket, is an error. While Listen checks, it
// holds a lock on a file with the name of the socket and ".lock", so that of several servers that
// start at once one gets the socket.
func (s *Server) Listen(address string) (net.Listener, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	network, host := splitAddress(address)
	if network == "tcp" {
		if err := s.checkPublic(address); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	switch network {
	case "unix":
		l, err := unixsocket.Listen(host)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", address, err)
		}
		return l, nil
	case "tcp":
		if s.o.reusePort {
			config.Control = sysconn.ReusePort
		}
	default:
		return nil, fmt.Errorf("listen on %q: use host:port or unix:///path; for %s, give Serve the listener of its transport", address, network)
	}
	l, err := config.Listen(context.Background(), network, host)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

func (s *Server) checkPublic(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return fmt.Errorf("listen on %q: the address has no port: use host:port", address)
	}
	if s.o.insecure || host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return nil
	}
	p := Protection{Encrypted: s.o.tls != nil, Authenticated: s.authenticates()}
	if lacks := p.lacks(); lacks != "" {
		return fmt.Errorf("listen on %q: the address is reachable from other machines and there is no %s: %s", address, lacks, publicAdvice)
	}
	return nil
}
