package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Memory is a registry inside the process, for tests and for services that share a process. All
// methods are safe for concurrent use. NewMemory returns an empty one; Join returns another view
// of the same instances that can be closed on its own.
type Memory struct {
	store *memoryStore
	done  chan struct{} // closed by Close
}

// NewMemory returns an empty registry. It starts no goroutine.
func NewMemory() *Memory {
	return (&memoryStore{services: make(map[string]*memoryService), documents: make(map[string]*memoryDocument)}).join()
}

// Join returns another view of the same instances, like that of another process: all views see the
// instances it registers, and closing it withdraws those and nothing else.
func (m *Memory) Join() *Memory { return m.store.join() }

// Scheme resolves targets of the form "name:///service" in m. The program chooses the name, in
// lower case; programs with several Memories give each its own name:
//
//	c, err := anser.Dial("memory:///arith", m.Scheme("memory"))
//
// Each client uses a view of its own (Join), which it closes with itself; m stays open. Such
// clients keep no snapshot on disk, neither of instances nor of rules, since a Memory ends with
// its process.
func (m *Memory) Scheme(name string) Scheme {
	return Scheme{Name: name, Open: func(u *url.URL) (Resolver, string, error) {
		if m == nil {
			return nil, "", errors.New("the Memory is nil: use registry.NewMemory")
		}
		service := strings.TrimPrefix(u.Path, "/")
		if u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, "", fmt.Errorf("the registry is in this process: want %s:///service", name)
		}
		if err := CheckService(service); err != nil {
			return nil, "", err
		}
		return m.Join(), service, nil
	}}
}

// Register implements Registrar. It does not block.
func (m *Memory) Register(ctx context.Context, in Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.store.put(m, in.Clone())
}

// Deregister implements Registrar. It does not block.
func (m *Memory) Deregister(ctx context.Context, in Instance) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.store.remove(m, in.Service, in.Key())
}

// Watch implements Resolver. It never calls trouble.
func (m *Memory) Watch(ctx context.Context, service string, update func([]Instance), trouble func(error)) error {
	if err := CheckService(service); err != nil {
		return err
	}
	var last []Instance
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		list, changed, err := m.store.list(m, service)
		if err != nil {
			return err
		}
		if first || !Equal(list, last) {
			update(list)
			last = list
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-m.done:
		}
	}
}

// Services implements Lister.
func (m *Memory) Services(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.store.names(m)
}

// Close implements Registry. Other views of the same instances stay open.
func (m *Memory) Close() error {
	m.store.leave(m)
	return nil
}

// memoryStore is the state shared by the views of a Memory.
type memoryStore struct {
	mu        sync.Mutex // guards services and documents, their contents, and the closing of a view
	services  map[string]*memoryService
	documents map[string]*memoryDocument
}

type memoryService struct {
	instances map[string]memoryRecord // by key
	sorted    []Instance              // list for watchers; nil after a change
	changed   chan struct{}           // closed and replaced by a change
}

type memoryRecord struct {
	Instance
	owner *Memory
}

func (s *memoryStore) join() *Memory {
	return &Memory{store: s, done: make(chan struct{})}
}

// isClosed reports whether the view was closed. While memoryStore.mu is held, the result cannot
// change.
func (m *Memory) isClosed() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

func (s *memoryStore) put(m *Memory, in Instance) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.isClosed() {
		return ErrClosed
	}
	service := s.serviceLocked(in.Service)
	service.instances[in.Key()] = memoryRecord{in, m}
	service.changedLocked()
	return nil
}

func (s *memoryStore) remove(m *Memory, name, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.isClosed() {
		return ErrClosed
	}
	if service := s.services[name]; service != nil && service.instances[key].owner == m {
		delete(service.instances, key)
		service.changedLocked()
	}
	return nil
}

func (s *memoryStore) list(m *Memory, name string) ([]Instance, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.isClosed() {
		return nil, nil, ErrClosed
	}
	service := s.serviceLocked(name)
	return service.listLocked(), service.changed, nil
}

func (s *memoryStore) names(m *Memory) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.isClosed() {
		return nil, ErrClosed
	}
	var names []string
	for name, service := range s.services {
		if len(service.instances) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (s *memoryStore) leave(m *Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.isClosed() {
		return
	}
	close(m.done)
	for _, service := range s.services {
		before := len(service.instances)
		maps.DeleteFunc(service.instances, func(_ string, r memoryRecord) bool { return r.owner == m })
		if len(service.instances) != before {
			service.changedLocked()
		}
	}
}

// serviceLocked returns the service, and creates it if necessary. A service stays after its last
// instance is removed, since watchers hold its changed channel.
func (s *memoryStore) serviceLocked(name string) *memoryService {
	service := s.services[name]
	if service == nil {
		service = &memoryService{instances: make(map[string]memoryRecord), changed: make(chan struct{})}
		s.services[name] = service
	}
	return service
}

func (s *memoryService) changedLocked() {
	s.sorted = nil
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *memoryService) listLocked() []Instance {
	if s.sorted == nil {
		s.sorted = make([]Instance, 0, len(s.instances))
		for _, r := range s.instances {
			s.sorted = append(s.sorted, r.Instance)
		}
		Sort(s.sorted)
	}
	return s.sorted
}
