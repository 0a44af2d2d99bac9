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

// The addresses are of the range that RFC 2544 keeps for measurements of networks. Every network has the same:
// none of them is seen from outside.
const (
	subnet  = "198.18.0."
	prefix  = "/24"
	maxHost = 250
)

// device is the name of a host's end of its cable.
const device = "eth0"

// Network is a switch with hosts. The switch is a namespace too, so that the machine's own network does not
// change. Methods are not safe for concurrent use, but for Drop, Pass, Lose, Keep and IPTables.
type Network struct {
	name  string
	hosts []Host
}

// Host is one of a network. The zero Host is the machine itself.
type Host struct {
	Name string // of its namespace
	IP   string
}

// New makes a network without hosts. Its namespaces have names that begin with name and the number of this
// process; those of processes that ended without Close are removed. There may be several with one name.
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

// sweep removes the namespaces of processes that are gone.
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

// remove removes a namespace of a process that is gone. Two processes may sweep at the same time: a namespace that
// the other one has removed is no error.
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

// Add makes a host and connects it.
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

// Close removes the network. Processes on its hosts have to be gone, or keep them. It may be called more than once.
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

// Drop lets nothing through any more that one host sends to another, without a word to either, until Pass. The
// other direction stays.
func Drop(ctx context.Context, from, to Host) error {
	return IPTables(ctx, to, "-A", "INPUT", "-s", from.IP, "-j", "DROP")
}

// Pass takes one Drop back.
func Pass(ctx context.Context, from, to Host) error {
	return IPTables(ctx, to, "-D", "INPUT", "-s", from.IP, "-j", "DROP")
}

// Lose drops a share, from 0 to 1, of the packets that one host sends to another, each by chance, until Keep with
// the same share. The other direction stays.
func Lose(ctx context.Context, from, to Host, share float64) error {
	return IPTables(ctx, to, loss("-A", from, share)...)
}

// Keep takes one Lose back.
func Keep(ctx context.Context, from, to Host, share float64) error {
	return IPTables(ctx, to, loss("-D", from, share)...)
}

func loss(do string, from Host, share float64) []string {
	chance := strconv.FormatFloat(share, 'f', 6, 64)
	return []string{do, "INPUT", "-s", from.IP, "-m", "statistic", "--mode", "random", "--probability", chance, "-j", "DROP"}
}

// CheckTables tells whether packets can be dropped here.
func CheckTables() error {
	if err := Check(); err != nil {
		return err
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		return errors.New("the program iptables is not there: apt-get install -y --no-install-recommends iptables")
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
