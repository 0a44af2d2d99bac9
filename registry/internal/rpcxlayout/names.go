package rpcxlayout

import (
	"cmp"
	"slices"
	"sync"

	"github.com/anser-rpc/anser/registry"
)

// Names remembers under which keys of a registry instances were announced: their own keys need not
// be their addresses. The zero value is empty. It is safe for concurrent use.
type Names struct {
	mu    sync.Mutex // guards names
	names map[[2]string]string
}

// Put remembers the key of an instance, and returns another one that it had before, or "".
func (n *Names) Put(in registry.Instance, key string) (before string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := [2]string{in.Service, in.Key()}
	if before = n.names[id]; before == key {
		return ""
	}
	if n.names == nil {
		n.names = make(map[[2]string]string)
	}
	n.names[id] = key
	return before
}

// Take forgets the key of an instance, and returns it, or "" if there is none.
func (n *Names) Take(in registry.Instance) (key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := [2]string{in.Service, in.Key()}
	key = n.names[id]
	delete(n.names, id)
	return key
}

// Once sorts a list of instances, and leaves out each whose key another one has.
func Once(list []registry.Instance) []registry.Instance {
	slices.SortFunc(list, func(a, b registry.Instance) int {
		return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.Address, b.Address))
	})
	return slices.CompactFunc(list, func(a, b registry.Instance) bool { return a.Key() == b.Key() })
}
