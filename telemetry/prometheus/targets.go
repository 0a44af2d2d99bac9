package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// targetsBound is how long the registry may take to answer.
const targetsBound = 5 * time.Second

// Targets returns a handler that lists the instances of the services for the HTTP service discovery
// of Prometheus (http_sd_configs), or of all services if none is named and the registry is a
// [registry.Lister]. Each instance has the labels service, id, version, zone and group, as far as
// it has these. Prometheus then scrapes the address that the instance has announced, so the metrics
// must be there: see [Handler]. Instances with addresses of other transports, such as
// "unix:///path", are left out.
//
// While the registry cannot be reached, requests are answered with 503 after 5 s at most, and
// Prometheus goes on with the list that it has.
func Targets(r registry.Resolver, services ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), targetsBound)
		defer cancel()
		groups, err := findTargets(ctx, r, services)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(groups)
	})
}

// targetGroup is an instance as Prometheus wants it.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

var errNoLister = errors.New("prometheus.Targets: the registry cannot list its services: name the services")

func findTargets(ctx context.Context, r registry.Resolver, services []string) ([]targetGroup, error) {
	if len(services) == 0 {
		lister, ok := r.(registry.Lister)
		if !ok {
			return nil, errNoLister
		}
		var err error
		if services, err = lister.Services(ctx); err != nil {
			return nil, fmt.Errorf("list services: %w", err)
		}
	}
	groups := []targetGroup{} // not null in JSON
	for _, service := range services {
		list, err := registry.List(ctx, r, service)
		if err != nil {
			return nil, err
		}
		for i := range list {
			if _, _, err := net.SplitHostPort(list[i].Address); err == nil && !strings.Contains(list[i].Address, "/") {
				groups = append(groups, targetGroup{[]string{list[i].Address}, labelsOf(&list[i])})
			}
		}
	}
	return groups, nil
}

func labelsOf(in *registry.Instance) map[string]string {
	labels := map[string]string{"service": in.Service, "id": in.Key(), "version": in.Version, "zone": in.Zone, "group": in.Group}
	for name, value := range labels {
		if labels[name] = clean(value); value == "" {
			delete(labels, name)
		}
	}
	return labels
}
