package anser

import (
	"cmp"
	"slices"
	"time"
)

// ConnStatus describes one open connection of a [Server] or a [Client].
type ConnStatus struct {
	Peer
	// Address is the address that a client dialed; empty on a server.
	Address string
	// Protocol is the protocol of the connection: "anser", or what [ProtocolHooks] names, or "" if
	// they name none.
	Protocol string
	// InFlight is the number of open calls, including Streams. On a server it is without the call
	// that runs on the reader goroutine of the connection.
	InFlight, Streams int
	Draining          bool // it takes no new calls

	// The fields below describe connections of Anser's own protocol.

	// Sent and Received are bytes, before TLS encrypts and after it decrypts them.
	Sent, Received uint64
	Waiting        int           // bytes that wait to be written
	Credit         int64         // bytes that may be sent on streams now
	Quiet          time.Duration // time since the last bytes arrived
}

// busiest returns the connections with the most open calls.
func busiest(list []ConnStatus, limit int) (most []ConnStatus, all int) {
	slices.SortStableFunc(list, func(a, b ConnStatus) int {
		return cmp.Or(cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(b.Received, a.Received),
			cmp.Compare(addressOf(a.Addr), addressOf(b.Addr)))
	})
	return list[:min(len(list), max(limit, 0))], len(list)
}

// fill stores what both kinds of connection know.
func (st *ConnStatus) fill(f connFigures) {
	st.Sent, st.Received, st.Waiting, st.Credit, st.Quiet = f.sent, f.received, f.waiting, f.credit, f.quiet
}
