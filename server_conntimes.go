package anser

import "time"

// ConnTimes are the times that the options of a server set for its connections.
type ConnTimes struct {
	// KeepaliveIdle is the silence after which a client is sent a ping, and KeepaliveAnswer the
	// time in which it must answer; see [Keepalive].
	KeepaliveIdle, KeepaliveAnswer time.Duration
	// MinPing is the minimum time between two pings of a client; see [MinPing].
	MinPing time.Duration
	// WriteStall is how long a write may make no progress; see [WriteStall].
	WriteStall time.Duration
	// ReadTimeout bounds the time from the first byte of a frame to its last one, 0 means no limit;
	// see [ReadTimeout].
	ReadTimeout time.Duration
}

// ConnTimes returns the times for the connections of the server. A [Protocol] reads and writes its
// connections by itself, and applies the times that its messages have a place for. [IdleTimeout]
// and [HandshakeTimeout] are applied by [ProtocolConn].
func (s *Server) ConnTimes() ConnTimes {
	if s.usable() != nil {
		return ConnTimes{}
	}
	o := &s.o
	return ConnTimes{
		KeepaliveIdle: o.keepaliveIdle, KeepaliveAnswer: o.keepaliveAnswer, MinPing: o.minPing,
		WriteStall: o.writeStall, ReadTimeout: o.readTimeout,
	}
}
