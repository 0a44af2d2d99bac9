package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/registry"
)

const base = "http://127.0.0.1:1/"

// site is a console of a simulated system.
type site struct {
	sim *simulate.System
	*console.Console
	registry *flaky
}

// flaky is a registry that can be unreachable.
type flaky struct {
	*registry.Memory
	gone atomic.Bool

	mu      sync.Mutex // guards the field below
	watches []context.CancelFunc
}

// cut ends the connections of watches, which begin again when the registry is not gone any more.
func (f *flaky) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, end := range f.watches {
		end()
	}
	f.watches = nil
}

func (f *flaky) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	for {
		watch, cancel := context.WithCancel(ctx)
		f.mu.Lock()
		f.watches = append(f.watches, cancel)
		f.mu.Unlock()
		if err := f.Memory.Watch(watch, service, update, trouble); ctx.Err() != nil {
			return err
		}
		for trouble(errors.New("the connection has ended")); f.gone.Load() && ctx.Err() == nil; {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func (f *flaky) Services(ctx context.Context) ([]string, error) {
	if f.gone.Load() {
		<-ctx.Done()
		return nil, errors.New("no answer")
	}
	return f.Memory.Services(ctx)
}

func open(t *testing.T, services, instances int) *site {
	t.Helper()
	return openSystem(t, simulate.Options{Services: services, Instances: instances, Rate: 100, Base: base})
}

func openSystem(t *testing.T, o simulate.Options) *site {
	t.Helper()
	s := &site{sim: simulate.New(o), registry: &flaky{Memory: registry.NewMemory()}}
	if err := s.sim.Register(t.Context(), s.registry); err != nil {
		t.Fatal(err)
	}
	s.Console = s.start(t)
	return s
}

func (s *site) start(t *testing.T) *console.Console {
	t.Helper()
	c, err := console.New(console.Options{
		Registries: []collect.Source{{Name: "memory://", Kind: "memory", Resolver: s.registry}},
		Client:     &http.Client{Transport: simulate.Transport(s.sim)}, Guard: func(h http.Handler) http.Handler { return h },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// get decodes the answer to a request.
func get[T any](t *testing.T, h http.Handler, path string) (out T) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %v in %.200s", path, err, w.Body)
	}
	return out
}

// advance lets d pass, in steps after which a viewer asks again.
func advance(h http.Handler, d time.Duration) {
	for ; d > 0; d -= time.Second {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/registries", nil))
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

func near(got, want float64) bool { return got > want*0.9 && got < want*1.1 }

func TestSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 5, 4)
		advance(s, 20*time.Second)
		v := get[model.System](t, s, "/api/system")
		if len(v.Services) != 5 || v.Processes.Known != 20 || v.Processes.Read != 20 || len(v.Edges) != 4 || !v.Registries[0].Healthy {
			t.Fatalf("%d services, %d edges, %+v, %+v", len(v.Services), len(v.Edges), v.Processes, v.Registries)
		}
		want := 0.0
		for n := range 4 {
			want += 100 * (0.5 + float64(n)/10) * (1 + 1./2 + 1./3)
		}
		if first := v.Services[0]; !near(get[model.ServiceDetail](t, s, "/api/services/shop.service-000").Service.Rate, want) || first.P50 <= 0 || first.P99 < first.P50 {
			t.Errorf("%+v, want a rate of %.0f", first, want)
		}
		d := get[model.ServiceDetail](t, s, "/api/services/shop.service-000")
		if len(d.Instances) != 4 || len(d.Methods) != 3 || len(d.Callees) != 2 || d.Instances[0].Health != model.Unknown || d.Methods[0].Runs != "inline" {
			t.Errorf("%+v", d)
		}
		if d := get[model.ServiceDetail](t, s, "/api/services/pay.service-001"); len(d.Callers) != 1 || d.Instances[3].Health != model.OK || d.Instances[3].Memory == 0 {
			t.Errorf("%+v", d)
		}
		m := get[model.MethodDetail](t, s, "/api/services/shop.service-000/methods/Items.List")
		if len(m.Instances) != 4 || len(m.Slow) != 4 || m.Slow[0].Service != "shop.service-000" || m.Method.Handle == 0 || m.Method.Codes[0].Code != "ok" {
			t.Errorf("%+v", m)
		}
		for _, path := range []string{"service=shop.service-000", "service=shop.service-000&method=Items.Get", "service=shop.service-000&instance=shop.service-000-1", "edge=shop.service-000>pay.service-001"} {
			h := get[model.Series](t, s, "/api/history?"+path)
			known := 0
			for i, r := range h.Rate {
				if r != nil && *r > 0 && *h.P99[i] > 0 {
					known++
				}
			}
			if h.Step != time.Second || known < 17 {
				t.Errorf("%s: %d steps of %v are known", path, known, h.Step)
			}
		}
		heat := get[model.Heat](t, s, "/api/history/heat?service=shop.service-000&step=10s")
		if len(heat.Bounds) != len(heat.Counts[len(heat.Counts)-2]) || heat.Step != 10*time.Second {
			t.Errorf("%+v", heat)
		}
		if found := get[[]model.Found](t, s, "/api/search?q=items.g"); len(found) == 0 || found[0].Kind != "method" {
			t.Errorf("%+v", found)
		}
		if found := get[json.RawMessage](t, s, "/api/search?q=nothing+has+this+name"); string(found) != "[]" {
			t.Errorf("what is not there is %s", found)
		}
		if trace := get[[]model.Call](t, s, "/api/trace?id=00000000000000000000000000000001"); len(trace) != 4 {
			t.Errorf("%d calls of a trace", len(trace))
		}
	})
}

// Any number of viewers costs the processes as much as one, and no viewer costs less.
func TestViewersCostAsMuchAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 4, 5)
		cost := func(viewers int) int64 {
			ctx, cancel := context.WithCancel(t.Context())
			for range viewers {
				go s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/events?instances=1", nil))
			}
			advance(s, 3*time.Second)
			before := s.Reads()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			cancel()
			return s.Reads() - before
		}
		one := cost(1)
		if many := cost(50); one != 200 || many != one {
			t.Errorf("%d pages were read for a viewer, and %d for 50", one, many)
		}
		time.Sleep(20 * time.Second)
		before := s.Reads()
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if without := s.Reads() - before; without != 120 {
			t.Errorf("%d pages were read without viewers", without)
		}
	})
}

