package anser

import (
	"net"
	"net/netip"
)

// Unread returns how many bytes of DATA have arrived on the server's connections that were
// neither read nor discarded. Without open streams there are none: their credit would be lost.
func (s *Server) Unread() (n int64) {
	for _, c := range s.liveConns() {
		n += c.streams.unread()
	}
	return n
}

// Unread is the same for the connections of a client.
func (c *Client) Unread() (n int64) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for _, h := range c.pool.hosts {
		for _, conn := range *h.ready.Load() {
			n += conn.streams.unread()
		}
	}
	return n
}

func (s *streams) unread() int64 { return s.arrived.Load() - s.read.Load() }

// Standbys returns how many of the client's connections wait for a caller to read them, and how
// often the sweep has checked the connections of the client's pool.
func (c *Client) Standbys() (conns int, looks uint64) {
	s := &c.pool.standbys
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.looks
}

// Lending reports whether a connection of the client writes a message from the caller's memory.
func (c *Client) Lending() bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for _, h := range c.pool.hosts {
		for _, conn := range *h.ready.Load() {
			if conn.lending.Load() > 0 {
				return true
			}
		}
	}
	return false
}

// AllowsAddress reports whether a server with these prefixes accepts connections from the
// address.
func AllowsAddress(allowed, denied []netip.Prefix, from net.Addr) bool {
	return (&addressRules{allowed, denied}).allow(from)
}

// MaintenanceRuns returns how many tasks of the client's pool the maintenance has run.
func (c *Client) MaintenanceRuns() uint64 { return c.pool.upkeep.Runs() }

// MaintenanceRuns is the same for the server.
func (s *Server) MaintenanceRuns() uint64 { return s.upkeep.Runs() }
