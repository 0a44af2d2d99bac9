package netrpc

import (
	"fmt"
	"time"
)

// mistake returns an error for an invalid field of the server, or nil.
func (s *Server) mistake() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"MaxMessage", s.MaxMessage},
		{"MaxInFlight", s.MaxInFlight},
		{"MaxPerConn", s.MaxPerConn},
		{"MaxConns", s.MaxConns},
		{"MaxHandshakes", s.MaxHandshakes},
	} {
		if f.value < 0 {
			return fmt.Errorf("rpc: Server.%s is %d: want more than 0, or 0 for the default", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"Stall", s.Stall},
		{"ReadTimeout", s.ReadTimeout},
		{"HandshakeTimeout", s.HandshakeTimeout},
	} {
		if f.value < 0 {
			return fmt.Errorf("rpc: Server.%s is %v: want more than 0, or 0 for the default", f.name, f.value)
		}
	}
	return s.checkShared()
}

// mistake returns an error for an invalid field of the dialer, or nil.
func (d *Dialer) mistake() error {
	if d.MaxMessage < 0 {
		return fmt.Errorf("rpc: Dialer.MaxMessage is %d: want more than 0, or 0 for the default", d.MaxMessage)
	}
	if d.ReadTimeout < 0 {
		return fmt.Errorf("rpc: Dialer.ReadTimeout is %v: want more than 0, or 0 for the default", d.ReadTimeout)
	}
	return nil
}