// Processes with little to do are read less often, those of a service that a viewer sees last.
func TestProcessesWithLittleToDo(t *testing.T) {
	for _, c := range []struct {
		cpu                      float64 // of each of 20 processes
		watched, detail, without int64   // pages in ten seconds, and in a minute without a viewer
	}{
		{0.125, 200, 200, 120}, {0.0625, 100, 125, 120}, {0.025, 50, 50, 120}, {0.0001, 40, 40, 40},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := openSystem(t, simulate.Options{Services: 4, Instances: 5, Rate: 100, CPU: c.cpu, Base: base})
			reads := func(path string, d time.Duration) int64 {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if path != "" {
					go s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
				}
				time.Sleep(30 * time.Second)
				synctest.Wait()
				before := s.Reads()
				time.Sleep(d)
				synctest.Wait()
				return s.Reads() - before
			}
			time.Sleep(3 * time.Second) // the services are known
			if got := reads("/api/events", 10*time.Second); got != c.watched {
				t.Errorf("%v processors: %d pages were read for a viewer, want %d", c.cpu, got, c.watched)
			}
			if got := reads("/api/events?instances=1&service=shop.service-000", 10*time.Second); got != c.detail {
				t.Errorf("%v processors: %d pages were read for a viewer of a service, want %d", c.cpu, got, c.detail)
			}
			if got := reads("", time.Minute); got != c.without {
				t.Errorf("%v processors: %d pages were read without viewers, want %d", c.cpu, got, c.without)
			}
			// A viewer that comes sees the present.
			before := s.Reads()
			get[model.System](t, s, "/api/system")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got := s.Reads() - before; got < 20 {
				t.Errorf("%v processors: %d pages were read for a viewer that has just come", c.cpu, got)
			}
		})
	}
}

