package anser

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/anser-rpc/anser/internal/cluster"
)

// The instances of a client's service, and the view that a call picks one from: package cluster
// with this package's hosts and routes. Its types have no methods here; what an attempt does at an
// endpoint is in client_attempt.go.
type (
	instances    = cluster.Cluster[*host, *Route]
	endpoint     = cluster.Endpoint[*host, *Route]
	view         = cluster.View[*host, *Route]
	methodHealth = cluster.Method[*host, *Route]
	survey       = cluster.Survey[*host, *Route]
)

// newCluster returns the cluster of a client whose other parts exist.
func (c *Client) newCluster() *instances {
	o := cluster.Options[*host, *Route]{
		Balancer: c.o.balancer, Breaker: c.o.breaker.inCluster(), Ejection: cluster.EjectionOptions(c.o.ejection),
		Subset: c.o.subsetOf(c.pool), SlowStart: c.o.slowStart, Log: c.o.log,
		Acquire: c.acquireWatched, Release: c.releaseWatched, Refresh: func() { c.source.refresh() }, Emit: c.emitHealth,
	}
	if c.o.newRouter != nil {
		o.Filters = (*Route).inCluster
	}
	return cluster.New(o)
}

// acquireWatched returns the host for an address, which tells the cluster when its state changes.
func (c *Client) acquireWatched(address string) *host {
	h := c.acquire(address)
	h.watch(c.cluster)
	if h.handlers != nil {
		h.keepConnected()
	}
	return h
}

func (c *Client) releaseWatched(h *host) {
	h.unwatch(c.cluster)
	c.pool.release(h)
}

// healthChanges are the changes as the cluster has them.
var healthChanges = [cluster.Changes]HealthChange{
	cluster.InstanceEjected: InstanceEjected, cluster.InstanceRestored: InstanceRestored,
	cluster.BreakerOpened: BreakerOpened, cluster.BreakerHalfOpen: BreakerHalfOpen, cluster.BreakerClosed: BreakerClosed,
}

// emitHealth logs a change of the health of an instance, and calls the observers. That a probe
// failed is for Debug, as it changes nothing for calls: an instance that is down for an hour is one
// warning.
func (c *Client) emitHealth(ev cluster.Event) {
	change := healthChanges[ev.Change]
	level := levelOf(change)
	if ev.Again {
		level = slog.LevelDebug
	}
	args := []any{"service", c.serviceName(), "address", ev.Instance.Address, "reason", ev.Reason}
	if ev.Method != "" {
		args = append(args, "method", ev.Method)
	}
	if !ev.Until.IsZero() {
		args = append(args, "until", ev.Until)
	}
	c.o.log.Log(context.Background(), level, change.String(), args...)
	defer func() {
		if p := recover(); p != nil { // there is no call that could return the error
			c.o.log.Error("an observer panicked on a health event", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	for _, o := range c.o.observers.all() {
		if o.Health != nil {
			o.Health(HealthEvent{Change: change, Instance: ev.Instance, Method: ev.Method, Reason: ev.Reason, Until: ev.Until})
		}
	}
}

// levelOf returns the log level of a change.
func levelOf(c HealthChange) slog.Level {
	switch c {
	case InstanceEjected, BreakerOpened:
		return slog.LevelWarn
	case BreakerHalfOpen:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
