package nacos

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Anser's own metadata keys, in addition to version, zone, group and the tags, which other
// programs can read.
const (
	recordKey = "anser.record" // as written by registry.Encode
	ownerKey  = "anser.owner"  // the Registry that announced it
	stampKey  = "anser.stamp"  // when it was written, in microseconds since 1970
)

const defaultCluster = "DEFAULT"

// nacosInstance is an instance in Nacos's JSON.
type nacosInstance struct {
	IP       string            `json:"ip"`
	Port     int               `json:"port"`
	Weight   float64           `json:"weight"`
	Cluster  string            `json:"clusterName"`
	Enabled  *bool             `json:"enabled"`
	Healthy  *bool             `json:"healthy"` // since 1.0
	Valid    *bool             `json:"valid"`   // before, and as an alias for a while
	Metadata map[string]string `json:"metadata"`
}

// place is the identity of an instance within a service of Nacos.
type place struct {
	ip      string
	port    int
	cluster string
}

func (h nacosInstance) place() place { return place{h.IP, h.Port, h.Cluster} }

func (h nacosInstance) address() string { return net.JoinHostPort(h.IP, strconv.Itoa(h.Port)) }

func (h nacosInstance) alive() bool {
	switch {
	case h.Healthy != nil:
		return *h.Healthy
	case h.Valid != nil:
		return *h.Valid
	}
	return true
}

func (h nacosInstance) stamp() int64 {
	n, _ := strconv.ParseInt(h.Metadata[stampKey], 10, 64)
	return n
}

// placeOf returns the place of the instance in Nacos. The zone is the cluster if it is a valid
// cluster name.
func placeOf(in registry.Instance) place {
	ip, portText, _ := net.SplitHostPort(in.Address)
	port, _ := strconv.Atoi(portText)
	cluster := in.Zone
	if cluster == "" || len(cluster) > 64 || strings.ContainsFunc(cluster, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	}) {
		cluster = defaultCluster
	}
	return place{ip, port, cluster}
}

// weightOf returns Nacos's weight, whose default is 1. Other clients of Nacos make no calls to an
// instance of weight 0. The field "enabled" would have the same meaning, but Nacos does not list
// instances that are not enabled.
func weightOf(in registry.Instance) float64 {
	if in.State != registry.Up {
		return 0
	}
	return float64(in.EffectiveWeight()) / registry.DefaultWeight
}

// metadataOf returns the metadata that Nacos stores with the address.
func metadataOf(in registry.Instance, owner string, stamp int64) (map[string]string, error) {
	record, err := registry.Encode(in)
	if err != nil {
		return nil, err
	}
	metadata := maps.Clone(in.Tags)
	if metadata == nil {
		metadata = make(map[string]string)
	}
	for name, value := range map[string]string{"version": in.Version, "zone": in.Zone, "group": in.Group} {
		if value != "" {
			metadata[name] = value
		}
	}
	metadata[recordKey], metadata[ownerKey], metadata[stampKey] = string(record), owner, strconv.FormatInt(stamp, 10)
	return metadata, nil
}

// decode returns the instance of the service in Nacos's form.
func decode(service string, h nacosInstance) (registry.Instance, error) {
	in, err := decodeRecord(service, h)
	if err != nil {
		return in, fmt.Errorf("nacos instance %s of service %s: %w", h.address(), service, err)
	}
	if h.Enabled != nil && !*h.Enabled {
		in.State = registry.Disabled
	}
	return in, nil
}

func decodeRecord(service string, h nacosInstance) (registry.Instance, error) {
	record, ours := h.Metadata[recordKey]
	if !ours {
		return foreign(service, h)
	}
	in, err := registry.Decode([]byte(record))
	if err != nil {
		return in, err
	}
	if in.Service != service || placeOf(in) != h.place() {
		return in, fmt.Errorf("it has the record of %s of service %s: remove %s from its metadata", in.Address, in.Service, recordKey)
	}
	// An operator may have changed the weight in the console.
	if math.Abs(h.Weight-weightOf(in)) > 1e-6 {
		setWeight(&in, h.Weight)
	}
	return in, nil
}

// foreign returns an instance that another program has registered.
func foreign(service string, h nacosInstance) (registry.Instance, error) {
	in := registry.Instance{Service: service, Address: h.address(), Version: h.Metadata["version"], Tags: maps.Clone(h.Metadata)}
	if h.Cluster != defaultCluster {
		in.Zone = h.Cluster
	}
	setWeight(&in, h.Weight)
	return in, in.Validate()
}

func setWeight(in *registry.Instance, weight float64) {
	if weight <= 0 {
		if in.State == registry.Up {
			in.State = registry.Disabled
		}
		return
	}
	in.State = registry.Up
	in.Weight = int(min(max(math.Round(weight*registry.DefaultWeight), 1), registry.MaxWeight))
}

// listOf returns the instances of the service in Nacos's list, each key once, and an error about
// one that was left out.
func listOf(service string, all []nacosInstance) (list []registry.Instance, problem error) {
	found, problem := byKey(service, all, func(string, nacosInstance) bool { return true })
	return sorted(found), problem
}

// byKey returns the instances of the service in Nacos's list that accept returns true for, by key,
// and an error about one that could not be decoded.
func byKey(service string, all []nacosInstance, accept func(key string, h nacosInstance) bool) (found map[string]registry.Instance, problem error) {
	newest := make(map[string]nacosInstance)
	found = make(map[string]registry.Instance)
	for _, h := range all {
		in, err := decode(service, h)
		if err != nil {
			if problem == nil || err.Error() < problem.Error() { // deterministic, whatever the order
				problem = err
			}
			continue
		}
		key := in.Key()
		if !accept(key, h) {
			continue
		}
		// While an instance moves to another address, or another process takes its key, Nacos
		// lists two.
		if before, twice := newest[key]; twice && before.stamp() >= h.stamp() {
			continue
		}
		newest[key], found[key] = h, in
	}
	return found, problem
}

func sorted(found map[string]registry.Instance) []registry.Instance {
	list := slices.AppendSeq(make([]registry.Instance, 0, len(found)), maps.Values(found))
	registry.Sort(list)
	return list
}

// form returns the parameters of the place.
func (p place) form() url.Values {
	return url.Values{
		"ip": {p.ip}, "port": {strconv.Itoa(p.port)},
		"clusterName": {p.cluster}, "cluster": {p.cluster}, // the name differs between server versions
	}
}

// form returns the parameters that write the instance with that weight.
func (h nacosInstance) form(weight float64) url.Values {
	params := h.place().form()
	params.Set("weight", strconv.FormatFloat(weight, 'f', -1, 64))
	params.Set("enabled", "true")
	params.Set("enable", "true")
	params.Set("healthy", "true")
	params.Set("ephemeral", "true")
	params.Set("metadata", encodeJSON(h.Metadata))
	return params
}

func encodeJSON(v any) string {
	data, _ := json.Marshal(v) // strings and numbers cannot fail
	return string(data)
}
