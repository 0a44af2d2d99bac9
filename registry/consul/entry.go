package consul

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
)

// The service metadata written by this package. recordKey holds the record of the instance; the
// other keys are for people and other tools.
const (
	recordKey = "anser"
	ownerKey  = "anser-owner"
)

// recordTag is the prefix of the service tag that holds the record if it does not fit into the
// metadata.
const recordTag = recordKey + "="

// Consul's limits on metadata.
const (
	maxMetaPairs      = 64
	maxMetaKey        = 128
	maxMetaValue      = 512
	maxWeight         = 65535
	reservedMetaStart = "consul-"
)

var metaKey = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// dropAfter is when Consul deregisters an instance whose process sends no heartbeats: one minute
// is the minimum that it accepts. Until then the instance is in the catalogue with a failed check,
// and in no list.
const dropAfter = time.Minute

// serviceName returns the name of the service in Consul.
func (c *config) serviceName(service string) string { return c.prefix + service }

// serviceID returns the ID of an instance on its agent. Consul compares IDs without regard to
// case.
func (c *config) serviceID(in registry.Instance) string {
	name := c.serviceName(in.Service)
	id := name + ":" + url.PathEscape(in.Key())
	if raw := name + ":" + in.Key(); strings.ToLower(raw) != raw {
		sum := fnv.New64a()
		sum.Write([]byte(raw))
		id += fmt.Sprintf("~%x", sum.Sum64())
	}
	return id
}

// checkID returns the ID of the check that the owner sends heartbeats to. It differs per owner, so
// a process cannot keep alive an instance that another one has taken over.
func checkID(serviceID, owner string) string { return "anser:" + serviceID + ":" + owner }

// registration returns the agent's registration of an instance.
func (c *config) registration(id string, in registry.Instance, owner string) (*api.AgentServiceRegistration, error) {
	record, err := registry.Encode(in)
	if err != nil {
		return nil, err
	}
	weight := min(in.EffectiveWeight(), maxWeight)
	status, note := signOfLife(in.State)
	r := &api.AgentServiceRegistration{
		ID: id, Name: c.serviceName(in.Service), Meta: make(map[string]string),
		Weights: &api.AgentWeights{Passing: weight, Warning: 1},
		Check: &api.AgentServiceCheck{
			CheckID: checkID(id, owner), Name: "Signs of life", Notes: note, Status: status,
			TTL: c.ttl.String(), DeregisterCriticalServiceAfter: max(dropAfter, c.ttl).String(),
		},
	}
	set := func(key, value string) {
		if value != "" {
			r.Meta[key] = value
		}
	}
	if path, ok := strings.CutPrefix(in.Address, "unix://"); ok {
		r.SocketPath = path
	} else {
		scheme, rest, ok := strings.Cut(in.Address, "://")
		if ok {
			set("address", in.Address)
		} else {
			rest = scheme
		}
		hostPort, _, _ := strings.Cut(rest, "/")
		host, port, err := net.SplitHostPort(hostPort)
		if err != nil {
			return nil, err
		}
		r.Address = host
		if r.Port, err = strconv.Atoi(port); err != nil {
			return nil, err
		}
	}
	set(ownerKey, owner)
	set("group", in.Group)
	set("version", in.Version)
	set("zone", in.Zone)
	if in.State != registry.Up {
		set("state", in.State.String())
	}
	if len(record) <= maxMetaValue {
		set(recordKey, string(record))
	} else {
		r.Tags = []string{recordTag + string(record)}
	}
	for _, name := range sortedKeys(in.Tags) {
		value := in.Tags[name]
		_, taken := r.Meta[name]
		fits := len(r.Meta) < maxMetaPairs && len(name) <= maxMetaKey && len(value) <= maxMetaValue && metaKey.MatchString(name)
		if fits && !taken && name != recordKey && !strings.HasPrefix(name, reservedMetaStart) {
			set(name, value)
		}
	}
	return r, nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// signOfLife returns the status of the check of a live instance. A client that asks Consul for
// passing instances only receives none that want no calls.
func signOfLife(s registry.State) (status, note string) {
	if s == registry.Up {
		return api.HealthPassing, "up"
	}
	return api.HealthWarning, s.String()
}

// isWhole reports whether the entry has the parts that every entry of the catalogue has: in JSON
// they may be missing.
func isWhole(e *api.ServiceEntry) bool {
	return e != nil && e.Service != nil && e.Node != nil && !slices.Contains(e.Checks, nil)
}

// decode returns the instance of a catalogue entry for which isWhole is true.
func (c *config) decode(service string, e *api.ServiceEntry) (registry.Instance, error) {
	record, ok := e.Service.Meta[recordKey]
	for _, tag := range e.Service.Tags {
		if r, found := strings.CutPrefix(tag, recordTag); found && !ok {
			record, ok = r, true
		}
	}
	if !ok {
		in := foreign(service, e)
		if err := in.Validate(); err != nil {
			return in, fmt.Errorf("consul service %s: %w", e.Service.ID, err)
		}
		return in, nil
	}
	in, err := registry.Decode([]byte(record))
	if err != nil {
		return in, fmt.Errorf("consul service %s: %w", e.Service.ID, err)
	}
	// A record under a foreign ID would appear in two lists, or twice in one.
	if id := c.serviceID(in); id != e.Service.ID || in.Service != service {
		return in, fmt.Errorf("consul service %s holds the record of %s: deregister it", e.Service.ID, id)
	}
	return in, nil
}

// foreign returns the instance of a service that another tool has registered.
func foreign(service string, e *api.ServiceEntry) registry.Instance {
	host := e.Service.Address
	if host == "" {
		host = e.Node.Address
	}
	in := registry.Instance{
		ID: e.Service.ID, Service: service, Address: net.JoinHostPort(host, strconv.Itoa(e.Service.Port)),
		Tags: make(map[string]string),
	}
	if e.Service.SocketPath != "" {
		in.Address = "unix://" + e.Service.SocketPath
	}
	if w := e.Service.Weights.Passing; w != 1 { // 1 is Consul's value for services registered without weights
		in.Weight = w
	}
	for name, value := range e.Service.Meta {
		switch name {
		case "group":
			in.Group = value
		case "version":
			in.Version = value
		case "zone":
			in.Zone = value
		default:
			in.Tags[name] = value
		}
	}
	for _, tag := range e.Service.Tags {
		name, value, _ := strings.Cut(tag, "=")
		if name != "" {
			in.Tags[name] = value
		}
	}
	return in
}

// alive reports whether an entry counts as an instance, and whether an operator has put it or its
// host into maintenance.
func alive(e *api.ServiceEntry) (ok, maintenance bool) {
	ok = true
	for _, check := range e.Checks {
		switch {
		case check.Status != api.HealthCritical:
		case strings.HasPrefix(check.CheckID, api.ServiceMaintPrefix), check.CheckID == api.NodeMaint:
			maintenance = true
		default:
			ok = false
		}
	}
	return ok, maintenance
}
