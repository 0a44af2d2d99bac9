package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// buildAll builds the programs of the peers into folder and returns their paths by the folders of
// arena/peers.
func buildAll(ctx context.Context, folder string, some []peer) (map[string]string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/anser-rpc/anser").Output()
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w: run this inside of it", err)
	}
	programs := make(map[string]string)
	for _, p := range some {
		if programs[p.folder] != "" {
			continue
		}
		to := filepath.Join(folder, p.folder)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, ".")
		cmd.Dir = filepath.Join(strings.TrimSpace(string(root)), "arena", "peers", p.folder)
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if said, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", p.folder, err, said)
		}
		programs[p.folder] = to
	}
	return programs, nil
}

// measurement is one peer with one handler.
type measurement struct {
	o       options
	peer    peer
	kind    string
	flags   []string
	program string
}

// result is what a client prints, as far as it matters here; see arena/CONTRACT.md.
type result struct {
	Calls      int64  `json:"calls"`
	Errors     int64  `json:"errors"`
	Wrong      int64  `json:"wrong"`
	FirstError string `json:"first_error"`
	Began      int64  `json:"began_unix_ns"`
	Ended      int64  `json:"ended_unix_ns"`
}

// rows measures what saturates the server, and then each load.
func (m *measurement) rows(ctx context.Context) (rows []row, busy bool, err error) {
	saturated, _, _, err := m.once(ctx, "--callers", "16")
	if err != nil {
		return nil, false, err
	}
	capacity := float64(saturated.Calls) / m.o.Seconds
	if capacity < 1 {
		return nil, false, fmt.Errorf("no call of 16 callers succeeded: %s", saturated.FirstError)
	}
	for _, load := range m.o.Loads {
		rate := load * capacity
		// As many callers as calls can be open until their deadline, so that each is made when it
		// is due.
		callers := int(rate*float64(m.o.Deadline)/1000*1.5) + 32
		var rounds []row
		for range m.o.Rounds {
			r, cpu, others, err := m.once(ctx, "--callers", strconv.Itoa(callers), "--rate", fmt.Sprintf("%.1f", rate), "--deadline-ms", strconv.Itoa(m.o.Deadline))
			if err != nil {
				return nil, false, err
			}
			if r.Wrong > 0 {
				return nil, false, fmt.Errorf("%d replies were wrong", r.Wrong)
			}
			busy = busy || others
			rounds = append(rounds, row{
				Handler: m.kind, Peer: m.peer.name, Load: load, Offered: rate,
				Goodput: float64(r.Calls) / m.o.Seconds, Failed: float64(r.Errors) / m.o.Seconds, CPU: cpu, Error: r.FirstError,
			})
		}
		slices.SortFunc(rounds, func(a, b row) int { return int(a.Goodput - b.Goodput) })
		rows = append(rows, rounds[len(rounds)/2])
	}
	return rows, busy, nil
}

// once runs a server and a client. cpu is how many processors the server used, and others says
// that other processes used more than 5 % of the machine.
func (m *measurement) once(ctx context.Context, load ...string) (r result, cpu float64, others bool, err error) {
	addr, err := freeAddr()
	if err != nil {
		return r, 0, false, err
	}
	one := append(os.Environ(), "GOMAXPROCS=1")
	server := exec.Command(m.program, slices.Concat([]string{"server", "--addr", addr}, m.flags, m.peer.server)...)
	server.Env = one // its log is left out: Kitex writes of panics when its clients leave
	if err := server.Start(); err != nil {
		return r, 0, false, err
	}
	defer func() {
		server.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(10*time.Second, func() { server.Process.Kill() })
		server.Wait()
		kill.Stop()
	}()
	if err := reachable(ctx, addr); err != nil {
		return r, 0, false, err
	}
	args := slices.Concat([]string{"client", "--addr", addr, "--conns", "4", "--warmup", fmt.Sprint(m.o.Warmup), "--seconds", fmt.Sprint(m.o.Seconds)}, load, m.peer.client)
	client := exec.CommandContext(ctx, m.program, args...)
	var out, said bytes.Buffer
	client.Env, client.Stdout, client.Stderr = one, &out, &said
	before, began := machine(), time.Now()
	usedBefore := used(server.Process.Pid)
	if err := client.Run(); err != nil {
		return r, 0, false, errors.Join(fmt.Errorf("client: %w: %s", err, bytes.TrimSpace(said.Bytes())), ctx.Err())
	}
	took, all := time.Since(began), machine()-before
	own := used(server.Process.Pid) - usedBefore
	both := own + client.ProcessState.UserTime() + client.ProcessState.SystemTime()
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, 0, false, fmt.Errorf("the client prints %.100q: %w", out.String(), err)
	}
	return r, own.Seconds() / took.Seconds(), all-both > took*time.Duration(processors)/20, nil
}

// freeAddr returns an address on which no process listens at the moment.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func reachable(ctx context.Context, addr string) error {
	for end := time.Now().Add(10 * time.Second); ; {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			return nc.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server does not listen: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
