package anser

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

const (
	anserPort = "This is an Anser server (version %d of the protocol), which does not speak HTTP.\n" +
		"Call it with a client of Anser, for example: anser call HOST:PORT SERVICE.METHOD '{}'\n"
	tlsPort = "This port speaks TLS.\n" + anserPort
)

// answerHTTP tells an HTTP client what it has reached. The answer repeats nothing of the request.
func (s *Server) answerHTTP(nc net.Conn, format string) {
	if n := s.httpSeen.note(mono.Now()); n > 0 {
		s.log.Warn("a request of HTTP reached this port, which speaks Anser: see Debug for each of them", "peer", nc.RemoteAddr(), "requests", n)
	}
	text := fmt.Sprintf(format, wire.Version)
	nc.SetDeadline(time.Now().Add(byeBound))
	fmt.Fprintf(nc, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"X-Content-Type-Options: nosniff\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// seldom counts events that are logged only once in a while.
type seldom struct {
	next  mono.Atomic  // time from which the next line may be logged
	count atomic.Int64 // since the last line
}

// seldomEvery is the minimum time between two lines.
const seldomEvery = time.Minute

// note counts an event, and returns the number of events to log now, or 0 if no line is due.
func (s *seldom) note(now mono.Time) int64 {
	s.count.Add(1)
	next := s.next.Load()
	if next != 0 && now < next || !s.next.CompareAndSwap(next, now.Add(seldomEvery)) {
		return 0
	}
	return s.count.Swap(0)
}
