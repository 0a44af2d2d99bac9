package registrytest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/anser-rpc/anser/registry"
)

var announceCases = []testCase{
	{"RegisterIsSeen", Announcing, registerIsSeen},
	{"RegisterReplaces", Announcing, registerReplaces},
	{"DeregisterTakesBack", Announcing, deregisterTakesBack},
	{"EveryFieldArrives", Announcing, everyFieldArrives},
	{"KeysOfAllKinds", Announcing, keysOfAllKinds},
	{"TwoRegistries", Announcing, twoRegistries},
	{"KeyTakenOver", Announcing, keyTakenOver},
	{"Services", Announcing, services},
	{"ManyInstances", Announcing, manyInstances},
	{"InvalidIsRefused", Announcing, invalidIsRefused},
	{"ContextBoundsTheCall", Announcing, contextBoundsTheCall},
	{"NothingIsShared", Announcing, nothingIsShared},
}

func registerIsSeen(s *suite) {
	r := s.open()
	a, b := numbered("arith", 1), numbered("arith", 2)
	s.await(r, "arith")
	s.register(r, b)
	s.await(r, "arith", b)
	s.register(r, a)
	s.await(r, "arith", a, b)
}

func registerReplaces(s *suite) {
	r, other := s.open(), s.open()
	in := numbered("arith", 1)
	in.ID = "server-1"
	s.register(r, in)
	w := s.watch(other, "arith", nil)
	w.await(s.Patience, in)
	in.State = registry.Draining
	s.register(r, in)
	w.await(s.Patience, in)
	in.State, in.Address = registry.Up, "10.9.9.9:1"
	s.register(r, in)
	w.await(s.Patience, in)
	s.register(r, in) // an identical record is not a change: the watcher would fail on an update
	s.await(r, "arith", in)
}

func deregisterTakesBack(s *suite) {
	r := s.open()
	a, b := numbered("arith", 1), numbered("arith", 2)
	s.register(r, a)
	s.register(r, b)
	w := s.watch(r, "arith", nil)
	w.await(s.Patience, a, b)
	s.deregister(r, registry.Instance{Service: "arith", Address: a.Address, Weight: 7}) // only the key matters
	w.await(s.Patience, b)
	s.deregister(r, a)
	s.deregister(r, numbered("nobody", 1))
	s.deregister(r, b)
	w.await(s.Patience)
	s.register(r, a)
	w.await(s.Patience, a)
}

func everyFieldArrives(s *suite) {
	full := registry.Instance{
		ID: "pod-7f/0", Service: "arith", Address: "[2001:db8::1]:8972", Group: "blue", Version: "1.2.3-rc.1+b",
		Zone: "eu-central-1a", Weight: registry.MaxWeight, State: registry.Disabled,
		Latitude: -33.868820123456789, Longitude: 151.209290,
		Tags: map[string]string{"team": "früh & <spät>", "leer": "", "a/b=c": "x\ny\"z\\", "中": "文"},
	}
	large := numbered("arith", 2)
	large.Tags = map[string]string{"blob": strings.Repeat("x", registry.MaxTagBytes-4)}
	unix := registry.Instance{Service: "arith", Address: "unix:///run/arith.sock", State: registry.Draining, Weight: 1}
	r, other := s.open(), s.open()
	all := []registry.Instance{full, large, unix}
	if s.HostPortOnly {
		all = all[:2]
		err := r.Register(context.Background(), unix)
		if err == nil || !strings.Contains(err.Error(), "host:port") || !strings.Contains(err.Error(), unix.Address) {
			s.Errorf("Register(%v) = %v, want an error with the address and what to use instead", unix, err)
		}
	}
	for _, in := range all {
		s.register(r, in)
	}
	s.await(other, "arith", all...)
	ctx, cancel := s.context()
	defer cancel()
	list, err := registry.List(ctx, other, "arith")
	if err != nil {
		s.Fatal(err)
	}
	for _, in := range list {
		if in.Key() == "pod-7f/0" && (in.Latitude != full.Latitude || in.Longitude != full.Longitude) {
			s.Errorf("position changed on the way: %v, %v", in.Latitude, in.Longitude)
		}
	}
}

