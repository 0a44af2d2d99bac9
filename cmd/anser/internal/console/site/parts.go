package site

import (
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/change"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// followCanary is how long a service is read every second after a look at its canary.
const followCanary = 5 * time.Second

// figures returns the present figures of the instances of a service.
func figures(c *console.Console, service string) (list []change.Figures) {
	c.Follow(service, followCanary)
	for _, in := range c.Instances(service) {
		f := change.Figures{
			Instance: registry.Instance{Service: service, ID: in.ID, Address: in.Address, Version: in.Version, Zone: in.Zone, Group: in.Group, Tags: in.Tags},
			Known:    in.Process != "" && in.Stale.IsZero(),
			Down:     in.Health == model.Down || in.Health == model.Ejected,
			Rate:     in.Rate, Failed: in.Failed, P99: in.P99,
		}
		if f.Instance.State.UnmarshalText([]byte(in.State)) == nil {
			list = append(list, f)
		}
	}
	return list
}

// samples returns the calls that the callers of a service make now.
func samples(c *console.Console, service string) (calls []route.Sample, processes int) {
	s := c.Sample(service)
	for _, call := range s.Calls {
		out := route.Sample{Time: call.Time, Service: service, Method: call.Method, Address: call.Peer, Failed: call.Code != anser.OK}
		if in := call.Caller; in != nil {
			out.Caller = route.Caller{Service: in.Service, Group: in.Group, Version: in.Version, Zone: in.Zone, Tags: in.Tags}
		}
		calls = append(calls, out)
	}
	return calls, s.Processes
}
