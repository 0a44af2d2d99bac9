package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Static is a fixed list of instances: a Resolver and a Lister without open resources. Its methods
// are safe for concurrent use.
type Static struct {
	every []Instance            // instances of every service
	named map[string][]Instance // by service
}

// NewStatic returns a resolver of copies of the given instances. An instance without a Service
// belongs to every service.
func NewStatic(instances ...Instance) (*Static, error) {
	s := &Static{named: make(map[string][]Instance)}
	for i, in := range instances {
		checked := in
		if checked.Service == "" {
			checked.Service = "any"
		}
		if err := checked.Validate(); err != nil {
			return nil, fmt.Errorf("static instance %d: %w", i+1, err)
		}
		if in.Service == "" {
			s.every = append(s.every, in.Clone())
		} else {
			s.named[in.Service] = append(s.named[in.Service], in.Clone())
		}
	}
	if err := s.checkKeys(); err != nil {
		return nil, err
	}
	return s, nil
}

// ParseStatic returns a resolver of the addresses in list, separated by commas and optional
// spaces: "a:1, b:2". They belong to every service.
func ParseStatic(list string) (*Static, error) {
	var instances []Instance
	for address := range strings.SplitSeq(list, ",") {
		address = strings.TrimSpace(address)
		if address == "" {
			return nil, fmt.Errorf("address list %q has an empty entry: use host:port,host:port", list)
		}
		instances = append(instances, Instance{Address: address})
	}
	return NewStatic(instances...)
}

func (s *Static) checkKeys() error {
	for _, name := range append(s.names(), "") {
		list := s.list(name)
		for i := 1; i < len(list); i++ {
			if key := list[i].Key(); key == list[i-1].Key() {
				return fmt.Errorf("static instance %q is listed twice: remove one, or give them different IDs", key)
			}
		}
	}
	return nil
}

// Watch implements Resolver: it calls update once and waits for ctx. It never calls trouble.
func (s *Static) Watch(ctx context.Context, service string, update func([]Instance), trouble func(error)) error {
	if err := CheckService(service); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	update(s.list(service))
	<-ctx.Done()
	return ctx.Err()
}

// Services implements Lister. Instances without a service are not included: they have no name.
func (s *Static) Services(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.names(), nil
}

func (s *Static) names() []string {
	var names []string
	for name := range s.named {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *Static) list(service string) []Instance {
	list := Clone(append(slices.Clip(s.every), s.named[service]...))
	for i := range list {
		list[i].Service = service
	}
	Sort(list)
	return list
}