// A service that has changed is read every second for a while.
func TestChangedServicesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openSystem(t, simulate.Options{Services: 4, Instances: 5, Rate: 100, CPU: 0.025, Base: base})
		go s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/events", nil))
		time.Sleep(30 * time.Second)
		s.registry.Deregister(t.Context(), s.sim.Instance(0))
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		before := s.Reads()
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if got := s.Reads() - before; got != 4*8+15*2 {
			t.Errorf("%d pages were read", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		before = s.Reads()
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if got := s.Reads() - before; got != 19*2 {
			t.Errorf("%d pages were read later", got)
		}
	})
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, 2)
		advance(s, 3*time.Second)
		in, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.ServeHTTP(&piped{out, make(http.Header)}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/events?instances=1&service=pay.service-001", nil))
			out.Close()
		}()
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<20)
		next := func(want string, v any) {
			for lines.Scan() {
				if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
					lines.Scan()
					if name != want {
						continue
					}
					if err := json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), v); err != nil {
						t.Fatal(err)
					}
					return
				}
			}
			t.Fatalf("no event %s: %v", want, lines.Err())
		}
		var system model.System
		var instances []model.Instance
		var update model.Update
		next("system", &system)
		next("instances", &instances)
		if len(system.Services) != 3 || len(instances) != 2 {
			t.Errorf("%d services, %d instances", len(system.Services), len(instances))
		}
		gone := s.sim.Instance(1)
		s.registry.Deregister(t.Context(), gone)
		for len(update.Changes) == 0 {
			next("update", &update)
		}
		if c := update.Changes[0]; c.Kind != model.Left || c.Instance != gone.ID {
			t.Errorf("%+v", c)
		}
		cancel()
		in.Close() // the server may be writing
		<-done
	})
}

// piped is a response that a test reads while it is written.
type piped struct {
	io.Writer
	header http.Header
}

func (p *piped) Header() http.Header { return p.header }
func (p *piped) WriteHeader(int)     {}
func (p *piped) Flush()              {}

// What is not known any more is marked within two seconds, and a console that starts again sees
// the same system without inventing changes.
func TestOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, 2)
		advance(s, 5*time.Second)
		s.registry.gone.Store(true)
		advance(s, 2*time.Second)
		v := get[model.System](t, s, "/api/system")
		if v.Registries[0].Healthy || v.Services[0].Stale.IsZero() || v.Services[0].Instances != 2 || v.Services[0].Rate == 0 {
			t.Errorf("%+v, %+v", v.Registries, v.Services[0])
		}
		s.registry.gone.Store(false)
		advance(s, 2*time.Second)
		if v = get[model.System](t, s, "/api/system"); !v.Registries[0].Healthy || !v.Services[0].Stale.IsZero() {
			t.Errorf("%+v, %+v", v.Registries, v.Services[0])
		}
		s.sim.Hook(0, simulate.Hook{Serve: http.NotFoundHandler()})
		advance(s, 2*time.Second)
		if in := instances(t, s, "service=shop.service-000"); in[0].Stale.IsZero() || in[0].Why == "" || !in[1].Stale.IsZero() {
			t.Errorf("%+v", in)
		}
		if list := get[[]model.Change](t, s, "/api/changes"); len(list) != 3 {
			t.Errorf("%+v", list)
		}
		s.Close()
		s.Console = s.start(t)
		advance(s, 2*time.Second)
		v = get[model.System](t, s, "/api/system")
		if len(v.Services) != 3 || v.Services[1].Rate == 0 || len(v.Changes) != 0 {
			t.Errorf("after a restart: %+v, %+v", v.Changes, v.Services[1])
		}
	})
}

