package console

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/telemetry"
)

// Limits of samples.
const (
	sampleFor   = 3 * time.Second
	samplesKept = 10 * time.Second // for which the same samples are used again
	samplePace  = "100"            // calls per second of each process
	maxCallers  = 32               // processes that are asked
	maxSamples  = 5000
)

// SampledCall is a call that a process has made while it was followed.
type SampledCall struct {
	*telemetry.Call
	Process string
	Caller  *model.Instance // that has made it; nil for a process that is no instance
}

// Samples are the calls to a service that its callers made within some seconds.
type Samples struct {
	Calls     []SampledCall
	Processes int // that have sent their calls
}

// sampleCache keeps samples for a moment, so that many viewers cost as much as one.
type sampleCache struct {
	mu    sync.Mutex // guards the field below
	lists map[string]*sampleList
}

type sampleList struct {
	once sync.Once
	at   time.Time
	Samples
}

func (s *sampleCache) get(service string) *sampleList {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lists[service]
	if l == nil || time.Since(l.at) > samplesKept {
		if s.lists == nil || len(s.lists) >= maxCached {
			s.lists = make(map[string]*sampleList)
		}
		l = &sampleList{at: time.Now()}
		s.lists[service] = l
	}
	return l
}

func (s *sampleCache) drop(service string, l *sampleList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists[service] == l {
		delete(s.lists, service)
	}
}

// Sample follows the calls to a service for three seconds, on the admin pages of the processes that
// call it. Samples that are at most ten seconds old are returned at once. The result is shared: do
// not change it.
func (c *Console) Sample(service string) Samples {
	l := c.samples.get(service)
	l.once.Do(func() { l.Samples = c.followCallers(service) })
	if l.Processes == 0 {
		c.samples.drop(service, l) // there may be calls at once
	}
	return l.Samples
}

func (c *Console) followCallers(service string) (out Samples) {
	ctx, cancel := context.WithTimeout(c.ctx, sampleFor)
	defer cancel()
	s := c.current()
	var mu sync.Mutex // guards out
	var wg sync.WaitGroup
	asked := 0
	for _, p := range s.round.Processes {
		targets := targetsOf(p, service)
		if len(targets) == 0 || p.Error != "" || p.Double || asked == maxCallers {
			continue
		}
		asked++
		wg.Go(func() {
			n := 0
			q := url.Values{"side": {"client"}, "rate": {samplePace}, "for": {sampleFor.String()}}
			c.collector.Reader().Follow(ctx, p.Address, q, func(call *telemetry.Call, _ uint64) { //nits:ignore errcheck its calls so far count
				mu.Lock()
				defer mu.Unlock()
				if targets[model.Text(call.Target)] && len(out.Calls) < maxSamples {
					out.Calls = append(out.Calls, SampledCall{collect.Clean(call), p.Name, s.callerOf(p)})
					n++
				}
			})
			mu.Lock()
			defer mu.Unlock()
			if n > 0 {
				out.Processes++
			}
		})
	}
	wg.Wait()
	return out
}

// targetsOf returns the targets of the clients of a process that call a service.
func targetsOf(p *collect.Process, service string) map[string]bool {
	targets := make(map[string]bool)
	for i := range p.Clients {
		if p.Clients[i].Service == service {
			targets[p.Clients[i].Target] = true
		}
	}
	return targets
}

// callerOf returns the instance that a process is, or nil.
func (s *snapshot) callerOf(p *collect.Process) *model.Instance {
	for _, place := range p.Found {
		if in := s.instance(place.Service, place.Instance); in != nil {
			return &in.Instance
		}
	}
	return nil
}

// CallersOf returns the instances that call a service and serve a method. Others need not be asked
// for it, and would count the call as one that has failed.
func (c *Console) CallersOf(service, method string) (list []model.Instance) {
	s := c.current()
	for _, p := range s.round.Processes {
		if len(targetsOf(p, service)) > 0 && !p.Double && hasMethod(p, method) {
			if in := s.callerOf(p); in != nil {
				list = append(list, *in)
			}
		}
	}
	return list
}

func hasMethod(p *collect.Process, name string) bool {
	return slices.ContainsFunc(p.Methods, func(m collect.Method) bool {
		return m.Side == "server" && m.Name == name && len(m.Served) > 0
	})
}
