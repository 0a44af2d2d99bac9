package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/anser-rpc/anser/e2e/internal/say"
)

// passage is a way to a server: directly, or through a gateway.
type passage struct {
	Name string `json:"name"`
	comparison
	// Alone says that there is nothing direct to compare with.
	Alone bool `json:"alone,omitempty"`
}

// party is a process that has a part in a call, and says how much processor time it has used.
type party interface {
	cpu() (seconds float64, err error)
}

func (p *process) cpu() (float64, error) {
	s, err := p.ask(say.CommandStat)
	return s.CPU, err
}

// way is where a load goes: through a gateway, if that is not nil.
type way struct {
	addr            string
	server, between party
}

// loadOn runs a client process on a way.
func loadOn(w way, kind string, callers, calls int) (f figures, err error) {
	text, err := json.Marshal(say.Options{Addr: w.addr, Callers: callers, Calls: calls})
	if err != nil {
		return f, err
	}
	used := func() (all [2]float64, err error) {
		for i, p := range []party{w.server, w.between} {
			if p != nil && err == nil {
				all[i], err = p.cpu()
			}
		}
		return all, err
	}
	before, err := used()
	if err != nil {
		return f, err
	}
	p, err := self("process-load", kind, string(text))
	if err := once(p, err, &f); err != nil {
		return f, err
	}
	after, err := used()
	f.ServerCPU, f.GatewayCPU = (after[0]-before[0])*1e6/float64(f.Calls), (after[1]-before[1])*1e6/float64(f.Calls)
	return f, err
}

// allCPU is what all processes use for a call.
func allCPU(f figures) float64 { return f.ClientCPU + f.GatewayCPU + f.ServerCPU }

// trip is a pair of ways that are compared. Without a direct one, direct is nil.
type trip struct {
	name, kind      string
	through, direct *way
}

// perSecond are the calls of a load, about as many as there are in a second.
var perSecond = map[string]int{"calls": 100_000, "grpc": 25_000, "json": 8_000}

// measureGateway compares calls through gateways with direct ones.
func measureGateway(o options, r *report) error {
	const callers = 100
	trips, stop, err := o.trips()
	defer stop()
	if err != nil {
		return err
	}
	for _, t := range trips {
		r.Gateway = append(r.Gateway, &passage{Name: t.name, Alone: t.direct == nil, comparison: comparison{Callers: callers, measure: allCPU}})
	}
	for range o.rounds {
		for i, t := range trips {
			n := o.calls(perSecond[t.kind], callers)
			var base figures
			if t.direct != nil {
				if base, err = loadOn(*t.direct, t.kind, callers, n); err != nil {
					return fmt.Errorf("%s, direct: %w", t.name, err)
				}
			}
			own, err := loadOn(*t.through, t.kind, callers, n)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			r.Gateway[i].add(own, base)
		}
	}
	for _, p := range r.Gateway {
		if p.end(); p.Alone {
			p.Ratio = spread{}
		}
	}
	return nil
}

// trips starts the servers and gateways. stop must be called in any case.
func (o options) trips() (all []trip, stop func(), err error) {
	var stops []func() error
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	begin := func(role string, args ...string) (*process, string, error) {
		p, addr, err := answering(self(append([]string{role}, args...)...))
		if err == nil {
			stops = append([]func() error{p.stop}, stops...)
		}
		return p, addr, err
	}
	server, at, err := begin("process-protocols")
	if err != nil {
		return nil, stop, err
	}
	door, doorAt, err := begin("process-gateway", at)
	if err != nil {
		return nil, stop, err
	}
	theirs, theirsAt, err := begin("process-grpc")
	if err != nil {
		return nil, stop, err
	}
	theirDoor, theirDoorAt, err := begin("process-grpcgateway", theirsAt)
	if err != nil {
		return nil, stop, err
	}
	direct, through := &way{at, server, nil}, &way{doorAt, server, door}
	all = []trip{
		{"anser to anser", "calls", through, direct},
		{"gRPC to anser", "grpc", through, direct},
		{"JSON to anser", "json", through, direct},
		{"JSON to grpc-go, grpc-gateway", "json", &way{theirDoorAt, theirs, theirDoor}, nil},
	}
	if o.envoy == "" {
		return all, stop, nil
	}
	e, err := startEnvoy(o.envoy, theirsAt)
	if err != nil {
		return nil, stop, err
	}
	stops = append([]func() error{e.stop}, stops...)
	return append(all,
		trip{"gRPC to grpc-go, Envoy", "grpc", &way{e.grpc, theirs, e}, &way{theirsAt, theirs, nil}},
		trip{"JSON to grpc-go, Envoy", "json", &way{e.json, theirs, e}, nil},
	), stop, nil
}

