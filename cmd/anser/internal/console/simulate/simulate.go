// Package simulate has systems of many services and instances in one process: their admin pages are
// real documents with counters that grow, and nothing is behind them. Tests of the console use it.
package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry"
)

// Options are the size of a system.
type Options struct {
	Services  int
	Instances int     // of each service
	Rate      float64 // calls per second that each instance serves, before it is varied
	CPU       float64 // processors that each instance uses; 0 means 0.1
	// Base is the URL below which the pages are, such as http://127.0.0.1:1234/.
	Base string
}

// System is a simulated system. Its methods are safe for concurrent use.
type System struct {
	o     Options
	began time.Time

	mu    sync.Mutex // guards the fields below
	hooks map[int]Hook
	cpu   map[int]used
}

// used is the processor time of an instance until a time, and the processors that it uses since.
type used struct {
	until      time.Time
	seconds    float64
	processors float64
}

func (u used) at(t time.Time) time.Duration {
	return time.Duration((u.seconds + t.Sub(u.until).Seconds()*u.processors) * 1e9)
}

// Hook answers for the page of an instance in place of the system, or changes what it says.
type Hook struct {
	Serve  http.Handler          // nil: the system's answer
	Change func(*admin.Document) // nil: none
}

// New returns a system.
func New(o Options) *System {
	return &System{o: o, began: time.Now(), hooks: make(map[int]Hook), cpu: make(map[int]used)}
}

// Use changes how many processors the instance n uses from now on.
func (s *System) Use(n int, processors float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.cpu[n] = used{now, s.usedLocked(n).at(now).Seconds(), processors}
}

func (s *System) usedLocked(n int) used {
	if u, ok := s.cpu[n]; ok {
		return u
	}
	return used{s.began.Add(-time.Hour), 0, cmp.Or(s.o.CPU, 0.1)}
}

// Hook sets what is different about the instance n, counted over all services.
func (s *System) Hook(n int, h Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[n] = h
}

// Service returns the name of a service.
func (s *System) Service(i int) string {
	groups := [...]string{"shop", "pay", "search", "mail", "stock"}
	return fmt.Sprintf("%s.service-%03d", groups[i%len(groups)], i)
}

// Instance returns the instance n, counted over all services.
func (s *System) Instance(n int) registry.Instance {
	service, k := n/s.o.Instances, n%s.o.Instances
	return registry.Instance{
		ID: fmt.Sprintf("%s-%d", s.Service(service), k+1), Service: s.Service(service), Address: fmt.Sprintf("10.%d.%d.%d:8972", n>>16&255, n>>8&255, n&255),
		Zone: "zone-" + string(rune('a'+k%3)), Version: fmt.Sprintf("1.%d", k%2), Tags: map[string]string{admin.Tag: s.o.Base + strconv.Itoa(n) + "/"},
	}
}

