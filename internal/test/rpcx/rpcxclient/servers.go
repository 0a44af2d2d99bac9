package rpcxclient

import (
	"slices"
	"sync"

	"github.com/smallnest/rpcx/client"
)

// Servers is a discovery of servers that change, whose Update is over when it returns. The one of
// rpcx v1.9.3 writes from goroutines, also to the channel that a client closes: a data race.
type Servers struct {
	mu       sync.Mutex // guards the fields below
	pairs    []*client.KVPair
	watchers []chan []*client.KVPair
}

// NewServers returns a discovery of these servers.
func NewServers(pairs []*client.KVPair) *Servers { return &Servers{pairs: pairs} }

// Update replaces the servers. A client that has not taken the last ten updates does not get this
// one.
func (s *Servers) Update(pairs []*client.KVPair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pairs = pairs
	for _, w := range s.watchers {
		select {
		case w <- slices.Clone(pairs): // the client sorts them
		default:
		}
	}
}

// GetServices implements client.ServiceDiscovery.
func (s *Servers) GetServices() []*client.KVPair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pairs)
}

// WatchService implements client.ServiceDiscovery.
func (s *Servers) WatchService() chan []*client.KVPair {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := make(chan []*client.KVPair, 10)
	s.watchers = append(s.watchers, w)
	return w
}

// RemoveWatcher implements client.ServiceDiscovery. The client closes the channel after it.
func (s *Servers) RemoveWatcher(w chan []*client.KVPair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = slices.DeleteFunc(s.watchers, func(other chan []*client.KVPair) bool { return other == w })
}

// Clone implements client.ServiceDiscovery.
func (s *Servers) Clone(string) (client.ServiceDiscovery, error) { return s, nil }

// SetFilter implements client.ServiceDiscovery.
func (s *Servers) SetFilter(client.ServiceDiscoveryFilter) {}

// Close implements client.ServiceDiscovery.
func (s *Servers) Close() {}
