package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/wire"
)

func init() { roles["plain"] = runPlain }

// runPlain is the role of a server without a registry, which is short of something: of file descriptors, if
// config.Calls says how many it may have, and of memory, if config.Dir is the folder of a cgroup.
func runPlain(c config) error {
	if c.Dir != "" {
		if err := os.WriteFile(c.Dir+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return err
		}
	}
	if c.Calls > 0 {
		n := syscall.Rlimit{Cur: uint64(c.Calls), Max: uint64(c.Calls)}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &n); err != nil {
			return err
		}
	}
	opts := []anser.ServerOption{anser.Logger(slog.New(slog.NewTextHandler(io.Discard, nil)))}
	if c.Ledger != "" { // a number of bytes, where there is no cgroup
		n, err := strconv.Atoi(c.Ledger)
		if err != nil {
			return err
		}
		opts = append(opts, anser.MaxMemory(n))
	}
	s := anser.NewServer(opts...)
	err := errors.Join(
		anser.Handle(s, "Plain.Echo", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil }),
		anser.Handle(s, "Plain.Slow", func(_ context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(100 * time.Millisecond)
			return in, nil
		}),
		anser.Handle(s, "Plain.Pile", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(100 * time.Millisecond)
			for s.Stats().LimitsHit["MaxMemory"] == 0 && ctx.Err() == nil { // on a slow machine they would not pile up
				time.Sleep(100 * time.Millisecond)
			}
			return in, nil
		}),
	)
	if err != nil {
		return err
	}
	go func() {
		for len(s.Addrs()) == 0 {
			time.Sleep(time.Millisecond)
		}
		ready()
	}()
	return s.ListenAndServe(c.Address)
}

// apart makes a client whose connections are shared with no other.
func apart(t *testing.T, address string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	return dial(t, address, append([]anser.DialOption{anser.NoSnapshot(), anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext)}, opts...)...)
}

// echo makes a call with n bytes.
func echo(ctx context.Context, c *anser.Client, method string, n int, opts ...anser.CallOption) error {
	in := make([]byte, n)
	out, err := anser.Call[[]byte](ctx, c, method, &in, opts...)
	if err == nil && len(*out) != n {
		return fmt.Errorf("%d bytes came back of %d", len(*out), n)
	}
	return err
}

// occupy opens a connection that has shaken hands, or fails.
func occupy(address string) (net.Conn, error) {
	nc, err := net.DialTimeout("tcp", address, bound)
	if err != nil {
		return nil, err
	}
	_, err = nc.Write(wire.AppendSettings(wire.AppendPreface(nil), wire.DefaultSettings()))
	return nc, err
}

// processorTime is the time that a process has spent on processors. It is known on Linux only.
func (p *process) processorTime() (time.Duration, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, true
}
