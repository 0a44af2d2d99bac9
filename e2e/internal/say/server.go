// Package say is the 581-byte workload over Anser as processes run it: a server that reports what
// it uses, and loads that report what they saw. Nothing but command e2e/reach runs it.
package say

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// Message is the message of the workload.
type Message = benchpb.BenchmarkMessage

// The methods of the server. The slow one is there to compare with calls of Say that are slow.
const (
	methodSay  anser.Method[Message, Message] = "Hello.Say"
	methodSlow anser.Method[Message, Message] = "Hello.SaySlowly"
	methodBurn anser.Method[Message, Message] = "Hello.Burn"
)

const (
	slowFor = 10 * time.Millisecond
	burnFor = 100 * time.Microsecond
)

// slowMark in field 3 makes a call slow.
const slowMark = 1

// Stat is a server's report about itself.
type Stat struct {
	Addr     string  `json:"addr"`
	CPU      float64 `json:"cpu_s"`
	RSS      int64   `json:"rss_bytes"`
	Conns    int     `json:"conns"`
	Handoffs int64   `json:"handoffs"`

	// Of processes that a console watches.
	Page       string  `json:"page,omitempty"`  // URL
	Calls      int64   `json:"calls,omitempty"` // of a client
	Readings   int64   `json:"readings,omitempty"`
	ReadingCPU float64 `json:"reading_cpu_s,omitempty"` // in the handler
}

// Commands that Serve understands, one a line. Each is answered by a Stat as JSON, one a line.
const (
	CommandStat = "stat"
	CommandFree = "free" // gives memory that is not used back first
)

// Serve runs a server on a free port of the loopback, with default options. It writes a Stat when
// it listens and after each command, and stops when there are no more commands.
func Serve(commands io.Reader, answers io.Writer) error {
	option, end, err := observing(os.Getenv(ObserveVariable))
	if err != nil {
		return err
	}
	defer end()
	s := anser.NewServer(anser.NoSignals(), option)
	burn := calibrate()
	err = errors.Join(
		methodSay.Handle(s, func(_ context.Context, m *Message) (*Message, error) {
			if m.GetField3() == slowMark {
				time.Sleep(slowFor)
			}
			benchpb.Answer(m)
			return m, nil
		}),
		methodSlow.Handle(s, func(_ context.Context, m *Message) (*Message, error) {
			time.Sleep(slowFor)
			benchpb.Answer(m)
			return m, nil
		}),
		methodBurn.Handle(s, func(_ context.Context, m *Message) (*Message, error) {
			burnCPU(burn)
			benchpb.Answer(m)
			return m, nil
		}),
		methodSink.Handle(s, sink),
		methodDrip.Handle(s, drip),
	)
	if err != nil {
		return err
	}
	return serveOn(s, commands, answers)
}

// answerCommands writes a Stat at once and after each command, until there are no more.
func answerCommands(commands io.Reader, answers io.Writer, stat func() (Stat, error)) error {
	return answerCommandsAnd(commands, answers, stat, func(command string) error { return fmt.Errorf("unknown command %q", command) })
}

// answerCommandsAnd does so with further commands, which do obeys.
func answerCommandsAnd(commands io.Reader, answers io.Writer, stat func() (Stat, error), do func(command string) error) error {
	out := json.NewEncoder(answers)
	answer := func() error {
		st, err := stat()
		if err != nil {
			return err
		}
		return out.Encode(st)
	}
	err := answer()
	for in := bufio.NewScanner(commands); err == nil && in.Scan(); {
		switch in.Text() {
		case CommandFree:
			debug.FreeOSMemory()
		case CommandStat:
		default:
			if err := do(in.Text()); err != nil {
				return err
			}
		}
		err = answer()
	}
	return err
}

func stat(s *anser.Server, addr string) (Stat, error) {
	st := s.Stats()
	rss, err := residentBytes()
	return Stat{Addr: addr, CPU: cpuTime().Seconds(), RSS: rss, Conns: st.Conns, Handoffs: st.Handoffs}, err
}

// calibrate finds how many rounds of burnCPU take burnFor: the shortest of some attempts, since
// others may use the processor too.
func calibrate() int {
	const rounds = 200
	best := time.Hour
	for range 200 {
		began := time.Now()
		burnCPU(rounds)
		best = min(best, time.Since(began))
	}
	return int(rounds * burnFor / max(best, 1))
}

func burnCPU(rounds int) {
	var sum [sha256.Size]byte
	for range rounds {
		sum = sha256.Sum256(sum[:])
	}
}
