package anser

import (
	"cmp"
	"slices"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// StreamStatus describes one open stream of a [Server] or a [Client].
type StreamStatus struct {
	Peer
	// Address is the address of the instance, on a client; empty on a server.
	Address string
	// Protocol is the protocol of the connection, as in [ConnStatus].
	Protocol string
	Method   string
	// ClientStream and ServerStream tell which sides send any number of messages. A server knows it
	// of its method. A client knows it of streams that were opened with a typed method, with stubs
	// of gRPC or Connect, or with [StreamSides]; otherwise both are false.
	ClientStream, ServerStream bool
	// Age is the time since the stream was opened.
	Age time.Duration
	// Sent and Received are numbers of messages: of whole ones that were sent, and of whole ones
	// that have arrived. Over another protocol, a message counts when the handler has received it.
	Sent, Received uint64
	// SendCredit is how many bytes may be sent on the stream now, and ReceiveCredit how many the
	// peer may send. Both are 0 over another protocol.
	SendCredit, ReceiveCredit int64
	// WaitsForCredit says that a Send waits until the peer has received more of the stream, and
	// WaitsForConn that it waits for its turn on the connection. Over another protocol every Send
	// that has not returned is in WaitsForConn. WaitsForMessage says that a Recv waits.
	WaitsForCredit, WaitsForConn, WaitsForMessage bool
}

// listedStream is an open stream that may become part of a list.
type listedStream struct {
	born mono.Time
	fill func(*StreamStatus)
}

// oldest returns the status of the streams that have been open for longest.
func oldest(list []listedStream, limit int, now mono.Time) (out []StreamStatus, all int) {
	all = len(list)
	slices.SortStableFunc(list, func(a, b listedStream) int { return cmp.Compare(a.born, b.born) })
	for _, l := range list[:min(all, max(limit, 0))] {
		st := StreamStatus{Age: max(now.Sub(l.born), 0)}
		l.fill(&st)
		out = append(out, st)
	}
	return out, all
}

// fillStatus stores what the stream itself knows.
func (st *stream) fillStatus(out *StreamStatus) {
	w := st.conn.w
	w.mu.Lock()
	out.Sent, out.SendCredit = st.sent, min(st.credit, st.conn.credit)
	out.WaitsForCredit, out.WaitsForConn = st.waitsFor == waitCredit, st.waitsFor == waitConn
	w.mu.Unlock()
	st.receiving.mu.Lock()
	out.Received, out.ReceiveCredit, out.WaitsForMessage = st.arrived, st.left, st.waits
	st.receiving.mu.Unlock()
}
