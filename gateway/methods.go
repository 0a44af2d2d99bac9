package gateway

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
)

// methods are the methods of all services, as the server offers them: each as "arith/Arith.Mul",
// and without the service in front unless the name itself has a slash.
type methods struct {
	gateway *Gateway
	offered atomic.Pointer[map[string]*entry] // by name; never changed

	mu       sync.Mutex // guards the fields below
	services map[*upstream]map[string]*published
	served   map[string]string // what is served under a name: see entry.key
}

// entry is a method that the server offers under a name.
type entry struct {
	name    string
	method  *published
	service *upstream   // nil: it depends on the routes
	among   []*upstream // services that have the method
}

// key distinguishes entries of the same name.
func (e *entry) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v %v %s", e.method.fingerprint, e.method.info.Idempotent, e.method.info.Oneway, e.method.info.Doc)
	for _, u := range e.among {
		fmt.Fprintf(&b, " %s", u.name)
	}
	return b.String()
}

// set serves the methods of a service, in place of its earlier ones.
func (t *methods) set(u *upstream, d *description) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, had := t.services[u]
	t.services[u] = d.methods
	err := t.applyLocked()
	if err != nil {
		if delete(t.services, u); had {
			t.services[u] = before
		}
	}
	return err
}

// remove ends the methods of a service.
func (t *methods) remove(u *upstream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.services[u]; !ok {
		return
	}
	delete(t.services, u)
	if err := t.applyLocked(); err != nil {
		t.gateway.log.Error("gateway: methods of a service that has left cannot be removed", "service", u.name, "error", err)
	}
}

// applyLocked makes the server offer what the services have.
func (t *methods) applyLocked() error {
	want := t.entriesLocked()
	var remove []string
	var add []anser.DynamicMethod
	served := make(map[string]string, len(want))
	for name, e := range want {
		if e.method.contract == nil {
			continue // it is offered to callers over Anser's own protocol only
		}
		key := e.key()
		if old, ok := t.served[name]; ok && old == key {
			served[name] = key
			continue
		} else if ok {
			remove = append(remove, name)
		}
		served[name] = key
		add = append(add, t.gateway.dynamic(e))
	}
	for name := range t.served {
		if e := want[name]; e == nil || e.method.contract == nil {
			remove = append(remove, name)
		}
	}
	if len(add)+len(remove) == 0 {
		t.offered.Store(&want)
		return nil
	}
	slices.SortFunc(add, func(a, b anser.DynamicMethod) int { return strings.Compare(a.Name, b.Name) })
	if err := t.gateway.server.ReplaceDynamic(remove, add); err != nil {
		return err
	}
	t.served = served
	t.offered.Store(&want)
	return nil
}

// entriesLocked returns the methods to serve, by name.
func (t *methods) entriesLocked() map[string]*entry {
	list := make(map[string]*entry)
	var services []*upstream
	for u := range t.services {
		services = append(services, u)
	}
	slices.SortFunc(services, func(a, b *upstream) int { return strings.Compare(a.name, b.name) })
	for _, u := range services {
		for name, m := range t.services[u] {
			full := u.name + "/" + name
			list[full] = &entry{name: full, method: m, service: u, among: []*upstream{u}}
			if strings.Contains(name, "/") {
				continue // the name alone could be that of a method of another service
			}
			if e := list[name]; e != nil {
				e.service, e.among = nil, append(e.among, u)
			} else {
				list[name] = &entry{name: name, method: m, service: u, among: []*upstream{u}}
			}
		}
	}
	return list
}

var encodedType = reflect.TypeFor[codec.Encoded]()

// dynamic returns the method of the server for an entry.
func (g *Gateway) dynamic(e *entry) anser.DynamicMethod {
	m := &forwarded{gateway: g, entry: e}
	d := anser.DynamicMethod{
		Name: e.name, Request: encodedType, Reply: encodedType, Foreign: true,
		Contract: e.method.contract, ContractName: e.method.name,
		Oneway: e.method.info.Oneway, ClientStream: e.method.info.ClientStream, ServerStream: e.method.info.ServerStream,
	}
	if e.method.info.Stream {
		d.Stream = m.stream
		return d
	}
	d.Handle, d.Idempotent, d.TakesKeys = m.call, e.method.info.Idempotent, true
	return d
}

// ambiguous returns the error of a call of a method that several services have.
func (e *entry) ambiguous() error {
	var names []string
	for _, u := range e.among {
		names = append(names, u.name)
	}
	return anser.Refuse(anser.FailedPrecondition, "method %q is in the services %s: call %s/%s, or give the gateway a route for it",
		e.method.name, strings.Join(names, ", "), names[0], e.method.name)
}
