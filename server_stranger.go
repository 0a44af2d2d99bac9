package anser

import (
	"fmt"
	"net"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/stranger"
	"github.com/anser-rpc/anser/wire"
)

const (
	anserPort = "This is an Anser server (version %d of the protocol), which does not speak HTTP.\n" +
		"Call it with a client of Anser, for example: anser call HOST:PORT SERVICE.METHOD '{}'\n"
	tlsPort = "This port speaks TLS.\n" + anserPort
)

// answerHTTP tells an HTTP client what it has reached. The answer repeats nothing of the request.
func (s *Server) answerHTTP(nc net.Conn, format string) {
	if n := s.httpSeen.Note(mono.Now()); n > 0 {
		s.log.Warn("a request of HTTP reached this port, which speaks Anser: see Debug for each of them", "peer", nc.RemoteAddr(), "requests", n)
	}
	nc.SetDeadline(time.Now().Add(byeBound))
	stranger.Answer(nc, fmt.Sprintf(format, wire.Version))
}
