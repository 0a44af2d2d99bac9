// Package hosts makes two hosts out of one machine: two network namespaces with a cable between
// them.
package hosts

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/internal/netns"
)

// The two hosts. The addresses are of the range that RFC 2544 keeps for measurements of networks.
const (
	Server = "arena-server"
	Client = "arena-client"

	ServerIP = "198.18.0.1"
	ClientIP = "198.18.0.2"

	// Interface is the name of the cable's end, in both.
	Interface = "arena0"

	prefix = "/30"
)

// ErrNotRoot says that namespaces cannot be made.
var ErrNotRoot = netns.ErrNotRoot

// Exist reports whether both hosts are there and connected.
func Exist(ctx context.Context) bool {
	for host, address := range map[string]string{Server: ServerIP, Client: ClientIP} {
		said, err := netns.IP(ctx, "-n", host, "-o", "-4", "addr", "show", "dev", Interface, "up")
		if err != nil || !strings.Contains(said, address+prefix) {
			return false
		}
	}
	return true
}

// Up makes the hosts unless they are there, and reports whether it did.
func Up(ctx context.Context) (made bool, err error) {
	if err := netns.Check(); err != nil {
		return false, err
	}
	if Exist(ctx) {
		return false, nil
	}
	if err := remove(ctx); err != nil { // what an interrupted run has left
		return false, err
	}
	steps := [][]string{
		{"netns", "add", Server},
		{"netns", "add", Client},
		{"link", "add", Interface, "netns", Server, "type", "veth", "peer", "name", Interface, "netns", Client},
	}
	for host, address := range map[string]string{Server: ServerIP, Client: ClientIP} {
		steps = append(steps,
			[]string{"-n", host, "addr", "add", address + prefix, "dev", Interface},
			[]string{"-n", host, "link", "set", Interface, "up"},
			[]string{"-n", host, "link", "set", "lo", "up"},
		)
	}
	for _, step := range steps {
		if _, err := netns.IP(ctx, step...); err != nil {
			return false, errors.Join(err, remove(context.WithoutCancel(ctx)))
		}
	}
	return true, nil
}

// Down removes the hosts. It is no error when there are none.
func Down(ctx context.Context) error {
	if err := netns.Check(); err != nil {
		return err
	}
	return remove(ctx)
}

func remove(ctx context.Context) error {
	names, err := netns.List(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range []string{Server, Client} {
		if slices.Contains(names, name) {
			_, err := netns.IP(ctx, "netns", "del", name)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Inside returns the command that runs another one on a host: see [netns.Inside].
func Inside(host string, command []string) []string { return netns.Inside(host, command) }