// Register announces all instances.
func (s *System) Register(ctx context.Context, r registry.Registrar) error {
	for n := range s.o.Services * s.o.Instances {
		if err := r.Register(ctx, s.Instance(n)); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP serves the pages of all instances.
func (s *System) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	n, err := strconv.Atoi(parts[0])
	if err != nil || n < 0 || n >= s.o.Services*s.o.Instances || len(parts) != 2 {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	h := s.hooks[n]
	s.mu.Unlock()
	if h.Serve != nil {
		h.Serve.ServeHTTP(w, r)
		return
	}
	d := s.Document(n)
	if h.Change != nil {
		h.Change(d)
	}
	if parts[1] == "figures.json" && h.Change == nil {
		since(d, r.URL.Query().Get("since"))
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(d)
}

// since leaves out what a reader with a state has: of these documents the methods alone change.
func since(d *admin.Document, state string) {
	d.State = d.Process.ID + ".1"
	if d.State != state {
		d.Changed = []string{admin.PartServers, admin.PartClients, admin.PartFailures, admin.PartSlow}
		return
	}
	d.Since, d.Clients, d.Failures, d.Slow = state, nil, nil, nil
	for i := range d.Servers {
		d.Servers[i].Methods, d.Servers[i].Announcements = nil, nil
	}
}

// Document returns what the page of an instance says now.
func (s *System) Document(n int) *admin.Document {
	now := time.Now()
	in := s.Instance(n)
	service := n / s.o.Instances
	elapsed := now.Sub(s.began).Seconds() + 3600
	s.mu.Lock()
	cpu := s.usedLocked(n).at(now)
	s.mu.Unlock()
	rate := s.o.Rate * (0.5 + float64(n%11)/10)
	d := &admin.Document{Format: admin.Format, Time: now}
	d.Process = admin.Process{
		ID: fmt.Sprintf("%016x", n+1), Name: in.ID, Services: []string{in.Service}, Host: "simulated", PID: n + 1, Started: s.began, Go: "go1.26",
		CPU: cpu, Processors: 2, Memory: 40 << 20, Heap: 8 << 20, Goroutines: 20 + n%7,
	}
	server := admin.Server{Addresses: []string{in.Address}, Conns: 3, InFlight: int64(n % 4)}
	server.Announcements = []admin.Announcement{{Instance: in, Registered: true}}
	for k, name := range [...]string{"Items.Get", "Items.List", "Items.Put"} {
		share := rate / float64(1+k)
		m := admin.Method{Side: "server", Name: name, Codes: []admin.Series{{Code: anser.OK, Times: times(share*elapsed, n+k)}}}
		m.Queue, m.Handle = time.Duration(share*elapsed*2e4), time.Duration(share*elapsed*4e5)
		if n%23 == 0 {
			m.Codes = append(m.Codes, admin.Series{Code: anser.Unavailable, Times: times(share*elapsed/50, n)})
		}
		d.Methods = append(d.Methods, m)
		server.Methods = append(server.Methods, admin.ServedMethod{Name: name, Runs: "inline", Idempotent: k < 2})
	}
	d.Servers = []admin.Server{server}
	for _, to := range s.callees(service) {
		m := admin.Method{Side: "client", Target: "etcd://127.0.0.1:2379/" + s.Service(to), Service: s.Service(to), Name: "Items.Get"}
		m.Codes = []admin.Series{{Code: anser.OK, Times: times(rate*elapsed/2, n+3)}}
		d.Methods = append(d.Methods, m)
		c := admin.Client{Target: m.Target, Service: m.Service}
		for k := range s.o.Instances {
			c.Instances = append(c.Instances, admin.Instance{Instance: s.Instance(to*s.o.Instances + k), Status: "connected"})
		}
		d.Clients = append(d.Clients, c)
	}
	trace := fmt.Sprintf("%032x", service+1)
	d.Slow = &admin.Calls{Calls: []*telemetry.Call{{Time: s.began, Side: "server", Method: "Items.List", Peer: "10.0.0.1:1", Duration: 40 * time.Millisecond, Handle: 39 * time.Millisecond, TraceID: trace}}}
	d.Failures = &admin.Calls{Calls: []*telemetry.Call{}}
	return d
}

// callees returns the services that a service calls: those after it, so that the drawing has
// layers.
func (s *System) callees(service int) (list []int) {
	for _, to := range [...]int{2*service + 1, 2*service + 2, service + 7} {
		if to < s.o.Services {
			list = append(list, to)
		}
	}
	return list
}

// times returns a histogram of n calls around a millisecond.
func times(n float64, shift int) admin.Histogram {
	weights := [...]float64{1, 4, 10, 20, 25, 18, 10, 6, 3, 1.5, 0.8, 0.4, 0.2, 0.1}
	h := admin.Histogram{Scale: telemetry.Scale, First: -88 + shift%6}
	for _, w := range weights {
		k := uint64(n * w / 100)
		h.Counts = append(h.Counts, k)
		h.Count += k
	}
	h.Sum = time.Duration(h.Count) * time.Millisecond
	return h
}

// Transport returns a transport that calls a handler in place of a network.
func Transport(h http.Handler) http.RoundTripper { return transport{h} }

type transport struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	t.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}
