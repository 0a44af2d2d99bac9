package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// clusterOptions change what a cluster is.
type clusterOptions struct {
	servers, client config // what differs from the defaults
	registry        config
	proxied         bool          // the client reaches the servers through a proxy
	lastProxied     bool          // it does so with the last one only
	ttl             time.Duration // of leases; 0: so long that they run out within a phase
}

// cluster is a registry, three servers and clients. The clients share a host, the others have one
// each.
type cluster struct {
	*world
	registry *process
	servers  []*process
	gateways []*process // that the client calls; none: it calls the servers
	client   *process   // rows ask it for the client's view
	others   []*process // make the load together with client
	proxy    *process   // nil: none
	ttl      time.Duration
	parts    []part   // of the load, one per process that takes part
	files    []string // of the calls that client and others have made
}

const serverCount = 3

// peerPause is the pause of clients between two restarts if no registry reports that a server is
// back.
const peerPause = 2 * time.Second

// cluster starts one, and waits until the client has found all servers.
func (w *world) cluster(o clusterOptions) (*cluster, error) {
	c, err := w.newCluster(o)
	if err != nil {
		return nil, err
	}
	if w.o.peer != "" {
		return c, c.startPeers(o)
	}
	if err := c.startServers(o); err != nil {
		return nil, err
	}
	if c.client, err = c.newClient("client", o.client); err != nil {
		return nil, err
	}
	if err := c.enlist(); err != nil {
		return nil, err
	}
	_, err = w.until("the client knows all servers", func() (bool, error) {
		st, err := c.status()
		return len(st.Instances) == serverCount, err
	})
	return c, err
}

// newCluster returns one without processes.
func (w *world) newCluster(o clusterOptions) (*cluster, error) {
	c := &cluster{world: w, ttl: 10 * time.Second}
	if w.o.phase() < 30*time.Second {
		c.ttl = 3 * time.Second // so that leases run out within a phase
	}
	c.ttl = cmp.Or(o.ttl, c.ttl)
	_, err := w.folder("books")
	return c, err
}

// startServers starts the registry and the servers.
func (c *cluster) startServers(o clusterOptions) (err error) {
	if o.registry.Dir == "" {
		if o.registry.Dir, err = c.folder("registry"); err != nil {
			return err
		}
	}
	if c.registry, err = c.start("registry", "registry", o.registry); err != nil {
		return err
	}
	if o.proxied || o.lastProxied {
		if c.proxy, err = c.startProxy(); err != nil {
			return err
		}
	}
	for i := range serverCount {
		p, err := c.newServer(fmt.Sprintf("server%d", i+1), o.servers, o.proxied || o.lastProxied && i == serverCount-1)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, p)
	}
	return nil
}

// newServer starts a server that the registry lists.
func (c *cluster) newServer(name string, s config, proxied bool) (*process, error) {
	s.Stall = c.o.Stall
	s.Registry, s.TTL, s.Dir = c.registry.config.Listen, c.ttl, c.books()
	if proxied {
		if err := c.announce(name, &s); err != nil {
			return nil, err
		}
	}
	return c.start("server", name, s)
}

// announce chooses the address of the server of that name. With a proxy others reach it under
// another one.
func (c *cluster) announce(name string, s *config) error {
	if c.proxy == nil {
		return nil
	}
	h, err := c.host(name)
	if err != nil {
		return err
	}
	s.Listen = c.address(h)
	return c.proxy.ask("forward", s.Listen, &s.Announce)
}

// newClient starts a client that finds the servers through the registry.
func (c *cluster) newClient(name string, o config) (p *process, err error) {
	o.Registry = c.registry.config.Listen
	o.Target = "etcd://" + o.Registry + "/" + service
	o.Stall = c.o.Stall
	if o.Timeout == 0 {
		o.Timeout = c.o.Timeout
	}
	if o.Dir, err = c.folder("snapshots"); err != nil {
		return nil, err
	}
	return c.start("client", name, o)
}

// status returns the client's view.
func (c *cluster) status() (st status, err error) {
	err = c.client.ask("status", nil, &st)
	return st, err
}

// listed waits until the registry has exactly one record of each server, and returns how long that
// took.
func (c *cluster) listed() (time.Duration, error) {
	if c.registry == nil {
		return 0, c.sleep(peerPause) // for connections to come back
	}
	var want []string
	for _, p := range c.servers {
		want = append(want, p.config.Listen)
	}
	slices.Sort(want)
	return c.until(fmt.Sprintf("the registry lists %v", want), func() (bool, error) {
		var l listed
		if err := c.client.ask("list", nil, &l); err != nil || !l.Current || !slices.Equal(l.Addresses, want) {
			return false, err
		}
		// A watch that was cut off may not know it yet.
		n := 0
		err := c.client.ask("get", nil, &n)
		return n == len(want), err
	})
}
