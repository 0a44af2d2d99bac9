package console

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/events"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
)

// The topics of viewers.
const (
	topicSystem    = "system"
	topicInstances = "instances:" // and a service, or nothing for all
)

// sent is what the viewers were told last, as JSON.
type sent struct {
	services map[string]string
	edges    map[edgeKey]string
}

// update is model.Update with parts that are encoded already.
type update struct {
	model.Update
	Services []json.RawMessage `json:"services"`
	Edges    []json.RawMessage `json:"edges"`
}

// publishLocked tells the viewers what has changed.
func (c *Console) publishLocked() {
	s, was := c.now, c.sent
	fresh := c.changes.take()
	c.sent = sent{make(map[string]string), make(map[edgeKey]string)}
	u := update{Services: []json.RawMessage{}, Edges: []json.RawMessage{}}
	u.Time, u.Interval, u.Period = s.system.Time, s.system.Interval, s.system.Period
	u.Processes, u.Registries, u.Changes = s.system.Processes, s.system.Registries, fresh
	u.Gone = model.Gone{Services: []string{}, Edges: [][2]string{}}
	for i := range s.system.Services {
		v := &s.system.Services[i]
		data := encode(v)
		c.sent.services[v.Name] = string(data)
		if was.services[v.Name] != string(data) {
			u.Services = append(u.Services, data)
		}
	}
	for i := range s.system.Edges {
		e := &s.system.Edges[i]
		data, key := encode(e), edgeKey{e.From, e.To}
		c.sent.edges[key] = string(data)
		if was.edges[key] != string(data) {
			u.Edges = append(u.Edges, data)
		}
	}
	for name := range was.services {
		if _, ok := c.sent.services[name]; !ok {
			u.Gone.Services = append(u.Gone.Services, name)
		}
	}
	for key := range was.edges {
		if _, ok := c.sent.edges[key]; !ok {
			u.Gone.Edges = append(u.Gone.Edges, [2]string{key.from, key.to})
		}
	}
	slices.Sort(u.Gone.Services)
	for topic := range c.hub.Topics() {
		if service, ok := strings.CutPrefix(topic, topicInstances); ok {
			c.hub.Send(topic, events.Event("instances", encode(s.instancesOf(service, maxPage))))
		} else if topic == topicSystem {
			c.hub.Send(topic, events.Event("update", encode(u)))
		}
	}
}

// systemOf returns the whole system with the latest changes.
func (c *Console) systemOf(s *snapshot) model.System {
	out := s.system
	out.LongHistory, out.Arena = c.o.Long != nil, c.o.Arena
	out.Changes = c.changes.latest(firstShown, "", time.Time{})
	return out
}
