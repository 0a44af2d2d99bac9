// Package measure starts the server and the client of a peer, measures both from outside, and ends
// them.
package measure

import (
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/anser-rpc/anser/arena/internal/hosts"
	"github.com/anser-rpc/anser/arena/result"
)

// Job is one measurement.
type Job struct {
	Server, Client []string // command lines, without the flags of the contract
	Workload       string
	Shape          result.Shape
	Warmup         float64       // seconds
	Grace          time.Duration // to start, to connect and to end, before it counts as hanging
}

// The paces that a client which counts its calls is trusted to reach: below it, it hangs.
const leastCallsPerSecond = 1000

// lasts returns how long the client is expected to take, without the grace.
func (j *Job) lasts() time.Duration {
	s := j.Warmup + j.Shape.Seconds
	if j.Shape.Calls > 0 {
		pace := j.Shape.Rate
		if pace <= 0 {
			pace = leastCallsPerSecond
		}
		s = j.Warmup + float64(j.Shape.Calls)/pace
	}
	return time.Duration(s * float64(time.Second))
}

// hosts returns the names of the hosts of the two sides, "" for this one, and where the server
// listens.
func (j *Job) hosts() (server, client, ip string) {
	if j.Shape.Hosts == 2 {
		return hosts.Server, hosts.Client, hosts.ServerIP
	}
	return "", "", "127.0.0.1"
}

// iface is the interface that the bytes between the two pass.
func (j *Job) iface() string {
	if j.Shape.Hosts == 2 {
		return hosts.Interface
	}
	return "lo"
}

func (j *Job) serverArgs(address string) []string {
	return slices.Concat(j.Server, []string{
		"--addr", address,
		"--sleep-us", strconv.Itoa(j.Shape.SleepUS),
		"--work-us", strconv.Itoa(j.Shape.WorkUS),
	})
}

// clientArgs returns the command line of the i-th client. Callers, connections, rate and calls of
// the shape are those of all clients together.
func (j *Job) clientArgs(i int, addresses string) []string {
	s := &j.Shape
	callers := part(s.Callers, i, s.Clients)
	args := slices.Concat(j.Client, []string{
		"--addr", addresses,
		"--workload", j.Workload,
		"--callers", strconv.Itoa(callers),
		"--window", strconv.Itoa(max(s.Window, 1)),
		"--rate", decimal(s.Rate * float64(callers) / float64(s.Callers)),
		"--warmup", decimal(j.Warmup),
		"--seconds", decimal(s.Seconds),
		"--calls", strconv.Itoa(part(s.Calls, i, s.Clients)),
	})
	if s.Payload > 0 {
		args = append(args, "--payload", strconv.Itoa(s.Payload))
	}
	switch {
	case s.Fresh:
		return append(args, "--fresh")
	case s.Conns == 0:
		return append(args, "--conns", "0")
	}
	return append(args, "--conns", strconv.Itoa(max(part(s.Conns, i, s.Clients), 1)))
}

// part is what the i-th of n gets of a whole.
func part(whole, i, n int) int {
	p := whole / n
	if i < whole%n {
		p++
	}
	return p
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// The ports for servers: below the range that the system uses for clients.
const (
	leastPort = 18000
	mostPort  = 28000
)

// port returns a port on which no process listens. On a host of its own all are free.
func port(ip, host string) (string, error) {
	var last error
	for range 100 {
		address := net.JoinHostPort(ip, strconv.Itoa(leastPort+rand.IntN(mostPort-leastPort)))
		if host != "" {
			return address, nil
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			l.Close()
			return address, nil
		}
		last = err
	}
	return "", last
}
