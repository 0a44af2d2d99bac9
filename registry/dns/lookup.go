package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anser-rpc/anser/registry"
)

const (
	maxAliases = 8  // CNAME records in a row
	maxAsking  = 16 // concurrent queries for the targets of SRV records
)

// found is the result of a lookup.
type found struct {
	tiers   [][]registry.Instance // by priority; one for addresses
	ttl     time.Duration
	problem error // with some of the records; the others are used
}

// lookup finds the instances of a service.
func (r *Resolver) lookup(ctx context.Context, service string) (found, error) {
	conf, err := r.client.settings()
	if err != nil {
		return found{}, err
	}
	var none found
	l := lookup{client: &r.client, servers: conf.servers, service: service, port: r.pattern.port}
	for i, name := range conf.candidates(r.pattern.name(service)) {
		look := l.services
		if r.pattern.port != "" {
			look = l.addresses
		}
		f, err := look(ctx, name)
		if err != nil || len(f.tiers) > 0 || f.problem != nil {
			return f, err
		}
		if i == 0 || f.ttl < none.ttl {
			none = f // a negative result holds for the lowest TTL of all candidates
		}
	}
	return none, nil
}

// lookup is the state of one lookup.
type lookup struct {
	client  *client
	servers []string
	service string
	port    string
}

// addresses finds instances by A and AAAA records.
func (l *lookup) addresses(ctx context.Context, name string) (found, error) {
	list, ttl, err := l.hosts(ctx, name)
	if err != nil || len(list) == 0 {
		return found{ttl: ttl}, err
	}
	var tier []registry.Instance
	f := found{ttl: ttl}
	for _, ip := range list {
		tier = f.add(tier, registry.Instance{Service: l.service, Address: net.JoinHostPort(ip.String(), l.port)})
	}
	f.tiers = [][]registry.Instance{tier}
	return f, nil
}

// add appends the instance if it has a valid address.
func (f *found) add(tier []registry.Instance, in registry.Instance) []registry.Instance {
	if err := in.Validate(); err != nil {
		f.problem = errors.Join(f.problem, fmt.Errorf("a DNS record is left out: %w", err))
		return tier
	}
	return append(tier, in)
}

// hosts returns the addresses of a name.
func (l *lookup) hosts(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
	kinds := []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}
	if l.client.no6 {
		kinds = kinds[:1]
	} else if l.client.no4 {
		kinds = kinds[1:]
	}
	replies, errs := make([]reply, len(kinds)), make([]error, len(kinds))
	var wg sync.WaitGroup
	for i, kind := range kinds {
		wg.Go(func() { replies[i], errs[i] = l.records(ctx, name, kind) })
	}
	wg.Wait()
	if len(errs) == 2 && errs[0] == nil && errs[1] != nil {
		return nil, 0, fmt.Errorf("%w (if it fails for every AAAA query, use dns.IPv4Only)", errs[1])
	}
	if err := errors.Join(errs...); err != nil {
		return nil, 0, err
	}
	var list []netip.Addr
	ttl, empty := time.Duration(-1), time.Duration(-1)
	for _, r := range replies {
		if len(r.answers) == 0 {
			empty = shorter(empty, r.ttl)
			continue
		}
		ttl = shorter(ttl, r.ttl)
		for _, a := range r.answers {
			list = append(list, address(a))
		}
	}
	if len(list) == 0 {
		ttl = empty
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list), ttl, nil
}

// shorter returns the lower of two TTLs; a negative one means that none is known yet.
func shorter(a, b time.Duration) time.Duration {
	if a < 0 {
		return b
	}
	return min(a, b)
}

func address(r dnsmessage.Resource) netip.Addr {
	switch b := r.Body.(type) {
	case *dnsmessage.AResource:
		return netip.AddrFrom4(b.A)
	case *dnsmessage.AAAAResource:
		return netip.AddrFrom16(b.AAAA).Unmap()
	}
	return netip.Addr{}
}

// records queries the records of a type, and follows aliases. The answers are of that type only.
func (l *lookup) records(ctx context.Context, name string, kind dnsmessage.Type) (reply, error) {
	ttl := time.Duration(-1)
	for range maxAliases {
		r, err := l.client.ask(ctx, l.servers, name, kind)
		if err != nil {
			return r, err
		}
		ttl = shorter(ttl, r.ttl)
		last := final(name, r.answers)
		var mine []dnsmessage.Resource
		for _, a := range r.answers {
			if a.Header.Type == kind && strings.EqualFold(a.Header.Name.String(), last) {
				mine = append(mine, a)
			}
		}
		if len(mine) > 0 || strings.EqualFold(last, name) {
			r.answers, r.ttl = mine, ttl
			return r, nil
		}
		name = last // the server does not follow aliases itself
	}
	return reply{}, fmt.Errorf("DNS name %s: more than %d aliases in a row", name, maxAliases)
}

