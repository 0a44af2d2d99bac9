package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/anser-rpc/anser/e2e/internal/say"
)

// runKitex is run for the program of arena/peers/kitex, with multiplexed connections. The processor
// time of its client includes that of the client's start.
func (s *subject) runKitex(o options, callers int) (f figures, err error) {
	args := []string{"--transport", "mux"}
	if s.observe != "" {
		args = append(args, "--observe")
	}
	addr, err := unusedAddress()
	if err != nil {
		return f, err
	}
	server := exec.Command(s.program, append([]string{"server", "--addr", addr}, args...)...)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return f, err
	}
	defer func() {
		server.Process.Signal(syscall.SIGTERM)
		server.Wait()
	}()
	if err := awaitListener(addr); err != nil {
		return f, fmt.Errorf("%s: %w", s.program, err)
	}
	before, err := processorTime(server.Process.Pid)
	if err != nil {
		return f, err
	}
	client := exec.Command(s.program, append([]string{
		"client", "--addr", addr, "--conns", "2", "--callers", strconv.Itoa(callers), "--warmup", "0",
		"--calls", strconv.Itoa(o.calls(2*perSecond["grpc"], callers)),
	}, args...)...)
	client.Stderr = os.Stderr
	text, err := client.Output()
	if err != nil {
		return f, err
	}
	after, err := processorTime(server.Process.Pid)
	if err != nil {
		return f, err
	}
	var answer struct { // as in arena/CONTRACT.md
		Calls, Errors, Wrong int
		FirstError           string `json:"first_error"`
		Began                int64  `json:"began_unix_ns"`
		Ended                int64  `json:"ended_unix_ns"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return f, fmt.Errorf("%s: %w", s.program, err)
	}
	if answer.Errors+answer.Wrong > 0 || answer.Calls == 0 {
		return f, fmt.Errorf("%s: %d calls, %d failed, %d had wrong replies: %s", s.program, answer.Calls, answer.Errors, answer.Wrong, answer.FirstError)
	}
	n, took := float64(answer.Calls), time.Duration(answer.Ended-answer.Began)
	used := client.ProcessState.UserTime() + client.ProcessState.SystemTime()
	f.Result = say.Result{Calls: answer.Calls, Seconds: took.Seconds(), CallsPerS: n / took.Seconds(), ClientCPU: float64(used.Microseconds()) / n}
	f.ServerCPU = (after - before) * 1e6 / n
	return f, nil
}

// unusedAddress returns an address at which nothing listens.
func unusedAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// awaitListener waits until a program that was started listens at the address.
func awaitListener(addr string) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			return nc.Close()
		}
		if time.Since(began) > 20*time.Second {
			return fmt.Errorf("it does not listen: %w", err)
		}
	}
}