// envoy is Envoy in front of a server of gRPC.
type envoy struct {
	cmd        *exec.Cmd
	dir        string
	grpc, json string // its addresses
}

const envoyConfig = `
static_resources:
  listeners:
  - name: grpc
    address: {socket_address: {address: 127.0.0.1, port_value: %[1]s}}
    filter_chains: [{filters: [{name: http, typed_config: {
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
      stat_prefix: grpc, codec_type: AUTO,
      route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: servers}}]}]},
      http_filters: [
        {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]
  - name: json
    address: {socket_address: {address: 127.0.0.1, port_value: %[2]s}}
    filter_chains: [{filters: [{name: http, typed_config: {
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
      stat_prefix: json, codec_type: AUTO,
      route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: servers}}]}]},
      http_filters: [
        {name: transcoder, typed_config: {
          "@type": type.googleapis.com/envoy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder,
          proto_descriptor: %[3]s, services: [Hello], auto_mapping: true}},
        {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]
  clusters:
  - name: servers
    type: STATIC
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions,
      explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: servers, endpoints: [{lb_endpoints: [{endpoint: {address: {
      socket_address: {address: %[4]s, port_value: %[5]s}}}}]}]}
`

// startEnvoy starts the program at a path, and waits until it listens.
func startEnvoy(path, to string) (*envoy, error) {
	dir, err := os.MkdirTemp("", "anser-envoy-")
	if err != nil {
		return nil, err
	}
	e := &envoy{dir: dir}
	set, err := say.Descriptors()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	var ports [2]string
	for i := range ports {
		addr, err := unusedAddress()
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		_, ports[i], _ = net.SplitHostPort(addr)
	}
	host, port, _ := net.SplitHostPort(to)
	e.grpc, e.json = net.JoinHostPort("127.0.0.1", ports[0]), net.JoinHostPort("127.0.0.1", ports[1])
	descriptors, config := filepath.Join(dir, "hello.pb"), filepath.Join(dir, "envoy.yaml")
	if err := errors.Join(
		os.WriteFile(descriptors, set, 0o600),
		os.WriteFile(config, fmt.Appendf(nil, envoyConfig, ports[0], ports[1], descriptors, host, port), 0o600),
	); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	e.cmd = exec.Command(path, "--config-path", config, "--log-level", "error", "--disable-hot-restart", "--use-dynamic-base-id")
	e.cmd.Stderr = os.Stderr
	if err := e.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := awaitListener(e.json); err != nil {
		return nil, errors.Join(fmt.Errorf("envoy: %w", err), e.stop())
	}
	return e, nil
}

// ticks is the unit of times in /proc.
const ticks = 100

func (e *envoy) cpu() (float64, error) { return processorTime(e.cmd.Process.Pid) }

// processorTime returns the processor time that a process has used, in seconds.
func processorTime(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields", len(fields))
	}
	var user, system float64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return (user + system) / ticks, nil
}

func (e *envoy) stop() error {
	e.cmd.Process.Kill()
	e.cmd.Wait()
	return os.RemoveAll(e.dir)
}