// final follows the aliases in an answer as far as they lead.
func final(name string, answers []dnsmessage.Resource) string {
	for range maxAliases {
		next := ""
		for _, a := range answers {
			if alias, ok := a.Body.(*dnsmessage.CNAMEResource); ok && strings.EqualFold(a.Header.Name.String(), name) {
				next = alias.CNAME.String()
			}
		}
		if next == "" {
			break
		}
		name = next
	}
	return name
}

// services finds instances by SRV records (RFC 2782).
func (l *lookup) services(ctx context.Context, name string) (found, error) {
	r, err := l.records(ctx, name, dnsmessage.TypeSRV)
	if err != nil {
		return found{}, err
	}
	records := make([]*dnsmessage.SRVResource, 0, len(r.answers))
	for _, a := range r.answers {
		if srv := a.Body.(*dnsmessage.SRVResource); srv.Target.String() != "." { // "." says that there is no such service
			records = append(records, srv)
		}
	}
	slices.SortFunc(records, func(a, b *dnsmessage.SRVResource) int { return int(a.Priority) - int(b.Priority) })
	hosts, ttl, err := l.targets(ctx, records, r.additionals)
	if err != nil {
		return found{}, err
	}
	f := found{ttl: shorter(ttl, r.ttl)}
	weighted := make(map[uint16]bool) // the priorities that use weights
	for _, srv := range records {
		weighted[srv.Priority] = weighted[srv.Priority] || srv.Weight > 0
	}
	seen := make(map[string]bool) // an address counts once, with its best priority
	for i, srv := range records {
		if i == 0 || srv.Priority != records[i-1].Priority {
			f.tiers = append(f.tiers, nil)
		}
		tier := &f.tiers[len(f.tiers)-1]
		for _, ip := range hosts[srv.Target.String()] {
			in := srvInstance(l.service, srv, ip, weighted[srv.Priority])
			if !seen[in.Address] {
				seen[in.Address] = true
				*tier = f.add(*tier, in)
			}
		}
	}
	f.tiers = slices.DeleteFunc(f.tiers, func(t []registry.Instance) bool { return len(t) == 0 })
	return f, nil
}

// srvInstance returns the instance of an SRV record at an address. Weights apply within a
// priority; 0 is a very small weight compared with others, and has no meaning if all are 0.
func srvInstance(service string, srv *dnsmessage.SRVResource, ip netip.Addr, weighted bool) registry.Instance {
	in := registry.Instance{
		Service: service, Address: net.JoinHostPort(ip.String(), strconv.Itoa(int(srv.Port))),
		Weight: int(srv.Weight),
		Tags: map[string]string{
			"host": strings.TrimSuffix(srv.Target.String(), "."), "priority": strconv.Itoa(int(srv.Priority)),
		},
	}
	if weighted {
		in.Weight = max(in.Weight, 1)
	}
	return in
}

// targets returns the addresses of the targets of SRV records, from the additional section if the
// server sent it, otherwise by further queries.
func (l *lookup) targets(ctx context.Context, records []*dnsmessage.SRVResource, additionals []dnsmessage.Resource) (hosts map[string][]netip.Addr, least time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hosts, least = make(map[string][]netip.Addr), -1
	sent := make(map[string][]dnsmessage.Resource)
	for _, a := range additionals {
		if ip := address(a); ip.Is4() && !l.client.no4 || ip.Is6() && !l.client.no6 {
			name := strings.ToLower(a.Header.Name.String())
			sent[name] = append(sent[name], a)
		}
	}
	var mu sync.Mutex // guards hosts, least and err
	var wg sync.WaitGroup
	turn := make(chan struct{}, maxAsking)
	for _, srv := range records {
		name := srv.Target.String()
		mu.Lock()
		_, known := hosts[name]
		hosts[name] = append(hosts[name], []netip.Addr{}...)
		mu.Unlock()
		if known {
			continue
		}
		if along := sent[strings.ToLower(name)]; len(along) > 0 {
			mu.Lock()
			for _, a := range along {
				hosts[name] = append(hosts[name], address(a))
			}
			least = shorter(least, ttl(along))
			mu.Unlock()
			continue
		}
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			list, ttl, e := l.hosts(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			if e != nil && err == nil {
				err = e
				cancel() // one failure invalidates the lookup: the list would lack instances
			}
			hosts[name], least = list, shorter(least, ttl)
		})
	}
	wg.Wait()
	if least < 0 {
		least = 1<<31*time.Second - time.Second
	}
	return hosts, least, err
}
