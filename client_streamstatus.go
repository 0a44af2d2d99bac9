package anser

import "github.com/anser-rpc/anser/internal/mono"

// Streams returns up to limit open streams of the client, the oldest first, and how many there are.
func (c *Client) Streams(limit int) (list []StreamStatus, all int) {
	if !c.exists() {
		return nil, 0
	}
	c.mu.Lock()
	open := make([]listedStream, 0, len(c.streams))
	for st := range c.streams {
		open = append(open, listedStream{st.born, func(out *StreamStatus) {
			o := st.clientSide()
			info := o.conn.dialed.info()
			out.Peer, out.Address, out.Protocol, out.Method = info.Peer, info.Address, "anser", o.method.name
			out.ClientStream, out.ServerStream = o.sides.client, o.sides.server
			st.fillStatus(out)
		}})
	}
	c.mu.Unlock()
	return oldest(open, limit, mono.Now())
}
