package doctor

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
)

// service examines the instances of a service.
type service struct {
	*findings
	config   *Config
	registry *target.Registry
	name     string

	instances []registry.Instance
	probes    []*probe
	reached   []bool
	leases    map[string]registry.Lease
}

func (s *service) examine(ctx context.Context) *Group {
	g := &Group{Name: "service " + plain(s.name)}
	if s.load(ctx) {
		s.readLeases(ctx)
		s.probe(ctx)
		s.reachability()
		s.standing()
		s.addresses()
		s.versions()
		s.contracts()
		s.rules(ctx)
	}
	g.Findings = s.list
	for _, p := range s.probes {
		g.Timings = append(g.Timings, p.timing)
	}
	return g
}

// load reads the instances, and what the registry says of records that it cannot read.
func (s *service) load(ctx context.Context) bool {
	ctx, cancel := s.config.within(ctx)
	defer cancel()
	listed := false
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var trouble error
	err := s.registry.Watch(watching, s.name, func(list []registry.Instance) {
		if !listed {
			listed, s.instances = true, registry.Clone(list)
		}
		stop()
	}, func(err error) { trouble = err })
	switch {
	case !listed && trouble != nil:
		s.add("registry.records", Fail, "correct or delete the record; without one, look at the registry", "the instances cannot be read: %v", trouble)
	case !listed:
		s.add("registry.records", Fail, "look at the registry", "the instances cannot be read: %v", err)
	case trouble != nil:
		s.add("registry.records", Warn, "correct or delete the record: clients leave the instance out", "%v", trouble)
	}
	if listed && len(s.instances) == 0 {
		s.add("instances", Fail, "start one, or correct the name of the service", "no instance is registered")
	}
	return listed
}

// readLeases reads the leases of the records, if the registry has any.
func (s *service) readLeases(ctx context.Context) {
	reader, ok := s.registry.Resolver.(registry.LeaseReader)
	if !ok {
		return
	}
	ctx, cancel := s.config.within(ctx)
	defer cancel()
	list, err := reader.Leases(ctx, s.name)
	if err != nil {
		s.note("lease", "the leases cannot be read: %v", err)
		return
	}
	s.leases = make(map[string]registry.Lease)
	for _, l := range list {
		s.leases[l.Key] = l
	}
}

// probe reaches all instances.
func (s *service) probe(ctx context.Context) {
	s.probes, s.reached = make([]*probe, len(s.instances)), make([]bool, len(s.instances))
	each(len(s.instances), func(i int) {
		in := &s.instances[i]
		e, err := parseEndpoint(in.Address)
		p := s.config.newProbe(e, in.Key())
		s.probes[i] = p
		p.timing.Subject = plain(in.Key() + " at " + in.Address)
		if err != nil {
			p.add("registry.records", Fail, "correct the record", "its address is not valid: %v", err)
			return
		}
		s.reached[i] = p.run(ctx)
	})
}

// reachability reports the instances that do not answer, and sums up the others.
func (s *service) reachability() {
	up, answered := 0, 0
	var least, most time.Duration
	for i, p := range s.probes {
		state := s.instances[i].State
		if state == registry.Up {
			up++
		}
		if s.reached[i] {
			if answered++; len(p.timing.Steps) > 0 {
				took := total(p.timing.Steps)
				if least == 0 || took < least {
					least = took
				}
				most = max(most, took)
			}
		}
		for _, f := range p.list {
			if f.Status == Fail && state != registry.Up {
				f.Status = Note // it wants no calls
			}
			switch {
			case f.Status == Pass:
				continue
			case !s.reached[i] && f.Status == Fail:
				f.Text = plain(p.endpoint.address) + " cannot be reached: " + f.Text
				f.Advice = s.advice(i, f.Advice)
			}
			s.list = append(s.list, f)
		}
	}
	switch {
	case len(s.probes) == 0:
	case answered == len(s.probes):
		s.pass("instances", "%s (%s to %s)", counted(answered, "instance answers", "instances answer"), table.Duration(least), table.Duration(most))
	case answered == 0 && up > 0:
		s.add("instances", Fail, "start one, or look at the network between", "none of the instances answers: every call fails")
	default:
		s.note("instances", "%d of %d instances answer", answered, len(s.probes))
	}
	if len(s.probes) > 0 && up == 0 {
		s.add("instances", Fail, "start an instance, or change the states in the rules or records", "all instances are draining or disabled: every call fails")
	}
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func total(steps []Step) (sum time.Duration) {
	for _, s := range steps {
		sum += time.Duration(s.Micros) * time.Microsecond
	}
	return sum
}

// advice says what to do about an instance that is registered and cannot be reached: its lease
// tells whether its process lives.
func (s *service) advice(i int, general string) string {
	key := s.instances[i].Key()
	l, known := s.leases[key]
	switch {
	case !known:
		return general
	case l.TTL == 0:
		return fmt.Sprintf("the record has no lease, so it stays until it is deleted: delete the record of %s if its process is gone", key)
	case l.Left < l.TTL/3:
		return fmt.Sprintf("its process is gone or hangs: the lease was not renewed for %s, and the record goes in %s", span(l.TTL-l.Left), span(l.Left))
	}
	return "its process lives, since it renews its lease: it announces an address that is not reachable from here, or a firewall is between; " + general
}

// standing reports leases of instances that answer, but are about to go.
func (s *service) standing() {
	for i := range s.instances {
		l, known := s.leases[s.instances[i].Key()]
		if known && s.reached[i] && l.TTL > 0 && l.Left < l.TTL/3 {
			s.on(i).add("lease", Warn, "look at the process and its way to the registry: its record goes when the lease ends",
				"the lease of %s was not renewed for %s", span(l.TTL), span(l.TTL-l.Left))
		}
	}
	var endless []string
	for _, l := range s.leases {
		if l.TTL == 0 {
			endless = append(endless, l.Key)
		}
	}
	slices.Sort(endless)
	if n := len(endless); n > 0 && s.registryIs("file") {
		s.note("lease", "records in a file do not expire: those of killed processes stay")
	} else if n > 0 {
		s.add("lease", Warn, "let the servers announce themselves, or delete these records when their processes end", "records without a lease, which stay when their processes end: %s", some(endless))
	}
}

// on returns findings about an instance, which are added to those of the service.
func (s *service) on(i int) *instanceFindings {
	return &instanceFindings{s.findings, s.instances[i].Key()}
}

type instanceFindings struct {
	of  *findings
	key string
}

func (f *instanceFindings) add(check string, st Status, advice, format string, args ...any) {
	own := findings{subject: f.key}
	own.add(check, st, advice, format, args...)
	f.of.list = append(f.of.list, own.list...)
}

func (s *service) registryIs(scheme string) bool {
	return strings.HasPrefix(s.config.Source.URL, scheme+"://")
}

// some lists texts, but not too many.
func some(list []string) string {
	const named = 5
	if len(list) <= named {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:named], ", "), len(list)-named)
}

