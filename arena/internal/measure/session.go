package measure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anser-rpc/anser/arena/internal/child"
	"github.com/anser-rpc/anser/arena/internal/hosts"
	"github.com/anser-rpc/anser/arena/internal/proc"
)

// The times of the contract and of the runner.
const (
	endGrace  = 5 * time.Second  // SIGTERM ends a server within
	exitGrace = 10 * time.Second // for a client that has printed its line
	pollEvery = 10 * time.Millisecond
)

// session is the processes of one measurement.
type session struct {
	job       *Job
	wrap      func(command []string, role string) []string // or nil
	servers   []*child.Child
	addresses []string
	clients   []*child.Child
	down      chan int // a server that has ended by itself
}

// failure is something that a peer did against its contract, or did not do. It is part of the
// result, where other errors end the run.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

func failed(format string, args ...any) error { return &failure{fmt.Sprintf(format, args...)} }

// close ends everything at once.
func (s *session) close() {
	for _, c := range s.clients {
		c.Kill()
	}
	for _, c := range s.servers {
		c.Kill()
	}
}

func (s *session) start(command []string, role, host string) (*child.Child, error) {
	if err := child.Executable(command); err != nil {
		return nil, &failure{err.Error()}
	}
	if s.wrap != nil {
		command = s.wrap(command, role)
	}
	if host != "" {
		command = hosts.Inside(host, command)
	}
	c, err := child.Start(command)
	if err != nil {
		return nil, &failure{err.Error()}
	}
	return c, nil
}

// startServers starts the servers, and waits until each of them accepts a connection.
func (s *session) startServers(ctx context.Context) error {
	host, from, ip := s.job.hosts()
	s.down = make(chan int, s.job.Shape.Servers)
	for i := range s.job.Shape.Servers {
		address, err := port(ip, host)
		if err != nil {
			return fmt.Errorf("find a port for the server: %w", err)
		}
		c, err := s.start(s.job.serverArgs(address), "server", host)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, c)
		s.addresses = append(s.addresses, address)
		go func() {
			<-c.Done()
			s.down <- i
		}()
	}
	late := time.NewTimer(s.job.Grace)
	defer late.Stop()
	for i, address := range s.addresses {
		for hosts.Dial(from, address, time.Second) != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case down := <-s.down:
				return s.serverFailed(down)
			case <-late.C:
				return failed("the server did not accept a connection within %v%s", s.job.Grace, quote(s.servers[i]))
			case <-time.After(pollEvery):
			}
		}
	}
	return nil
}

// serverFailed returns how a server ended that was not told to.
func (s *session) serverFailed(i int) error {
	c := s.servers[i]
	why := "ended by itself with exit code 0"
	if err := c.Failure(); err != nil {
		why = err.Error()
	}
	return failed("the server %s%s", why, quote(c))
}

func (s *session) startClients() error {
	_, host, _ := s.job.hosts()
	addresses := strings.Join(s.addresses, ",")
	for i := range s.job.Shape.Clients {
		c, err := s.start(s.job.clientArgs(i, addresses), "client", host)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	return nil
}

// lines waits for the line that each client prints. Each time the sampler, if there is one, reads
// the processes for the last time before they end.
func (s *session) lines(ctx context.Context, sampler *proc.Sampler) ([][]byte, error) {
	type said struct {
		i    int
		line []byte
	}
	all := make(chan said, len(s.clients))
	for i, c := range s.clients {
		go func() {
			line := <-c.Line()
			if sampler != nil {
				sampler.Now()
			}
			all <- said{i, line}
		}()
	}
	limit := s.job.lasts() + s.job.Grace
	late := time.NewTimer(limit)
	defer late.Stop()
	lines := make([][]byte, len(s.clients))
	for range s.clients {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case got := <-all:
			if len(got.line) == 0 {
				return nil, s.clientFailed(s.clients[got.i])
			}
			lines[got.i] = got.line
		case i := <-s.down:
			return nil, s.serverFailed(i)
		case <-late.C:
			return nil, failed("the client said nothing within %v%s%s", limit.Round(time.Second),
				quote(s.clients[0]), also("the server", s.servers[0]))
		}
	}
	return lines, nil
}

// clientFailed says how a client ended without its line.
func (s *session) clientFailed(c *child.Child) error {
	why := "closed its output without a result"
	select {
	case <-c.Done():
		why = "ended without a result"
		if err := c.Failure(); err != nil {
			why = err.Error()
		}
	case <-time.After(exitGrace):
	}
	return failed("the client %s%s%s", why, quote(c), also("the server", s.servers[0]))
}

// end asks the servers to end, when the clients have.
func (s *session) end() error {
	for _, c := range s.clients {
		select {
		case <-c.Done():
		case <-time.After(exitGrace):
			return failed("the client did not end within %v of its result%s", exitGrace, quote(c))
		}
		if err := c.Failure(); err != nil {
			return failed("the client printed its result and %v%s", err, quote(c))
		}
	}
	var breaches []error
	for _, c := range s.servers {
		// The contract has 5 seconds; a machine that is busy may take some of them away.
		if grace := max(endGrace, s.job.Grace); c.End(grace) {
			breaches = append(breaches, failed("the server did not end within %v of SIGTERM%s", grace, quote(c)))
		} else if err := c.Failure(); err != nil {
			breaches = append(breaches, failed("at SIGTERM the server %v, and not with exit code 0%s", err, quote(c)))
		}
	}
	return errors.Join(breaches...)
}

// quote returns the last words of a process.
func quote(c *child.Child) string {
	if said := c.Said(); said != "" {
		return "; it said: " + said
	}
	return ""
}

// also returns the last output of another process.
func also(who string, c *child.Child) string {
	if said := c.Said(); said != "" {
		return "; " + who + " said: " + said
	}
	return ""
}
