package cache_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/interceptor/cache"
)

// model is a simple model of the cache: a list with the most recently used entry at its end.
type model struct {
	list    []kept
	version int
}

type kept struct {
	name    string
	version int
	ends    time.Time
	gone    time.Time
}

const (
	modelEntries = 3
	modelTTL     = 60 * time.Second
	modelStale   = 20 * time.Second
)

// get returns the version that a call gets, and the number of handlers that run for it.
func (m *model) get(name string, now time.Time) (version, runs int) {
	i := slices.IndexFunc(m.list, func(k kept) bool { return k.name == name })
	fresh := kept{name, m.version, now.Add(modelTTL), now.Add(modelTTL + modelStale)}
	if i < 0 || !now.Before(m.list[i].gone) {
		if i >= 0 {
			m.list = slices.Delete(m.list, i, i+1)
		}
		m.list = append(m.list, fresh)
		if len(m.list) > modelEntries {
			m.list = m.list[1:]
		}
		return m.version, 1
	}
	k := m.list[i]
	m.list = append(slices.Delete(m.list, i, i+1), k)
	if now.Before(k.ends) {
		return k.version, 0
	}
	m.list[len(m.list)-1] = fresh // in the background, before the next step
	return k.version, 1
}

func (m *model) forget(name string) {
	m.list = slices.DeleteFunc(m.list, func(k kept) bool { return name == "" || k.name == name })
}

// step is one action.
type step struct {
	what    string
	name    string
	seconds int
}

func (m *model) check(k *cache.Cache, c *anser.Client, svc *service, s step) error {
	switch s.what {
	case "get":
		before := svc.runs.Load()
		want, runs := m.get(s.name, time.Now())
		out, err := anser.Call[reply](context.Background(), c, "Catalog.Get", &request{Name: s.name})
		if err != nil {
			return err
		}
		synctest.Wait() // for the work in the background
		if ran := int(svc.runs.Load() - before); out.Version != want || out.List[0] != s.name || ran != runs {
			return fmt.Errorf("%+v after %d runs, want version %d after %d", out, ran, want, runs)
		}
	case "wait":
		time.Sleep(time.Duration(s.seconds) * time.Second)
	case "change":
		m.version++
		svc.version.Store(int64(m.version))
	case "forget one":
		had := len(m.list)
		m.forget(s.name)
		if n, err := k.ForgetRequest("Catalog.Get", &request{Name: s.name}); err != nil || n != had-len(m.list) {
			return fmt.Errorf("forgot %d, %v, want %d", n, err, had-len(m.list))
		}
	case "forget all":
		m.forget("")
		k.Forget("Catalog.Get")
	}
	if st := k.Stats(); st.Entries != len(m.list) || (st.Entries > 0) != (st.Bytes > 0) {
		return fmt.Errorf("%+v, want %d entries", st, len(m.list))
	}
	return nil
}

// TestModel compares the cache with the model, step by step.
func TestModel(t *testing.T) {
	steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
		return step{
			rapid.SampledFrom([]string{"get", "get", "get", "get", "wait", "change", "forget one", "forget all"}).Draw(rt, "what"),
			rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "name"),
			rapid.IntRange(1, 50).Draw(rt, "seconds"),
		}
	}), 1, 100)
	rapid.Check(t, func(rt *rapid.T) {
		var failed error
		list := steps.Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			network, svc := new(ansertest.Network), new(service)
			k := newCache(t, cache.Jitter(0), cache.Stale(modelStale), cache.MaxEntries(modelEntries))
			c := start(t, network.Listen("a:1"), svc, nil, anser.Dialer(network.Dial), anser.Intercept(k.Intercept))
			m := new(model)
			for i, s := range list {
				if err := m.check(k, c, svc, s); err != nil {
					failed = fmt.Errorf("step %d, %+v: %w", i, s, err)
					return
				}
			}
		})
		if failed != nil {
			rt.Fatal(failed)
		}
	})
}

// The limits hold for any sequence of calls, and the counters match the entries.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, svc := new(ansertest.Network), new(service)
		k := newCache(t, cache.MaxEntries(50), cache.MaxBytes(20_000), cache.MaxEntry(8000))
		c := start(t, network.Listen("a:1"), svc, nil, anser.Dialer(network.Dial), anser.Intercept(k.Intercept))
		for i := range 2000 {
			in := []byte(fmt.Sprint(i % 97))
			in = append(in, make([]byte, i*i%4500)...)
			if _, err := anser.Call[[]byte](t.Context(), c, "Catalog.Bytes", &in); err != nil {
				t.Fatal(err)
			}
			if st := k.Stats(); st.Entries > 50 || st.Bytes > 20_000 || st.Bytes < 0 {
				t.Fatalf("%+v", st)
			}
		}
		st := k.Stats()
		if st.Evicted == 0 || st.TooLarge == 0 || st.Stored-st.Evicted != int64(st.Entries) {
			t.Errorf("%+v", st)
		}
		k.Clear()
		if st := k.Stats(); st.Entries != 0 || st.Bytes != 0 {
			t.Errorf("%+v is left", st)
		}
	})
}