// addresses reports addresses that mean another machine elsewhere, and addresses that occur twice.
func (s *service) addresses() {
	far := false
	if u, err := url.Parse(s.config.Source.URL); err == nil && u.Host != "" {
		_, servers, _ := target.Servers(s.config.Source.URL)
		far = !slices.ContainsFunc(servers, func(a string) bool {
			e, err := parseEndpoint(a)
			return err != nil || e.local()
		}) && len(servers) > 0
	}
	keys := make(map[string][]string)
	for i := range s.instances {
		in := &s.instances[i]
		keys[in.Address] = append(keys[in.Address], in.Key())
		if e, err := parseEndpoint(in.Address); far && err == nil && e.local() {
			s.on(i).add("address", Warn, "announce an address that other machines can dial: the Address of anser.Announce", "%s means the machine of each client", in.Address)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(keys)) {
		if twice := keys[address]; len(twice) > 1 {
			s.add("address", Warn, "delete the record of the process that is gone: clients send this address the calls of all of them", "%s is registered as %s", address, some(twice))
		}
	}
}

// versions reports several versions side by side.
func (s *service) versions() {
	count := make(map[string]int)
	for i := range s.instances {
		if s.instances[i].State == registry.Up {
			count[s.instances[i].Version]++
		}
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(count)) {
		name := "version " + v
		if v == "" {
			name = "no version"
		}
		parts = append(parts, fmt.Sprintf("%d × %s", count[v], name))
	}
	switch {
	case len(parts) > 1:
		s.add("versions", Warn, "complete or revert the rollout, unless it is still going on", "instances of several versions are up: %s", strings.Join(parts, ", "))
	case len(parts) == 1 && count[""] == 0:
		s.pass("versions", "one version: %s", parts[0])
	}
}

// contracts reports methods that are not the same in all instances.
func (s *service) contracts() {
	tags, served := make(map[string]map[string]string), make(map[string]map[string]string)
	everywhere, described := make(map[string]int), 0
	for i, p := range s.probes {
		in := &s.instances[i]
		tags[in.Key()] = target.Fingerprints(in)
		if !p.described {
			continue
		}
		described++
		served[in.Key()] = make(map[string]string)
		for _, m := range p.methods {
			everywhere[m.Name]++
			if m.Fingerprint != "" {
				served[in.Key()][m.Name] = m.Fingerprint
			}
		}
		s.stale(i, tags[in.Key()], served[in.Key()])
	}
	for key := range tags {
		maps.Copy(tags[key], served[key]) // what a server says counts
	}
	drift := target.DriftOf(tags)
	for _, d := range drift {
		s.add("contracts", Warn, `compare them with "anser breaking OLD NEW", which says what the difference breaks`, "the contracts of %s differ: %s", d.Method, &d)
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(everywhere)) {
		if everywhere[name] < described {
			missing = append(missing, fmt.Sprintf("%s (%d of %d)", name, everywhere[name], described))
		}
	}
	if len(missing) > 0 {
		s.add("contracts", Warn, "complete the rollout, or send these methods to the instances that have them by a rule", "methods that only some instances have: %s", some(missing))
	}
	if described > 1 && len(drift)+len(missing) == 0 {
		s.pass("contracts", "the %d methods are the same in %d instances", len(everywhere), described)
	}
}

// stale reports an instance whose record has other fingerprints than its server: another process
// is at the address.
func (s *service) stale(i int, tags, served map[string]string) {
	for _, method := range slices.Sorted(maps.Keys(tags)) {
		if now, there := served[method]; there && now != tags[method] {
			s.on(i).add("contracts", Warn, "another process has taken the address, or the record is an old one: restart the instance, or delete the record",
				"the record says another contract of %s than the server", method)
			return
		}
	}
}

// methodNames returns the names that the servers describe, and whether all of them did.
func (s *service) methodNames() (names []string, complete bool) {
	complete = len(s.probes) > 0
	seen := make(map[string]bool)
	for i, p := range s.probes {
		if s.instances[i].State != registry.Disabled && !p.described {
			complete = false
		}
		for _, m := range p.methods {
			for _, name := range append([]string{m.Name}, m.Aliases...) {
				seen[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen)), complete
}
