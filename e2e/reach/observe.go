package main

import (
	"fmt"

	"github.com/anser-rpc/anser/e2e/internal/say"
)

// watching compares calls that are observed with the same calls that are not.
type watching struct {
	Name string `json:"name"`
	comparison
	BaseName string `json:"base_name"`
	AllCPU   spread `json:"all_cpu_ratio"` // of both processes
}

// subject is a server, and a load for it.
type subject struct {
	name, role, load string
	observe          string // what both sides observe
	program          string // path of another program of this kind; empty: this one
}

// measureObserve compares what calls cost with metrics, with all that can be observed and without
// either; likewise for grpc-go. With --before the calls that nothing observes are compared with
// those of another program.
func measureObserve(o options, r *report) error {
	plain := subject{"nothing", "process-server", "calls", "", ""}
	grpc := subject{"grpc-go, nothing", "process-grpc", "grpc", "", ""}
	pairs := [][2]subject{
		{{"metrics", plain.role, plain.load, say.ObserveMetrics, ""}, plain},
		{{"metrics, traces, tail, page", plain.role, plain.load, say.ObserveAll, ""}, plain},
		{{"grpc-go, otelgrpc", grpc.role, grpc.load, say.ObserveAll, ""}, grpc},
	}
	if o.kitex != "" {
		pairs = append(pairs, [2]subject{{"Kitex, obs-opentelemetry", "kitex", "", say.ObserveAll, o.kitex}, {"Kitex, nothing", "kitex", "", "", o.kitex}})
	}
	if o.before != "" {
		pairs = append([][2]subject{{plain, {"nothing, the other program", plain.role, plain.load, "", o.before}}}, pairs...)
	}
	for _, callers := range []int{100, 1000} {
		for _, pair := range pairs {
			c := &watching{Name: pair[0].name, BaseName: pair[1].name, comparison: comparison{Callers: callers, measure: callsPerS}}
			for i := range o.rounds {
				var f [2]figures
				for j := range pair { // the one that begins changes
					at := (i + j) % 2
					var err error
					if f[at], err = pair[at].run(o, callers); err != nil {
						return fmt.Errorf("%s: %w", pair[at].name, err)
					}
				}
				c.add(f[0], f[1])
			}
			c.end()
			c.AllCPU = spreadOf(c.ratios(allCPU))
			r.Observe = append(r.Observe, c)
		}
	}
	return nil
}

// run starts the server, and makes the calls.
func (s *subject) run(o options, callers int) (f figures, err error) {
	if s.role == "kitex" {
		return s.runKitex(o, callers)
	}
	env := []string{say.ObserveVariable + "=" + s.observe}
	begin := func(args ...string) (*process, error) {
		if s.program != "" {
			return startWith(env, s.program, args...)
		}
		return selfWith(env, args...)
	}
	server, addr, err := answering(begin(s.role))
	if err != nil {
		return f, err
	}
	defer server.stop()
	text := fmt.Sprintf(`{"Addr":%q,"Callers":%d,"Calls":%d}`, addr, callers, o.calls(2*perSecond[s.load], callers))
	before, err := server.cpu()
	if err != nil {
		return f, err
	}
	p, err := begin("process-load", s.load, text)
	if err := once(p, err, &f); err != nil {
		return f, err
	}
	after, err := server.cpu()
	f.ServerCPU = (after - before) * 1e6 / float64(f.Calls)
	return f, err
}
