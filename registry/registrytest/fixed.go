package registrytest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/anser-rpc/anser/registry"
)

var fixedCases = []testCase{
	{"FixedList", "", fixedList},
	{"FixedListEndsWithContext", "", fixedListEndsWithContext},
	{"FixedServices", Listing, fixedServices},
}

// byService returns the instances of the fixture by service.
func (s *suite) byService() map[string][]registry.Instance {
	services := make(map[string][]registry.Instance)
	for _, in := range s.Instances {
		services[in.Service] = append(services[in.Service], in)
	}
	return services
}

func fixedList(s *suite) {
	for service, want := range s.byService() {
		w := s.watch(s.Resolver, service, nil)
		w.await(s.Patience, want...)
		s.await(s.Resolver, service, want...)
	}
	never := func([]registry.Instance) { s.Error("update for an invalid service") }
	if err := s.Resolver.Watch(context.Background(), "a/b", never, nil); err == nil {
		s.Error("Watch of service a/b gives no error")
	}
}

func fixedListEndsWithContext(s *suite) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	never := func([]registry.Instance) { s.Error("update although the context had ended") }
	if err := s.Resolver.Watch(ended, "arith", never, nil); !errors.Is(err, context.Canceled) {
		s.Errorf("Watch with an ended context = %v, want its error", err)
	}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Resolver.Watch(short, "arith", func([]registry.Instance) {}, nil); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("Watch with a deadline = %v, want its error", err)
	}
}

func fixedServices(s *suite) {
	var want []string
	for service := range s.byService() {
		want = append(want, service)
	}
	slices.Sort(want)
	lister, ok := s.Resolver.(registry.Lister)
	if !ok {
		s.Fatalf("%T is no Lister", s.Resolver)
	}
	s.awaitServices(lister, want...)
}