func keysOfAllKinds(s *suite) {
	r, other := s.open(), s.open()
	keys := []string{"a/b/c", "/", "..", ".", "a b", "a%2Fb", "100%", "?x=1&y", "#", "ü", "a:1", `back\slash`, "*", "A", strings.Repeat("k", registry.MaxText)}
	var want []registry.Instance
	for i, key := range keys {
		in := numbered("arith", i)
		in.ID = key
		s.register(r, in)
		want = append(want, in)
	}
	s.await(other, "arith", slices.Clone(want)...)
	for _, in := range want {
		s.deregister(r, in)
	}
	s.await(other, "arith")
}

func twoRegistries(s *suite) {
	r1, r2 := s.open(), s.open()
	a, b := numbered("arith", 1), numbered("arith", 2)
	s.register(r1, a)
	s.register(r2, b)
	w1, w2 := s.watch(r1, "arith", nil), s.watch(r2, "arith", nil)
	w1.await(s.Patience, a, b)
	w2.await(s.Patience, a, b)
	if err := r1.Close(); err != nil {
		s.Fatal(err)
	}
	w2.await(s.Patience, b)
	if err := w1.awaitEnd(s.Patience); !errors.Is(err, registry.ErrClosed) {
		s.Errorf("Watch of the closed registry ended with %v, want ErrClosed", err)
	}
}

// keyTakenOver is a restart: the new process announces itself under the key of the old one, which
// then withdraws its instance.
func keyTakenOver(s *suite) {
	old, fresh, third := s.open(), s.open(), s.open()
	in := numbered("arith", 1)
	other := numbered("arith", 2)
	s.register(old, in)
	s.register(old, other)
	in.Version = "2"
	s.register(fresh, in)
	w := s.watch(third, "arith", nil)
	w.await(s.Patience, in, other)
	s.deregister(old, in)
	s.deregister(third, in)
	if err := old.Close(); err != nil {
		s.Fatal(err)
	}
	w.await(s.Patience, in)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.lists {
		if !slices.ContainsFunc(list, in.Equal) {
			s.Errorf("the new record went away with the old process: %s", brief(list))
		}
	}
}

func services(s *suite) {
	r, other := s.open(), s.open()
	s.awaitServices(other)
	names := []string{"arith", "Arith", "arith2", "arith.v2", "arith-x", "a"}
	for i, name := range names {
		s.register(r, numbered(name, i))
	}
	sorted := slices.Sorted(slices.Values(names))
	s.awaitServices(other, sorted...)
	for i, name := range names {
		s.await(other, name, numbered(name, i)) // services with a common prefix are not mixed up
	}
	s.deregister(r, numbered("arith", 0))
	s.awaitServices(other, slices.DeleteFunc(sorted, func(n string) bool { return n == "arith" })...)
}

func manyInstances(s *suite) {
	r, other := s.open(), s.open()
	w := s.watch(other, "arith", nil)
	w.await(s.Patience)
	want := make([]registry.Instance, s.Many)
	for i := range want {
		want[i] = numbered("arith", i)
		want[i].Tags = map[string]string{"n": fmt.Sprint(i), "rack": "r-17", "build": "2f6b1c0"}
	}
	each := func(all []registry.Instance, do func(context.Context, registry.Instance) error) {
		const workers = 32
		work := make(chan registry.Instance)
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for in := range work {
					if err := do(context.Background(), in); err != nil {
						s.Error(err)
					}
				}
			})
		}
		for _, in := range all {
			work <- in
		}
		close(work)
		wg.Wait()
	}
	each(want, r.Register)
	w.await(s.Patience, slices.Clone(want)...)
	s.await(r, "arith", slices.Clone(want)...)
	const left = 16 // for Close, which does not wait as long as a server may need for all of them
	each(want[left:], r.Deregister)
	if err := r.Close(); err != nil {
		s.Fatal(err)
	}
	w.await(s.Patience)
}

