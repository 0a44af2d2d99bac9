package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/anser-rpc/anser/internal/tail"

	"github.com/anser-rpc/anser/internal/netns"
)

// saidBytes is how many of the last bytes of a process's output are kept.
const saidBytes = 64 << 10

// bound is how long anything may take that is not a matter of time. The machine may be busy.
const bound = 2 * time.Minute

// process is one that this program has started from its own binary. It answers each command, a
// line of JSON, with a line of JSON, and ends when its standard input does.
type process struct {
	name   string
	role   string
	config config
	host   netns.Host
	cmd    *exec.Cmd
	stderr *tail.Buffer
	exited chan struct{} // closed when err is valid
	err    error

	mu    sync.Mutex // held while a command is asked and answered
	in    io.WriteCloser
	out   *bufio.Reader
	ended bool // it was told to end, or killed
}

// roleEnv holds the role of a process started by the program, configEnv its configuration.
const (
	roleEnv   = "ANSER_FAULTS_ROLE"
	configEnv = "ANSER_FAULTS_CONFIG"
)

// answer is a line of a process.
type answer struct {
	Error string          `json:",omitempty"`
	Value json.RawMessage `json:",omitempty"`
}

// command is what a process is asked to do.
type command struct {
	Do    string
	Value json.RawMessage `json:",omitempty"`
}

// start starts a process on a host and waits until it is ready.
func start(name, role string, host netns.Host, c config) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	args := []string{self}
	if host.Name != "" {
		args = netns.Inside(host.Name, args)
	}
	p := &process{name: name, role: role, config: c, host: host, exited: make(chan struct{}), stderr: tail.New(saidBytes), cmd: exec.Command(args[0], args[1:]...)}
	// With the race detector a process would sleep for a second before it ends.
	race := "GORACE=atexit_sleep_ms=0"
	if ofPeer(role) {
		race += " exitcode=0" // it is not for us to judge
	}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role, configEnv+"="+string(text), race)
	p.cmd.Stderr = p.stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = child
	err = p.cmd.Start()
	child.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	p.out = bufio.NewReader(out)
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	if _, err := p.read(); err != nil {
		p.kill()
		return nil, fmt.Errorf("%s did not start: %w\n%s", name, err, p.stderr.String())
	}
	return p, nil
}

func (p *process) read() (json.RawMessage, error) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("it ended without an answer: %w", err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, fmt.Errorf("it says %.100q: %w", line, err)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Value, nil
}

// ask makes the process perform a command and stores its answer in out, which may be nil.
func (p *process) ask(do string, in, out any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	value, err := json.Marshal(in)
	if err != nil {
		return err
	}
	line, err := json.Marshal(command{do, value})
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ask %s to %s: %w\n%s", p.name, do, err, p.stderr.String())
	}
	got, err := p.read()
	if err != nil {
		return fmt.Errorf("ask %s to %s: %w\n%s", p.name, do, err, p.stderr.String())
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(got, out)
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s to %s: %w", s, p.name, err)
	}
	return nil
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.ended = true
	p.cmd.Process.Kill()
	<-p.exited
	p.in.Close()
}

// drain ends the process as an orchestrator does, and returns how long that took.
func (p *process) drain() (time.Duration, error) {
	p.ended = true
	began := time.Now()
	if err := p.signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	err := p.wait()
	return time.Since(began), err
}

// stop ends the process by the end of its input.
func (p *process) stop() error {
	if p.ended {
		return nil
	}
	p.ended = true
	p.signal(syscall.SIGCONT) // in case it was stopped
	p.in.Close()
	return p.wait()
}

// wait waits for the end of a process that was told to end.
func (p *process) wait() error {
	select {
	case <-p.exited:
	case <-time.After(bound):
		p.signal(syscall.SIGQUIT) // it prints its stacks
		select {
		case <-p.exited:
		case <-time.After(10 * time.Second):
			p.kill()
		}
		return fmt.Errorf("%s had not ended after %v\n%s", p.name, bound, p.stderr.String())
	}
	p.in.Close()
	if p.err != nil {
		return fmt.Errorf("%s ended badly: %w\n%s", p.name, p.err, p.stderr.String())
	}
	return nil
}

// crash returns how the process failed by itself, or nil.
func (p *process) crash() error {
	if text := p.stderr.String(); strings.Contains(text, "DATA RACE") && !ofPeer(p.role) {
		return fmt.Errorf("%s found a data race:\n%s", p.name, text)
	}
	if p.ended {
		return nil
	}
	select {
	case <-p.exited:
		said := p.stderr.String()
		return crashed{fmt.Errorf("%s crashed: %w\n%s", p.name, p.err, said), p.name, said}
	default:
		return nil
	}
}

// runRole is what a process does that was started with a role.
func runRole(role string) error {
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(configEnv)), &c); err != nil {
		return err
	}
	serve, ok := roles[role]
	if !ok {
		return fmt.Errorf("unknown role %q", role)
	}
	return serve(c, &parent{in: bufio.NewReader(os.Stdin), out: json.NewEncoder(os.Stdout)})
}

// parent is the program that started this process.
type parent struct {
	in  *bufio.Reader
	out *json.Encoder
}

// ready reports to the parent that the process is ready.
func (p *parent) ready() error { return p.out.Encode(answer{}) }

// obey executes the parent's commands until it ends.
func (p *parent) obey(do func(command) (any, error)) error {
	for {
		line, err := p.in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var c command
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		var a answer
		value, err := do(c)
		if err == nil {
			a.Value, err = json.Marshal(value)
		}
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := p.out.Encode(a); err != nil {
			return err
		}
	}
}
