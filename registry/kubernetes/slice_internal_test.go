package kubernetes

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/anser-rpc/anser/registry"
)

// FuzzSlices checks that, for any slices of a service, the list has valid instances of it, each
// key once, and does not depend on the order of the slices.
func FuzzSlices(f *testing.F) {
	r := &Registry{namespace: "shop", owner: "me"}
	add := func(all ...*discoveryv1.EndpointSlice) {
		data, err := json.Marshal(all)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("", data)
		f.Add("grpc", data)
	}
	ours, err := r.sliceOf(registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Version: "1", Zone: "north"})
	if err != nil {
		f.Fatal(err)
	}
	foreign := ours.DeepCopy()
	foreign.Labels = map[string]string{discoveryv1.LabelServiceName: "arith"}
	foreign.Ports[0].Name = new("grpc")
	six := foreign.DeepCopy()
	six.AddressType, six.Endpoints[0].Addresses = discoveryv1.AddressTypeIPv6, []string{"::1"}
	gone := foreign.DeepCopy()
	gone.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	add(ours)
	add(foreign, six)
	add(ours, gone, foreign)
	f.Fuzz(func(t *testing.T, port string, data []byte) {
		var all []*discoveryv1.EndpointSlice
		if json.Unmarshal(data, &all) != nil || slices.Contains(all, nil) {
			return // no client of Kubernetes returns these
		}
		alive := func(owner string) bool { return owner == "me" }
		list, problem := instancesOf("arith", port, all, alive)
		keys := make(map[string]bool)
		for _, in := range list {
			if err := in.Validate(); err != nil || in.Service != "arith" || keys[in.Key()] {
				t.Fatalf("%+v in %+v: %v", in, list, err)
			}
			keys[in.Key()] = true
		}
		slices.Reverse(all)
		again, other := instancesOf("arith", port, all, alive)
		if len(again) != len(list) || (problem == nil) != (other == nil) || problem != nil && problem.Error() != other.Error() {
			t.Fatalf("in another order %+v, %v becomes %+v, %v", list, problem, again, other)
		}
	})
}

// FuzzParse checks that every accepted target names a service, and that its other parts are
// complete.
func FuzzParse(f *testing.F) {
	f.Add("kubernetes:///shop/arith:grpc")
	f.Add("kubernetes:///arith")
	f.Add("kubernetes://host/arith?x#y")
	f.Add("kubernetes:////a:")
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse(target)
		if err != nil {
			return
		}
		namespace, service, port, err := Parse(u)
		if err != nil {
			return
		}
		again := "/" + service
		if port != "" {
			again += ":" + port
		}
		if namespace != "" {
			again = "/" + namespace + again
		}
		n, s, p, err := Parse(&url.URL{Scheme: "kubernetes", Path: again})
		if registry.CheckService(service) != nil || err != nil || n != namespace || s != service || p != port {
			t.Fatalf("%q: %q, %q, %q; read again %q, %q, %q, %v", target, namespace, service, port, n, s, p, err)
		}
	})
}
