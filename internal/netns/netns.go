// Package netns simulates several hosts on one machine: network namespaces with virtual cables
// between them. It runs the program ip, and iptables to drop packets. It requires root, on Linux.
package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ErrNotRoot means that namespaces cannot be created.
var ErrNotRoot = errors.New("hosts are network namespaces, which only root can create: run it with sudo")

// Check reports what is missing before anything is created.
func Check() error {
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return errors.New("the program ip is missing: apt-get install -y --no-install-recommends iproute2")
	}
	return nil
}

// Inside returns the command that runs another one on a host. The process stays the same: ip
// replaces itself by the command.
func Inside(host string, command []string) []string {
	return append([]string{"ip", "netns", "exec", host}, command...)
}

// IP runs the program ip and returns its output.
func IP(ctx context.Context, args ...string) (string, error) { return run(ctx, "ip", args...) }

// List returns the names of all namespaces.
func List(ctx context.Context) ([]string, error) {
	said, err := IP(ctx, "netns", "list")
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(said) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

func run(ctx context.Context, program string, args ...string) (string, error) {
	said, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(said)))
	}
	return string(said), nil
}
