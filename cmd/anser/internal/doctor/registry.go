package doctor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

// slow is how long a registry may take for a list before that is reported.
const slow = 500 * time.Millisecond

// System examines the registry of the configuration, and the services in it: all of them, or the
// named ones. It calls found with each group when it is complete. The error means that there is
// nothing to examine, such as a registry whose URL is wrong. It returns the services.
func (c *Config) System(ctx context.Context, names []string, found func(*Group)) ([]Service, error) {
	kind, servers, err := target.Servers(c.Source.URL)
	if err != nil {
		return nil, err
	}
	reg, err := target.Open(c.Source)
	if err != nil {
		return nil, err
	}
	defer reg.Close()
	g := &Group{Name: "registry " + plain(c.Source.URL)}
	f := new(findings)
	if up := c.checkServers(ctx, g, kind, servers); len(servers) == 0 || up > 0 {
		names = c.list(ctx, f, reg, names)
	} else {
		names = nil // each of them would wait for the registry
	}
	g.Findings = append(g.Findings, f.list...)
	found(g)
	var services []Service
	for _, name := range names {
		s := &service{findings: new(findings), config: c, registry: reg, name: name}
		found(s.examine(ctx))
		methods, _ := s.methodNames()
		services = append(services, Service{name, methods})
	}
	return services, nil
}

// checkServers examines the servers of the registry, and returns how many of them work.
func (c *Config) checkServers(ctx context.Context, g *Group, kind string, servers []string) (up int) {
	own := &Config{TLS: c.Source.Access.TLS, Timeout: c.Timeout, Resolver: c.Resolver}
	probes, works := make([]*probe, len(servers)), make([]bool, len(servers))
	each(len(servers), func(i int) {
		host, port, _ := net.SplitHostPort(servers[i]) // target.Open has checked the addresses
		p := own.newProbe(endpoint{address: servers[i], scheme: kind, host: host, port: port}, servers[i])
		probes[i] = p
		works[i] = p.reach(ctx) && (!p.tls || p.checkTLS(ctx) && p.trusted) && p.registryHealth(ctx, kind)
	})
	for i, p := range probes {
		g.Findings, g.Timings = append(g.Findings, p.list...), append(g.Timings, p.timing)
		if works[i] {
			up++
		}
	}
	f := new(findings)
	if n := len(servers); n > 1 && up <= n/2 {
		f.add("registry.quorum", Fail, "start the others: most of them must run for a change to be stored", "%d of %d servers of the registry work", up, n)
	}
	g.Findings = append(g.Findings, f.list...)
	return up
}

// registryHealth asks a server of a registry for its state, and reports whether it works.
func (p *probe) registryHealth(ctx context.Context, kind string) bool {
	switch kind {
	case "etcd":
		return p.etcdHealth(ctx)
	case "consul":
		return p.consulHealth(ctx)
	case "zookeeper":
		return p.zookeeperHealth(ctx)
	case "nacos":
		if g, err := p.fetch(ctx, http1, http.MethodGet, "/nacos/", "", ""); err == nil {
			clockOf(g).report(&p.findings, "the registry")
		}
	}
	return true
}

func (p *probe) etcdHealth(ctx context.Context) bool {
	g, err := p.fetch(ctx, http1, http.MethodGet, "/health", "", "")
	if err != nil {
		p.add("registry", Fail, "check that it is etcd, and whether it requires TLS or a certificate: see --registry-tls and the related flags",
			"the server does not say its health: %v", err)
		return false
	}
	clockOf(g).report(&p.findings, "the registry")
	var said struct{ Health, Reason string }
	if json.Unmarshal(g.body, &said) != nil {
		p.note("registry", "the server does not say its health (status %d)", g.status)
		return true
	}
	if said.Health != "true" {
		p.add("registry", Fail, "look at the alarms and the members with etcdctl: a full disk and the loss of most members have this effect", "the server is not healthy: %s", said.Reason)
		return false
	}
	p.pass("registry", "the server is healthy")
	return true
}

func (p *probe) consulHealth(ctx context.Context) bool {
	g, err := p.fetch(ctx, http1, http.MethodGet, "/v1/status/leader", "", "")
	if err != nil {
		p.add("registry", Fail, "check that it is Consul, and whether it requires TLS", "the agent does not answer: %v", err)
		return false
	}
	clockOf(g).report(&p.findings, "the registry")
	if g.status == http.StatusOK && len(bytes.Trim(g.body, "\" \n")) == 0 {
		p.add("registry", Fail, "start most of the servers of Consul", "the cluster has no leader, so nothing can be changed")
		return false
	}
	p.pass("registry", "the agent answers")
	return true
}

// zookeeperHealth sends the command "srvr", which servers allow unless they are configured
// otherwise.
func (p *probe) zookeeperHealth(ctx context.Context) bool {
	nc, err := p.open(ctx)
	if err != nil {
		return false
	}
	defer nc.Close()
	io.WriteString(nc, "srvr")
	for lines := bufio.NewScanner(io.LimitReader(nc, mostBody)); lines.Scan(); {
		if strings.Contains(lines.Text(), "not currently serving requests") {
			p.add("registry", Fail, "start most of the servers of ZooKeeper", "the server belongs to no majority, so it does not serve")
			return false
		}
		if mode, ok := strings.CutPrefix(lines.Text(), "Mode: "); ok {
			p.pass("registry", "the server serves as %s", mode)
		}
	}
	return true
}

// list measures the registry, and returns the services to examine.
func (c *Config) list(ctx context.Context, f *findings, reg *target.Registry, names []string) []string {
	if !reg.CanList() {
		if len(names) == 0 {
			f.add("registry", Warn, "name services", "the registry cannot list services")
		}
		return names
	}
	known, took, err := c.services(ctx, reg)
	if err == nil {
		known, took, err = c.services(ctx, reg) // over the connection that the first one made
	}
	switch {
	case err != nil:
		f.add("registry", Fail, "check that it runs, and whether it requires TLS, a user or a token: see --registry-tls and the related flags",
			"the registry does not list its services: %v", err)
		return nil
	case took > slow:
		f.add("registry.latency", Warn, "look at the load and the disks of the registry: clients learn late of instances", "a list of %s took %s", counted(len(known), "service", "services"), table.Duration(took))
	default:
		f.pass("registry.latency", "lists %s (%s)", counted(len(known), "service", "services"), table.Duration(took))
	}
	if len(names) == 0 {
		if len(known) == 0 {
			f.add("registry", Warn, "start servers with anser.Announce, or look at the prefix in the registry's URL", "no service is registered")
		}
		return known
	}
	return names
}

func (c *Config) services(ctx context.Context, reg *target.Registry) ([]string, time.Duration, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	began := time.Now()
	names, err := reg.Services(ctx)
	return names, time.Since(began), err
}
