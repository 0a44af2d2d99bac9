package anser

import "github.com/anser-rpc/anser/internal/mono"

// Conns returns up to limit open connections, those with the most open calls first, and how many
// there are.
func (s *Server) Conns(limit int) (list []ConnStatus, all int) {
	if s.usable() != nil {
		return nil, 0
	}
	now := mono.Now()
	for _, c := range s.liveConns() {
		list = append(list, c.status(now))
	}
	return busiest(list, limit)
}

func (c *serverConn) status(now mono.Time) ConnStatus {
	st := ConnStatus{Peer: c.peerInfo(), Protocol: "anser"}
	if c.protocol != nil {
		st.Protocol = c.protocol.hooks.Protocol
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st.InFlight, st.Streams, st.Draining = c.detached, c.streaming, c.draining
	if c.protocol == nil {
		st.fill(c.link.figuresLocked(now))
	}
	return st
}
