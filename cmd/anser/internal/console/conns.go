package console

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

const (
	connsFor       = 2 * time.Second // for which an answer is used again
	connsBound     = 2 * time.Second
	maxAsked       = 50 // processes of a service
	connsOfProcess = "connections?conns=50"
	maxCached      = 50
)

// connCache keeps lists of connections for a moment, so that many viewers cost as much as one.
type connCache struct {
	mu    sync.Mutex // guards the field below
	lists map[string]*connList
}

type connList struct {
	once sync.Once
	at   time.Time
	data []byte
}

// get returns the entry of a service, which the caller fills under its once.
func (c *connCache) get(service string) *connList {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lists[service]
	if l == nil || time.Since(l.at) > connsFor {
		if c.lists == nil || len(c.lists) >= maxCached {
			c.lists = make(map[string]*connList)
		}
		l = &connList{at: time.Now()}
		c.lists[service] = l
	}
	return l
}

// serveConns answers with the open connections of the processes of a service.
func (c *Console) serveConns(w http.ResponseWriter, r *http.Request) {
	s, service := c.current(), r.URL.Query().Get("service")
	if s.services[service] == nil {
		respond.Fail(w, http.StatusNotFound, "there is no such service", "use ?service= with the name of a service")
		return
	}
	l := c.conns.get(service)
	l.once.Do(func() { l.data = encode(c.readConns(s, service)) })
	answer(w, l.data)
}

// readConns asks the processes of a service.
func (c *Console) readConns(s *snapshot, service string) []model.Conn {
	var list []*collect.Process
	for _, p := range s.round.Processes {
		for _, place := range p.Found {
			if place.Service == service && p.Error == "" && !p.Double && len(list) < maxAsked {
				list = append(list, p)
				break
			}
		}
	}
	ctx, cancel := context.WithTimeout(c.ctx, connsBound)
	defer cancel()
	docs := make([]*admin.Document, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { docs[i], _ = c.collector.Reader().Document(ctx, p.Address, connsOfProcess) })
	}
	wg.Wait()
	out := []model.Conn{}
	for i, d := range docs {
		if d == nil {
			continue
		}
		for j := range d.Servers {
			out = addConns(out, list[i].Name, service, "server", d.Servers[j].Connections)
		}
		for j := range d.Clients {
			out = addConns(out, list[i].Name, service, "client", d.Clients[j].Connections)
		}
	}
	return out
}

const maxConns = 2000

func addConns(out []model.Conn, process, service, side string, list []admin.Conn) []model.Conn {
	for _, k := range list[:min(len(list), max(maxConns-len(out), 0))] {
		for _, s := range []*string{&k.Peer, &k.Local, &k.Protocol, &k.TLS, &k.Identity} {
			*s = model.Text(*s)
		}
		out = append(out, model.Conn{Process: process, Service: service, Side: side, Conn: k})
	}
	return out
}
