package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/anser-rpc/anser/registry/etcd"
)

// clusterSize is the number of members of a Cluster: the smallest that survives the loss of one.
const clusterSize = 3

// Cluster runs three members in one process, to try out the loss of a member. It is no safer than
// a single member: the members share the process and the disk. All methods are safe for concurrent
// use.
type Cluster struct {
	configs []Config

	mu         sync.Mutex // guards the fields below
	members    []*Member  // nil if stopped
	registries []*etcd.Registry
	closed     bool
}

// StartCluster starts three members on loopback and waits until they serve, which takes about
// three seconds. It uses the fields Dir, Logger and MinFree of cfg. The ports are stored in Dir,
// so the same Dir restores the same cluster.
func StartCluster(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.Dir == "" {
		return nil, errors.New("embedded registry: no directory for the cluster's data: set Dir")
	}
	if cfg.Listen != "" || cfg.Advertise != "" || cfg.Peers != nil || cfg.Name != "" || cfg.PeerListen != "" || cfg.TLS != nil {
		return nil, errors.New("embedded registry: a cluster in one process has its own addresses: set only Dir, Logger and MinFree")
	}
	ports, err := clusterPorts(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("embedded registry: %w", err)
	}
	c := &Cluster{members: make([]*Member, clusterSize)}
	peers := make(map[string]string)
	for i, p := range ports {
		name := fmt.Sprintf("m%d", i+1)
		peers[name] = p.Peer
		member := cfg
		member.local = true
		member.Dir, member.Name, member.Peers, member.Listen = filepath.Join(cfg.Dir, name), name, peers, p.Client
		c.configs = append(c.configs, member)
	}
	var wg sync.WaitGroup
	errs := make([]error, clusterSize)
	for i := range c.configs {
		wg.Go(func() { c.members[i], errs[i] = Start(ctx, c.configs[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Endpoints returns the addresses of all members, running or not.
func (c *Cluster) Endpoints() []string {
	var all []string
	for _, cfg := range c.configs {
		all = append(all, cfg.Listen)
	}
	return all
}

// Registry returns a registry on the cluster, which uses the members that run. Closing the cluster
// also closes the registry.
func (c *Cluster) Registry(opts ...etcd.Option) (*etcd.Registry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	r, err := dial(c.Endpoints(), Config{}, opts)
	if err == nil {
		c.registries = append(c.registries, r)
	}
	return r, err
}

// StopMember stops member i, from 0 to 2, if it runs.
func (c *Cluster) StopMember(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkLocked(i); err != nil || c.members[i] == nil {
		return err
	}
	m := c.members[i]
	c.members[i] = nil
	return m.Close()
}

// StartMember restarts member i after StopMember, and waits until it serves.
func (c *Cluster) StartMember(ctx context.Context, i int) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkLocked(i); err != nil || c.members[i] != nil {
		return err
	}
	c.members[i], err = Start(ctx, c.configs[i])
	return err
}

func (c *Cluster) checkLocked(i int) error {
	if c.closed {
		return errClosed
	}
	if i < 0 || i >= clusterSize {
		return fmt.Errorf("the embedded cluster has no member %d: use 0 to %d", i, clusterSize-1)
	}
	return nil
}

// Close closes the registries of the cluster and stops all members; the data stays. The last
// connections between the members end up to five seconds later. It may be called more than once.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	errs := closeAll(c.registries)
	// The leader stops last: it transfers its leadership first, and would wait seconds for a
	// member that stops at the same time.
	followers := func(m *Member) bool { return !m.leads() }
	return errors.Join(append(errs, c.stopLocked(followers), c.stopLocked(nil))...)
}

// stopLocked concurrently stops the members for which chosen is true, or all if it is nil.
func (c *Cluster) stopLocked(chosen func(*Member) bool) error {
	var wg sync.WaitGroup
	errs := make([]error, clusterSize)
	for i, m := range c.members {
		if m != nil && (chosen == nil || chosen(m)) {
			c.members[i] = nil
			wg.Go(func() { errs[i] = m.Close() })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// memberPorts are the addresses of one member of a Cluster.
type memberPorts struct {
	Client string `json:"client"`
	Peer   string `json:"peer"`
}

// clusterPorts returns the addresses stored in dir, or chooses new ones and stores them there.
func clusterPorts(dir string) ([]memberPorts, error) {
	path := filepath.Join(dir, "cluster.json")
	data, err := os.ReadFile(path)
	if err == nil {
		var ports []memberPorts
		if err := json.Unmarshal(data, &ports); err != nil || len(ports) != clusterSize {
			return nil, fmt.Errorf("%s does not hold the addresses of %d members: repair it, or delete the whole directory", path, clusterSize)
		}
		return ports, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ports, err := freePorts()
	if err != nil {
		return nil, err
	}
	if data, err = json.Marshal(ports); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return ports, os.WriteFile(path, append(data, '\n'), 0o600)
}

// freePorts returns addresses that are free now, below the system's range of ephemeral ports.
func freePorts() (ports []memberPorts, err error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	take := func() string {
		for range 1000 {
			l, listenErr := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
			if listenErr == nil {
				held = append(held, l)
				return l.Addr().String()
			}
			err = listenErr
		}
		return ""
	}
	for range clusterSize {
		ports = append(ports, memberPorts{Client: take(), Peer: take()})
	}
	if len(held) < 2*clusterSize {
		return nil, fmt.Errorf("no free ports on loopback: %w", err)
	}
	return ports, nil
}