// A page that lies harms what is known about its own instance at most.
func TestPagesThatLie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, 12)
		advance(s, 3*time.Second)
		long := strings.Repeat("A\x1b[31m\n<script>", 1<<16)
		counts := make([]uint64, 30_000)
		for i := range counts {
			counts[i] = 1 << 63
		}
		fell := uint64(1 << 40)
		for n, change := range []func(*admin.Document){
			func(d *admin.Document) { d.Process.ID = "0000000000000009" }, // that of instance 8
			func(d *admin.Document) { fell /= 2; d.Methods[0].Codes[0].Times.Count = fell },
			func(d *admin.Document) { d.Methods[0].Codes[0].Times.Counts = counts },
			func(d *admin.Document) { d.Time = d.Time.Add(time.Duration(d.Time.Second()%2) * 1000 * time.Hour) },
			func(d *admin.Document) { d.Process.Name, d.Methods[0].Name = long, long },
			func(d *admin.Document) { d.Servers[0].Methods[0].Running, d.Servers[0].InFlight = -1<<62, -1<<62 },
		} {
			s.sim.Hook(n, simulate.Hook{Change: change})
		}
		s.sim.Hook(6, simulate.Hook{Serve: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })})
		s.sim.Hook(7, simulate.Hook{Serve: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				w.Write(make([]byte, 1<<20))
			}
		})})
		s.sim.Hook(9, simulate.Hook{Serve: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"format":1,"servers":[`+strings.Repeat("{},", 100_000)+`{}]}`)
		})})
		s.sim.Hook(10, simulate.Hook{Serve: http.RedirectHandler("http://169.254.169.254/", http.StatusFound)})
		advance(s, 12*time.Second)
		d := get[model.ServiceDetail](t, s, "/api/services/shop.service-000")
		if honest := 100 * (0.5 + 0.8) * (1 + 1./2 + 1./3); !near(rateOf(d, "-9"), honest) {
			t.Errorf("the honest instance has the rate %v, want %v", rateOf(d, "-9"), honest)
		}
		if d.Service.Rate > 5000 || d.Service.InFlight < 0 {
			t.Errorf("the service has %+v", d.Service)
		}
		if want := 100 * (0.5 + 0.3) * (1 + 1./2 + 1./3); !near(rateOf(d, "-4"), want) {
			t.Errorf("with a clock that jumps the rate is %v, want %v", rateOf(d, "-4"), want)
		}
		for _, id := range []string{"-7", "-8", "-10", "-11"} {
			if in := instance(d, id); in.Stale.IsZero() || in.Why == "" {
				t.Errorf("%s is not marked: %+v", id, in)
			}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/services/shop.service-000", nil))
		if body := w.Body.String(); strings.Contains(body, "<script") || strings.Contains(body, `\u001b`) || len(body) > 40_000 {
			t.Errorf("a hostile name is left, or %d bytes", len(body))
		}
	})
}

func instance(d model.ServiceDetail, suffix string) model.Instance {
	for _, in := range d.Instances {
		if strings.HasSuffix(in.ID, suffix) {
			return in
		}
	}
	return model.Instance{}
}

func rateOf(d model.ServiceDetail, suffix string) float64 { return instance(d, suffix).Rate }

// A thousand instances take bounded memory.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 100, 10)
		used := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		advance(s, 3*time.Second)
		before := used()
		advance(s, 4*time.Second)
		after := used()
		t.Logf("%d MB, then %d MB", before>>20, after>>20)
		if v := get[model.System](t, s, "/api/system"); len(v.Services) != 100 || v.Processes.Read != 1000 {
			t.Errorf("%+v", v.Processes)
		}
		if after > 400<<20 || after > before+100<<20 {
			t.Errorf("%d MB after 3 s and %d MB after 7 s", before>>20, after>>20)
		}
		// Answers are kept until the next round, and a viewer may ask for as many URLs as it likes.
		for n := range 200 {
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, fmt.Sprintf("/api/instances?n=%d", n), nil))
		}
		if asked := used(); asked > after+50<<20 {
			t.Errorf("%d MB, and %d MB after many requests in a second", after>>20, asked>>20)
		}
	})
}

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, 1)
		advance(s, 2*time.Second)
		for path, want := range map[string]int{
			"/api/services/none": 404, "/api/services/shop.service-000/methods/None": 404, "/api/history": 400, "/api/history?service=a&step=x": 400,
			"/api/history?service=a&from=yesterday": 400, "/api/history/heat?edge=a>b": 400, "/api/trace": 400, "/api/calls?kind=x": 400, "/api/none": 404,
			"/api/changes?before=x": 400, "/api/instances?look=fine": 400, "/api/instances?sort=luck": 400, "/api/instances?offset=-1": 400, "/api/instances?limit=x": 400,
			"/api/instances/map?by=luck": 400, "/api/services/shop.service-000/effect?by=luck": 400, "/api/services/shop.service-000/effect?version=x": 400, "/api/services/none/effect": 404, "/api/connections?service=x": 404, "/api/calls/live?service=x": 404,
			"/api/history?service=none": 200, "/api/connections?service=shop.service-000": 200, "/api/history?service=a&from=2020-01-01T00:00:00Z&step=-1": 400,
		} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			var problem respond.Error
			if json.Unmarshal(w.Body.Bytes(), &problem); w.Code != want || want >= 400 && problem.Text == "" {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		if _, err := console.New(console.Options{}); err == nil {
			t.Error("a console without a guard has started")
		}
	})
}
