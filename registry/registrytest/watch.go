package registrytest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

var watchCases = []testCase{
	{"EmptyServiceHasEmptyList", Announcing, emptyServiceHasEmptyList},
	{"WatchWithoutGap", Announcing, watchWithoutGap},
	{"ManyWriters", Announcing, manyWriters},
	{"SlowUpdateMissesNothing", Announcing, slowUpdateMissesNothing},
	{"WatchEndsWithContext", Announcing, watchEndsWithContext},
	{"ManyWatchesAtOnce", Announcing, manyWatchesAtOnce},
}

func emptyServiceHasEmptyList(s *suite) {
	r, other := s.open(), s.open()
	w := s.watch(r, "nobody", nil)
	w.await(s.Patience)
	s.register(other, numbered("somebody", 1))
	in := numbered("nobody", 1)
	s.register(other, in)
	w.await(s.Patience, in)
	s.deregister(other, in)
	w.await(s.Patience)
}

// watchWithoutGap starts watches while a writer makes changes quickly. A registry that lists first
// and watches later, or the other way round, without connecting the two, loses the changes in
// between.
func watchWithoutGap(s *suite) {
	writer := s.open()
	const changes, every = 120, 6
	counter := registry.Instance{ID: "counter", Service: "arith", Address: "10.0.0.1:1"}
	var watchers []*watcher
	for i := 1; i <= changes; i++ {
		if i%every == 0 {
			watchers = append(watchers, s.watch(s.open(), "arith", nil))
		}
		counter.Tags = map[string]string{"n": strconv.Itoa(i)}
		s.register(writer, counter)
		if flicker := numbered("arith", i%7); i%2 == 0 {
			s.register(writer, flicker)
		} else {
			s.deregister(writer, flicker)
		}
	}
	ctx, cancel := s.context()
	defer cancel()
	final, err := registry.List(ctx, writer, "arith")
	if err != nil {
		s.Fatal(err)
	}
	for _, w := range watchers {
		w.await(s.Patience, slices.Clone(final)...)
		w.checkCounterGrows()
	}
}

// checkCounterGrows checks that no list is older than the one before.
func (w *watcher) checkCounterGrows() {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := 0
	for _, list := range w.lists {
		i := slices.IndexFunc(list, func(in registry.Instance) bool { return in.ID == "counter" })
		if i < 0 {
			if last > 0 {
				w.t.Error("an instance that was only ever replaced was missing in between")
			}
			continue
		}
		n, _ := strconv.Atoi(list[i].Tags["n"])
		if n < last {
			w.t.Errorf("a list went back in time: %d after %d", n, last)
		}
		last = n
	}
}

func manyWriters(s *suite) {
	const writers, rounds = 6, 15
	reader := s.open()
	w := s.watch(reader, "arith", nil)
	var wg sync.WaitGroup
	var want []registry.Instance
	for i := range writers {
		r, in := s.open(), numbered("arith", i)
		in.Weight = rounds
		want = append(want, in)
		wg.Go(func() {
			for round := 1; round <= rounds; round++ {
				in.Weight = round
				if err := r.Register(context.Background(), in); err != nil {
					s.Errorf("Register: %v", err)
				}
				if round%5 == 0 && round < rounds {
					if err := r.Deregister(context.Background(), in); err != nil {
						s.Errorf("Deregister: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	s.await(reader, "arith", slices.Clone(want)...)
	w.await(s.Patience, want...)
}

func slowUpdateMissesNothing(s *suite) {
	r, other := s.open(), s.open()
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := s.watch(other, "arith", func([]registry.Instance) {
		once.Do(func() { close(entered); <-release })
	})
	select {
	case <-entered:
	case <-time.After(s.Patience):
		s.Fatal("Watch did not call update")
	}
	var want []registry.Instance
	for i := range 30 {
		s.register(r, numbered("arith", i))
		if i%3 == 0 {
			want = append(want, numbered("arith", i))
		} else {
			s.deregister(r, numbered("arith", i))
		}
	}
	close(release)
	w.await(s.Patience, want...)
}

func watchEndsWithContext(s *suite) {
	r, writer := s.open(), s.open()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	never := func([]registry.Instance) { s.Error("update although the context had ended") }
	if err := r.Watch(ended, "arith", never, nil); !errors.Is(err, context.Canceled) {
		s.Errorf("Watch with an ended context = %v, want its error", err)
	}
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	s.within(s.Patience, "Watch with a deadline", func() {
		if err := r.Watch(short, "arith", func([]registry.Instance) {}, nil); !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("Watch with a deadline = %v, want its error", err)
		}
	})
	w, stays := s.watch(r, "arith", nil), s.watch(r, "arith", nil)
	w.await(s.Patience)
	stays.await(s.Patience)
	w.cancel()
	if err := w.awaitEnd(s.Patience); !errors.Is(err, context.Canceled) {
		s.Errorf("Watch ended with %v, want the context's error", err)
	}
	before, _ := w.counts()
	s.register(writer, numbered("arith", 1))
	stays.await(s.Patience, numbered("arith", 1)) // another watch of the same registry continues
	if after, _ := w.counts(); after != before {
		s.Error("update after Watch returned")
	}
}

func manyWatchesAtOnce(s *suite) {
	r, writer := s.open(), s.open()
	var watchers []*watcher
	for i := range 60 {
		watchers = append(watchers, s.watch(r, "arith"+strconv.Itoa(i%20), nil))
	}
	for i := range 20 {
		s.register(writer, numbered("arith"+strconv.Itoa(i), i))
	}
	for i, w := range watchers {
		w.await(s.Patience, numbered("arith"+strconv.Itoa(i%20), i%20))
	}
}
