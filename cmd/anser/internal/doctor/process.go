package doctor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/route"
)

// mostMethods is the number of methods of a service for which a process is asked.
const mostMethods = 50

// Process examines the clients of a running process that serves route.ServeExplain: their open
// breakers, ejected instances and rules, for the services with these methods.
func (c *Config) Process(ctx context.Context, address string, services []Service) *Group {
	p := &process{findings: new(findings), config: c, address: address, said: make(map[string]bool)}
	p.examine(ctx, services)
	return &Group{Name: "clients in " + plain(address), Findings: p.list}
}

// Service is a service with the methods that its servers describe.
type Service struct {
	Name    string
	Methods []string
}

// process examines the clients of a process.
type process struct {
	*findings
	config  *Config
	address string
	said    map[string]bool // findings about several methods, once
}

func (p *process) examine(ctx context.Context, services []Service) {
	opts := append([]anser.DialOption{anser.Codec(new(codec.JSON))}, p.config.Dial...)
	client, err := target.Dial(p.address, p.config.Source, opts...)
	if err != nil {
		p.once("clients", Fail, "use host:port", err.Error())
		return
	}
	defer client.Close()
	asked := false
	for _, s := range services {
		methods := s.Methods
		if len(methods) == 0 {
			methods = []string{anser.MethodsName}
		}
		before, pick := len(p.list), ""
		for _, method := range methods[:min(len(methods), mostMethods)] {
			x, err := p.ask(ctx, client, s.Name, method)
			if failed, ok := errors.AsType[*anser.Error](err); ok && failed.Code == anser.NotFound {
				break // the process has no client for this service
			}
			if err != nil {
				p.failed(err)
				return
			}
			asked, pick = true, x.Pick
			p.explained(s.Name, x)
		}
		if pick != "" && !p.bad(before) {
			p.pass("clients", "calls of %s can go to all instances", s.Name)
		}
	}
	if !asked {
		p.note("clients", "the process has no client for the services that were examined")
	}
}

// bad reports whether there are warnings or failures from that finding on.
func (p *process) bad(from int) bool {
	return slices.ContainsFunc(p.list[from:], func(f Finding) bool { return f.Status != Note && f.Status != Pass })
}

// ask asks the process where a call would go.
func (p *process) ask(ctx context.Context, client *anser.Client, service, method string) (*anser.Explanation, error) {
	ctx, cancel := p.config.within(ctx)
	defer cancel()
	x := new(anser.Explanation)
	err := client.Call(ctx, route.ExplainMethod, &route.ExplainRequest{Service: service, Method: method}, x, anser.WithFailMode(anser.Failfast))
	return x, err
}

func (p *process) failed(err error) {
	if failed, ok := errors.AsType[*anser.Error](err); ok && failed.Code == anser.Unimplemented {
		p.once("clients", Warn, "serve route.ServeExplain in the process", p.address+" does not explain its clients")
		return
	}
	p.once("clients", Fail, "check the address, with anser doctor "+p.address, p.address+" cannot be asked: "+err.Error())
}

// once adds a finding, unless it is known.
func (p *process) once(check string, s Status, advice, text string) {
	if !p.said[text] {
		p.said[text] = true
		p.add(check, s, advice, "%s", text)
	}
}

// explained reports what a client says about the instances of a service.
func (p *process) explained(service string, x *anser.Explanation) {
	for i := range x.Instances {
		in := &x.Instances[i]
		name := in.Key + " of " + service
		switch in.Cause {
		case anser.ExcludedBreaker:
			p.once("breakers", Warn, "look at the errors of this instance: the breaker closes when calls succeed", "the breaker of "+name+" is open"+since(in.Since)+": "+in.Excluded)
		case anser.ExcludedEjected:
			p.once("breakers", Warn, "look at this instance: it comes back when it answers again", name+" is ejected"+since(in.Since)+": "+in.Excluded)
		case anser.ExcludedDown:
			p.once("instances", Warn, "look at the network between this process and the instance", "the process does not reach "+name+": "+in.Excluded)
		case anser.ExcludedInvalid:
			p.once("registry.records", Warn, "correct the record", "the record of "+name+" is not valid: "+in.Excluded)
		}
	}
	if x.Trouble != "" {
		p.once("rules", Warn, "correct the rules, or look at the registry", "newer rules of "+service+" cannot be used: "+x.Trouble)
	}
	if x.RulesNotFollowed {
		p.once("rules", Note, "give the client the option route.Rules if it is meant to", "the client of "+service+" does not follow traffic rules, which the registry keeps")
	}
	if x.Error != "" {
		p.once("clients", Fail, "see the findings about its instances", "calls of "+service+" have no instance: "+x.Error)
	}
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", for " + span(time.Since(t))
}
