package kubernetes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anser-rpc/anser/registry"
)

// Labels and annotations of Anser's objects.
const (
	managedBy      = "anser" // of EndpointSlices, see discoveryv1.LabelManagedBy
	ownerLabel     = "anser-rpc/owner"
	groupLabel     = "anser-rpc/group"
	versionLabel   = "anser-rpc/version"
	recordKey      = "anser-rpc/record"   // annotation: the record as written by registry.Encode
	documentKey    = "anser-rpc/document" // annotation: the name of the document
	managedByLabel = "app.kubernetes.io/managed-by"
)

// objectName returns a valid object name for any parts: as much of the first part as fits, for
// readability, and a hash of all parts.
func objectName(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d %s\n", len(p), p)
	}
	legible := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(parts[0]))
	legible = strings.Trim(legible[:min(len(legible), 60)], "-")
	return strings.TrimPrefix(legible+"-anser-", "-") + hex.EncodeToString(sum.Sum(nil)[:16])
}

// isLabel reports whether the text is a valid label value.
func isLabel(text string) bool {
	return len(text) <= 63 && registry.CheckService(text) == nil && strings.Trim(text, "-_.") == text
}

// sliceOf returns the EndpointSlice that announces the instance.
func (r *Registry) sliceOf(in registry.Instance) (*discoveryv1.EndpointSlice, error) {
	record, err := registry.Encode(in)
	if err != nil {
		return nil, err
	}
	host, portText, err := net.SplitHostPort(in.Address)
	if err != nil {
		return nil, err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, err
	}
	ip = ip.Unmap()
	kind := discoveryv1.AddressTypeIPv4
	if ip.Is6() {
		kind = discoveryv1.AddressTypeIPv6
	}
	endpoint := discoveryv1.Endpoint{
		Addresses: []string{ip.String()},
		Conditions: discoveryv1.EndpointConditions{
			Ready: new(in.State == registry.Up), Serving: new(in.State != registry.Disabled), Terminating: new(in.State == registry.Draining),
		},
	}
	if in.Zone != "" {
		endpoint.Zone = &in.Zone
	}
	labels := map[string]string{discoveryv1.LabelServiceName: in.Service, discoveryv1.LabelManagedBy: managedBy, ownerLabel: r.owner}
	for name, value := range map[string]string{groupLabel: in.Group, versionLabel: in.Version} {
		if isLabel(value) { // for kubectl; the record contains it anyway
			labels[name] = value
		}
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: objectName(in.Service, in.Key()), Namespace: r.namespace,
			Labels:      labels,
			Annotations: map[string]string{recordKey: string(record)},
		},
		AddressType: kind,
		Endpoints:   []discoveryv1.Endpoint{endpoint},
		Ports:       []discoveryv1.EndpointPort{{Name: new(PortName), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP)}},
	}, nil
}

func isOurs(s *discoveryv1.EndpointSlice) bool {
	return s.Labels[discoveryv1.LabelManagedBy] == managedBy
}

// instancesOf returns the instances of the service in the slices, each key once, and an error
// about one that was left out. alive reports whether the owner of a slice announced by Anser is
// alive.
func instancesOf(service, port string, all []*discoveryv1.EndpointSlice, alive func(owner string) bool) (list []registry.Instance, problem error) {
	found := make(map[string]registry.Instance)
	// A dual-stack Service has a slice per address family, with the same pods.
	hasIPv4 := slices.ContainsFunc(all, func(s *discoveryv1.EndpointSlice) bool {
		return !isOurs(s) && s.AddressType == discoveryv1.AddressTypeIPv4 && len(s.Endpoints) > 0
	})
	report := func(err error) {
		if problem == nil || err.Error() < problem.Error() { // deterministic, whatever the order
			problem = err
		}
	}
	// While Kubernetes moves an endpoint from one slice to another it is in both, possibly in two
	// states: then the better state counts. With equal states it is the same instance.
	for _, s := range all {
		switch {
		case isOurs(s):
			if !alive(s.Labels[ownerLabel]) {
				continue
			}
			in, err := decode(service, s)
			if err != nil {
				report(err)
				continue
			}
			found[in.Key()] = in
		case hasIPv4 && s.AddressType != discoveryv1.AddressTypeIPv4, len(s.Endpoints) == 0:
		default:
			number, err := portOf(s, port)
			if err != nil {
				report(err)
				continue
			}
			for _, e := range s.Endpoints {
				in, ok := fromEndpoint(service, e, number)
				if was, twice := found[in.Key()]; ok && (!twice || was.State != registry.Up) {
					found[in.Key()] = in
				}
			}
		}
	}
	list = slices.AppendSeq(make([]registry.Instance, 0, len(found)), maps.Values(found))
	registry.Sort(list)
	return list, problem
}

// decode returns the instance announced by a slice of Anser's.
func decode(service string, s *discoveryv1.EndpointSlice) (registry.Instance, error) {
	in, err := registry.Decode([]byte(s.Annotations[recordKey]))
	if err != nil {
		return in, fmt.Errorf("EndpointSlice %s/%s, annotation %s: %w", s.Namespace, s.Name, recordKey, err)
	}
	if in.Service != service || objectName(in.Service, in.Key()) != s.Name {
		return in, fmt.Errorf("EndpointSlice %s/%s has the record of %q of service %q: delete it", s.Namespace, s.Name, in.Key(), in.Service)
	}
	return in, nil
}

// portOf returns the number of the port with that name, or of the default port if name is "".
func portOf(s *discoveryv1.EndpointSlice, name string) (int32, error) {
	names := make([]string, 0, len(s.Ports))
	var only int32
	for _, p := range s.Ports {
		if p.Port == nil || p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
			continue
		}
		called := ""
		if p.Name != nil {
			called = *p.Name
		}
		if called == cmp.Or(name, PortName) {
			return *p.Port, nil
		}
		names, only = append(names, called), *p.Port
	}
	if name == "" && len(names) == 1 {
		return only, nil
	}
	slices.Sort(names) // the same text for all slices of a Service
	service := s.Labels[discoveryv1.LabelServiceName]
	if name == "" {
		return 0, fmt.Errorf("service %s/%s has the ports %q: name one, as in kubernetes:///%s/%s:port", s.Namespace, service, names, s.Namespace, service)
	}
	return 0, fmt.Errorf("service %s/%s has no port %q: use one of %q", s.Namespace, service, name, names)
}

// fromEndpoint returns the instance of a Service's endpoint, unless it is not ready. An endpoint
// that is terminating but still serving is draining.
func fromEndpoint(service string, e discoveryv1.Endpoint, port int32) (registry.Instance, bool) {
	is := func(b *bool, otherwise bool) bool {
		if b == nil {
			return otherwise
		}
		return *b
	}
	ready, terminating := is(e.Conditions.Ready, true), is(e.Conditions.Terminating, false)
	serving := is(e.Conditions.Serving, ready)
	if len(e.Addresses) == 0 || !ready && (!serving || !terminating) {
		return registry.Instance{}, false
	}
	in := registry.Instance{Service: service, Address: net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(port)))}
	if terminating {
		in.State = registry.Draining
	}
	if e.Zone != nil {
		in.Zone = *e.Zone
	}
	tags := make(map[string]string)
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		tags["pod"] = e.TargetRef.Name
	}
	if e.NodeName != nil {
		tags["node"] = *e.NodeName
	}
	if len(tags) > 0 {
		in.Tags = tags
	}
	return in, in.Validate() == nil
}
