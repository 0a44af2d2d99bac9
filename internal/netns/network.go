package netns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// The addresses are in the range that RFC 2544 reserves for network measurements. Every network
// has the same ones: none is visible from outside.
const (
	subnet  = "198.18.0."
	prefix  = "/24"
	maxHost = 250
)

// device is the name of a host's end of its cable.
const device = "eth0"

// Network is a switch with hosts. The switch is also a namespace, so that the machine's own
// network does not change. Methods are not safe for concurrent use, except Drop, Pass, Lose, Keep
// and IPTables.
type Network struct {
	name  string
	hosts []Host
}

// Host is a host of a network. The zero Host is the machine itself.
type Host struct {
	Name string // of its namespace
	IP   string
}

// New creates a network without hosts. The names of its namespaces begin with name and the ID of
// this process; those of processes that ended without Close are removed. There may be several
// networks with the same name.
func New(ctx context.Context, name string) (*Network, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	if err := sweep(ctx, name); err != nil {
		return nil, err
	}
	n := &Network{name: fmt.Sprintf("%s-%d-%08x", name, os.Getpid(), rand.Uint32())}
	for _, step := range [][]string{
		{"netns", "add", n.hub()},
		{"-n", n.hub(), "link", "add", "br0", "type", "bridge"},
		{"-n", n.hub(), "link", "set", "br0", "up"},
	} {
		if _, err := IP(ctx, step...); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

func (n *Network) hub() string { return n.name + "-switch" }

// sweep removes the namespaces of processes that have ended.
func sweep(ctx context.Context, name string) error {
	names, err := List(ctx)
	if err != nil {
		return err
	}
	for _, space := range names {
		rest, ours := strings.CutPrefix(space, name+"-")
		pid, _, _ := strings.Cut(rest, "-")
		if _, err := strconv.Atoi(pid); !ours || err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + pid); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := remove(ctx, space); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a namespace of a process that has ended. Two processes may sweep at the same
// time: a namespace that was removed meanwhile is not an error.
func remove(ctx context.Context, space string) error {
	_, failed := IP(ctx, "netns", "del", space)
	if failed == nil {
		return nil
	}
	names, err := List(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	if slices.Contains(names, space) {
		return failed
	}
	return nil
}

// Add creates a host and connects it.
func (n *Network) Add(ctx context.Context, name string) (Host, error) {
	number := len(n.hosts) + 1
	if number > maxHost {
		return Host{}, fmt.Errorf("a network has %d hosts at most", maxHost)
	}
	h := Host{n.name + "-" + name, subnet + strconv.Itoa(number)}
	port := "port" + strconv.Itoa(number)
	if _, err := IP(ctx, "netns", "add", h.Name); err != nil {
		return Host{}, err
	}
	n.hosts = append(n.hosts, h) // so that Close removes it
	for _, step := range [][]string{
		{"link", "add", device, "netns", h.Name, "type", "veth", "peer", "name", port, "netns", n.hub()},
		{"-n", n.hub(), "link", "set", port, "master", "br0"},
		{"-n", n.hub(), "link", "set", port, "up"},
		{"-n", h.Name, "addr", "add", h.IP + prefix, "dev", device},
		{"-n", h.Name, "link", "set", device, "up"},
		{"-n", h.Name, "link", "set", "lo", "up"},
	} {
		if _, err := IP(ctx, step...); err != nil {
			return Host{}, err
		}
	}
	return h, nil
}

// Close removes the network. Its processes must have ended, or the namespaces stay. It may be
// called more than once.
func (n *Network) Close() error {
	ctx := context.Background()
	names, err := List(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		if strings.HasPrefix(name, n.name+"-") {
			_, err := IP(ctx, "netns", "del", name)
			failed = append(failed, err)
		}
	}
	n.hosts = nil
	return errors.Join(failed...)
}

// Drop silently drops all packets from one host to another, until Pass. The other direction is not
// affected.
func Drop(ctx context.Context, from, to Host) error {
	return IPTables(ctx, to, "-A", "INPUT", "-s", from.IP, "-j", "DROP")
}

// Pass reverts one Drop.
func Pass(ctx context.Context, from, to Host) error {
	return IPTables(ctx, to, "-D", "INPUT", "-s", from.IP, "-j", "DROP")
}

// Lose drops a share, from 0 to 1, of the packets from one host to another, at random, until Keep
// with the same share. The other direction is not affected.
func Lose(ctx context.Context, from, to Host, share float64) error {
	return IPTables(ctx, to, loss("-A", from, share)...)
}

// Keep reverts one Lose.
func Keep(ctx context.Context, from, to Host, share float64) error {
	return IPTables(ctx, to, loss("-D", from, share)...)
}

func loss(do string, from Host, share float64) []string {
	chance := strconv.FormatFloat(share, 'f', 6, 64)
	return []string{do, "INPUT", "-s", from.IP, "-m", "statistic", "--mode", "random", "--probability", chance, "-j", "DROP"}
}

// CheckTables reports whether packets can be dropped here.
func CheckTables() error {
	if err := Check(); err != nil {
		return err
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		return errors.New("the program iptables is missing: apt-get install -y --no-install-recommends iptables")
	}
	return nil
}

// IPTables changes the rules of a host.
func IPTables(ctx context.Context, h Host, args ...string) error {
	if err := CheckTables(); err != nil {
		return err
	}
	command := Inside(h.Name, append([]string{"iptables", "-w", "10"}, args...))
	_, err := run(ctx, command[0], command[1:]...)
	return err
}
