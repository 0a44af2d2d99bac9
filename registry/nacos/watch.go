package nacos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

const (
	// grace is how long after an outage a watch keeps the instances that it knew and that are
	// missing now: Nacos comes back with the data on its disk, or with none, and their owners need
	// a moment to register again.
	grace = 15 * time.Second
	// pageSize is the number of service names per request.
	pageSize = 500
)

// Watch implements registry.Resolver. It reads the whole service at every interval (see
// PollEvery), so no change is missed. If Nacos returns to an older state of an instance, the watch
// keeps the newer one. An instance that Nacos marks as unhealthy is left out; one that cannot be
// decoded is reported as trouble and left out.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel, err := r.life.Bind(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	w := &watch{registry: r, service: service}
	err = upkeep.Follow(ctx, nil, w.look, registry.Equal, update, trouble)
	if upkeep.IsHopeless(err) {
		return fmt.Errorf("watch service %q: %w", service, err)
	}
	return err
}

// watch is the state of one watch.
type watch struct {
	registry *Registry
	service  string
	history  history
	counted  map[place]nacosInstance // the instances of the last list
	lost     bool                    // the last read failed
	// missed holds the instances from before an outage that were not seen alive since; they stay
	// listed until the end of grace.
	missed map[place]nacosInstance
	grace  time.Time
}

func (w *watch) look(ctx context.Context) (upkeep.View[[]registry.Instance], error) {
	all, err := w.registry.list(ctx, w.service)
	if err != nil {
		w.lost = true
		return upkeep.View[[]registry.Instance]{}, err
	}
	if w.lost {
		w.missed, w.grace = w.counted, time.Now().Add(grace)
	}
	w.lost = false
	if !time.Now().Before(w.grace) {
		w.missed = nil
	}
	w.counted = make(map[place]nacosInstance, len(all))
	for _, h := range all {
		if h.alive() {
			w.counted[h.place()] = h
			delete(w.missed, h.place())
		}
	}
	maps.Copy(w.counted, w.missed)
	list, problem := w.history.list(w.service, slices.Collect(maps.Values(w.counted)), time.Now())
	return upkeep.View[[]registry.Instance]{Value: list, Problem: problem, Again: w.registry.poll}, nil
}

// scope adds the parameters that identify the service.
func (r *Registry) scope(service string, params url.Values) {
	params.Set("serviceName", service)
	r.scopeAll(params)
}

func (r *Registry) scopeAll(params url.Values) {
	if r.namespace != "" {
		params.Set("namespaceId", r.namespace)
	}
}

// list returns all instances of a service, including unhealthy ones.
func (r *Registry) list(ctx context.Context, service string) ([]nacosInstance, error) {
	params := url.Values{"healthyOnly": {"false"}}
	r.scope(service, params)
	body, err := r.client.do(ctx, attemptTimeout, http.MethodGet, "/v1/ns/instance/list", params)
	if status, ok := errors.AsType[*statusError](err); ok && status.status == http.StatusNotFound &&
		strings.HasPrefix(status.text, "dom not found") { // the answer of servers before 1.0
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var answer struct {
		Hosts []nacosInstance `json:"hosts"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("nacos did not answer with a list of instances: %w", err)
	}
	return answer.Hosts, nil
}

// Services implements registry.Lister. It waits for Nacos until ctx is done. Nacos also names
// services without instances, so this makes one request per service: it is for people and tools,
// not for the path of a call.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var names []string
	err := r.life.Ask(ctx, "list services", func(ctx context.Context) (err error) {
		names, err = r.services(ctx)
		return err
	})
	return names, err
}

func (r *Registry) services(ctx context.Context) (names []string, err error) {
	for page := 1; ; page++ {
		known, err := r.page(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, name := range known {
			if registry.CheckService(name) != nil {
				continue
			}
			all, err := r.list(ctx, name)
			if err != nil {
				return nil, err
			}
			if list, _ := listOf(name, slices.DeleteFunc(all, func(h nacosInstance) bool { return !h.alive() })); len(list) > 0 {
				names = append(names, name)
			}
		}
		if len(known) < pageSize {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}

// page returns one page of the names of all services.
func (r *Registry) page(ctx context.Context, n int) ([]string, error) {
	params := url.Values{"pageNo": {strconv.Itoa(n)}, "pageSize": {strconv.Itoa(pageSize)}}
	r.scopeAll(params)
	body, err := r.client.do(ctx, attemptTimeout, http.MethodGet, "/v1/ns/service/list", params)
	if status, ok := errors.AsType[*statusError](err); ok && strings.HasPrefix(status.text, "No service exist") {
		return nil, nil // the answer of servers before 1.0
	}
	if err != nil {
		return nil, err
	}
	var answer struct {
		Names []string `json:"doms"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("nacos did not answer with a list of services: %w", err)
	}
	return answer.Names, nil
}
