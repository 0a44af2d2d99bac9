package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/events"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/telemetry"
)

const (
	maxFollowed = 16 // processes of a service whose calls are followed
	maxLists    = 8  // lists of live calls at a time
	livePace    = "20"
)

// liveCalls follows calls as they happen: once for all viewers of the same ones.
type liveCalls struct {
	c     *Console
	mu    sync.Mutex // guards the field below
	lists map[string]*liveList
}

type liveList struct {
	viewers int
	cancel  context.CancelFunc
}

func (l *liveCalls) start(c *Console) { l.c, l.lists = c, make(map[string]*liveList) }

// join begins to follow the calls of a topic, unless that is done already.
func (l *liveCalls) join(topic, service, method string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.lists[topic]
	if list == nil {
		if len(l.lists) >= maxLists || l.c.ctx.Err() != nil {
			return false
		}
		ctx, cancel := context.WithCancel(l.c.ctx)
		list = &liveList{cancel: cancel}
		l.lists[topic] = list
		l.c.wg.Go(func() { l.follow(ctx, topic, service, method) })
	}
	list.viewers++
	return true
}

func (l *liveCalls) leave(topic string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.lists[topic]
	if list.viewers--; list.viewers == 0 {
		list.cancel()
		delete(l.lists, topic)
	}
}

// follow follows the calls of the processes of a service until ctx is done.
func (l *liveCalls) follow(ctx context.Context, topic, service, method string) {
	var wg sync.WaitGroup
	defer wg.Wait()
	followed := make(map[string]bool)
	var mu sync.Mutex // guards followed
	tick := time.NewTicker(collect.Watched)
	defer tick.Stop()
	for {
		s := l.c.current()
		for _, p := range s.round.Processes {
			mu.Lock()
			if serves(p, service) && p.Error == "" && !followed[p.Address] && len(followed) < maxFollowed {
				followed[p.Address] = true
				wg.Go(func() {
					l.read(ctx, p, topic, method)
					mu.Lock()
					delete(followed, p.Address)
					mu.Unlock()
				})
			}
			mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func serves(p *collect.Process, service string) bool {
	for _, place := range p.Found {
		if place.Service == service && !p.Double {
			return true
		}
	}
	return false
}

// read follows the calls of one process.
func (l *liveCalls) read(ctx context.Context, p *collect.Process, topic, method string) {
	q := url.Values{"side": {"server"}, "rate": {livePace}}
	if method != "" {
		q.Set("method", method)
	}
	l.c.collector.Reader().Follow(ctx, p.Address, q, func(call *telemetry.Call, _ uint64) {
		l.c.hub.Send(topic, events.Event("call", encode(l.c.current().call(p, collect.Clean(call)))))
	})
}

// serveLive sends calls as they happen.
func (c *Console) serveLive(w http.ResponseWriter, r *http.Request) {
	service, method := r.URL.Query().Get("service"), r.URL.Query().Get("method")
	if c.current().services[service] == nil {
		respond.Fail(w, http.StatusNotFound, "there is no such service", "use ?service= with the name of a service")
		return
	}
	if len(method) > model.MaxText {
		respond.Fail(w, http.StatusBadRequest, "the name of the method is too long", "use a name such as Arith.Mul")
		return
	}
	topic := fmt.Sprintf("calls:%s:%s", service, method)
	v, err := c.hub.Join(topic)
	if err != nil {
		respond.Fail(w, http.StatusServiceUnavailable, "there are too many viewers", fmt.Sprintf("close some: the console serves %d at a time", events.MaxViewers))
		return
	}
	defer c.hub.Leave(v)
	if !c.live.join(topic, service, method) {
		respond.Fail(w, http.StatusServiceUnavailable, "too many different lists of live calls are open", fmt.Sprintf("close some: %d can be open at a time", maxLists))
		return
	}
	defer c.live.leave(topic)
	v.Serve(w, r, func() { c.look(r) }, []byte(": open\n\n"))
}