func invalidIsRefused(s *suite) {
	r := s.open()
	good := numbered("arith", 1)
	bad := []struct {
		mutate func(*registry.Instance)
		say    string // required text of the error
	}{
		{func(in *registry.Instance) { in.Service = "" }, "give one"},
		{func(in *registry.Instance) { in.Service = "a/b" }, "use letters"},
		{func(in *registry.Instance) { in.Service = strings.Repeat("x", 256) }, "at most 255"},
		{func(in *registry.Instance) { in.Address = "" }, "use host:port"},
		{func(in *registry.Instance) { in.Address = "localhost" }, "use host:port"},
		{func(in *registry.Instance) { in.Address = ":8972" }, "use host:port"},
		{func(in *registry.Instance) { in.Address = "h:0" }, "use 1 to 65535"},
		{func(in *registry.Instance) { in.Address = "h:http" }, "use 1 to 65535"},
		{func(in *registry.Instance) { in.Address = "::1:8972" }, "[host]:port"},
		{func(in *registry.Instance) { in.Address = "0.0.0.0:8972" }, "use the host's own address"},
		{func(in *registry.Instance) { in.Address = "[::]:8972" }, "use the host's own address"},
		{func(in *registry.Instance) { in.Address = "unix://" }, "use unix:///path"},
		{func(in *registry.Instance) { in.ID = "a\nb" }, "control characters"},
		{func(in *registry.Instance) { in.ID = strings.Repeat("x", 256) }, "at most 255"},
		{func(in *registry.Instance) { in.Zone = "\xff" }, "UTF-8"},
		{func(in *registry.Instance) { in.Weight = -1 }, "want 0 to"},
		{func(in *registry.Instance) { in.Weight = registry.MaxWeight + 1 }, "want 0 to"},
		{func(in *registry.Instance) { in.State = 9 }, "want up, draining or disabled"},
		{func(in *registry.Instance) { in.Latitude = math.NaN() }, "-90 to 90"},
		{func(in *registry.Instance) { in.Longitude = 180.5 }, "-180 to 180"},
		{func(in *registry.Instance) { in.Tags = map[string]string{"": "x"} }, "a tag has a name"},
		{func(in *registry.Instance) { in.Tags = map[string]string{"x": strings.Repeat("x", 1<<15)} }, "at most 16384"},
	}
	for _, b := range bad {
		in := good
		b.mutate(&in)
		err := r.Register(context.Background(), in)
		if err == nil || !strings.Contains(err.Error(), b.say) {
			s.Errorf("Register(%.200v) = %v, want an error with %q", in, err, b.say)
		}
	}
	s.await(r, "arith")
	never := func([]registry.Instance) { s.Error("update for an invalid service") }
	if err := r.Watch(context.Background(), "a/b", never, nil); err == nil || !strings.Contains(err.Error(), "use letters") {
		s.Errorf("Watch of service a/b = %v, want an error that describes a valid name", err)
	}
}

func contextBoundsTheCall(s *suite) {
	r, other := s.open(), s.open()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	a, b := numbered("arith", 1), numbered("arith", 2)
	if err := r.Register(ended, a); !errors.Is(err, context.Canceled) {
		s.Errorf("Register with an ended context = %v, want its error", err)
	}
	ctx, cancel := s.context()
	if err := r.Register(ctx, b); err != nil {
		s.Fatal(err)
	}
	cancel() // the call is over; its announcement stays
	if err := r.Deregister(ended, b); !errors.Is(err, context.Canceled) {
		s.Errorf("Deregister with an ended context = %v, want its error", err)
	}
	if _, err := r.Services(ended); !errors.Is(err, context.Canceled) {
		s.Errorf("Services with an ended context = %v, want its error", err)
	}
	s.await(other, "arith", b)
}

func nothingIsShared(s *suite) {
	r := s.open()
	in := numbered("arith", 1)
	in.Tags = map[string]string{"k": "v"}
	want := in.Clone()
	s.register(r, in)
	in.Tags["k"] = "changed after Register"
	s.await(r, "arith", want)
	ctx, cancel := s.context()
	defer cancel()
	list, err := registry.List(ctx, r, "arith")
	if err != nil {
		s.Fatal(err)
	}
	list[0].Tags["k"] = "changed after List"
	s.await(r, "arith", want)
}
