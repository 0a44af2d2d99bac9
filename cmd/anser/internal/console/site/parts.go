package site

import (
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/change"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/registry"
)

// lookAtCanary is how long the system is read every second after a look at a canary.
const lookAtCanary = 5 * time.Second

// figures returns the present figures of the instances of a service.
func figures(c *console.Console, service string) (list []change.Figures) {
	c.Look(lookAtCanary)
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
