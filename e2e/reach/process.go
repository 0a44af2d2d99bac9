package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/anser-rpc/anser/e2e/internal/say"
)

// process is one that was started, and answers in lines of JSON.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(path string, args ...string) (*process, error) { return startWith(nil, path, args...) }

func startWith(env []string, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// self starts a process of this program.
func self(args ...string) (*process, error) { return selfWith(nil, args...) }

// selfWith does, with more in the environment.
func selfWith(env []string, args ...string) (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startWith(env, path, args...)
}

// line reads the next answer.
func (p *process) line(v any) error {
	text, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s ended without an answer: %w", p.cmd, err)
	}
	return json.Unmarshal(text, v)
}

// ask sends a command to a server and returns its answer.
func (p *process) ask(command string) (s say.Stat, err error) {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return s, err
	}
	return s, p.line(&s)
}

// stop ends a process that ends with its input.
func (p *process) stop() error {
	p.in.Close()
	return p.cmd.Wait()
}

// kill ends a process that does not.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// once runs a process that gives one answer and ends.
func once(p *process, err error, answer any) error {
	if err != nil {
		return err
	}
	if err := p.line(answer); err != nil {
		p.kill()
		return err
	}
	return p.stop()
}

// server starts a server and returns its address. env is added to its environment.
func server(env ...string) (*process, string, error) { return serverOf("process-server", env...) }

func serverOf(role string, env ...string) (*process, string, error) {
	return answering(selfWith(env, role))
}

// answering waits for the address of a server that was started.
func answering(p *process, err error) (*process, string, error) {
	if err != nil {
		return nil, "", err
	}
	var s say.Stat
	if err := p.line(&s); err != nil {
		p.kill()
		return nil, "", err
	}
	return p, s.Addr, nil
}

// ceiling starts a server of the ceiling program.
func ceiling(path string, flags ...string) (*process, string, error) {
	p, err := start(path, append([]string{"-serve", "-addr", "127.0.0.1:0"}, flags...)...)
	if err != nil {
		return nil, "", err
	}
	var s struct{ Addr string }
	if err := p.line(&s); err != nil {
		p.kill()
		return nil, "", err
	}
	return p, s.Addr, nil
}

func build(path, pkg string) error {
	cmd := exec.Command("go", "build", "-o", path, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
