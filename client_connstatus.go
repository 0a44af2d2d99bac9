package anser

import "github.com/anser-rpc/anser/internal/mono"

// Conns returns up to limit open connections to the instances of the client's service, those with
// the most open calls first, and how many there are. Other clients of the process may use the same
// connections.
func (c *Client) Conns(limit int) (list []ConnStatus, all int) {
	if !c.exists() {
		return nil, 0
	}
	now := mono.Now()
	seen := make(map[*host]bool)
	known := c.cluster.Status()
	for i := range known.Instances {
		h := known.Instances[i].Endpoint.Host
		if seen[h] {
			continue
		}
		seen[h] = true
		h.mu.Lock()
		conns := make([]*clientConn, 0, len(h.all))
		for k := range h.all {
			conns = append(conns, k)
		}
		h.mu.Unlock()
		for _, k := range conns {
			list = append(list, k.status(now))
		}
	}
	return busiest(list, limit)
}

func (c *clientConn) status(now mono.Time) ConnStatus {
	info := c.info()
	st := ConnStatus{Peer: info.Peer, Address: info.Address, Protocol: "anser"}
	c.mu.Lock()
	defer c.mu.Unlock()
	st.InFlight, st.Streams, st.Draining = c.open.Len(), int(c.streaming.Load()), c.draining
	st.fill(c.link.figuresLocked(now))
	return st
}
