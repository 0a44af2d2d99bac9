package anser

import "github.com/anser-rpc/anser/internal/mono"

// Streams returns up to limit open streams, the oldest first, and how many there are.
func (s *Server) Streams(limit int) (list []StreamStatus, all int) {
	if s.usable() != nil {
		return nil, 0
	}
	var open []listedStream
	for _, c := range s.liveConns() {
		open = c.appendStreams(open)
	}
	return oldest(open, limit, mono.Now())
}

// appendStreams appends the streams of the connection that are open.
func (c *serverConn) appendStreams(list []listedStream) []listedStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streaming == 0 {
		return list
	}
	c.running.Each(func(ctx *callContext) {
		if st := ctx.stream(); st != nil {
			list = append(list, listedStream{st.born, func(out *StreamStatus) {
				c.describeStream(ctx.method, out)
				st.fillStatus(out)
			}})
		} else if k := ctx.protocolCall(); k != nil && k.stream != nil {
			list = append(list, listedStream{k.arrived, func(out *StreamStatus) {
				c.describeStream(ctx.method, out)
				k.stream.fillStatus(out)
			}})
		}
	})
	return list
}

// describeStream stores what the connection and the method know of a stream.
func (c *serverConn) describeStream(m *method, out *StreamStatus) {
	out.Peer, out.Method, out.Protocol = c.peerInfo(), m.name, "anser"
	out.ClientStream, out.ServerStream = m.sides.client, m.sides.server
	if c.protocol != nil {
		out.Protocol = c.protocol.hooks.Protocol
	}
}
