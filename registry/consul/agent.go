package consul

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
)

// agent writes records to a Consul agent. It implements announce.Store.
type agent struct {
	*config
	client *api.Client
	name   string // of this registry, the prefix of its owner names

	mu     sync.Mutex           // guards the fields below
	owners map[string]string    // by ID
	alive  map[string]time.Time // time of the last heartbeat, by ID
}

// An owner identifies the process that registered an instance last, because the agent has no
// compare-and-set. It begins with a timestamp: if two processes discover each other, the later one
// wins on both sides.

func newAgent(cfg *config, client *api.Client) *agent {
	return &agent{config: cfg, client: client, name: rand.Text()[:10], owners: make(map[string]string), alive: make(map[string]time.Time)}
}

// newOwner returns an owner that wins over the given one.
func (a *agent) newOwner(over string) string {
	now := uint64(time.Now().UnixNano())
	stamp, _, _ := strings.Cut(over, "-")
	if before, err := strconv.ParseUint(stamp, 16, 64); err == nil && before >= now {
		now = before + 1
	}
	return fmt.Sprintf("%016x-%s", now, a.name)
}

func (a *agent) owner(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owners[key]
}

func (a *agent) setOwner(key, owner string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if owner == "" {
		delete(a.owners, key)
		delete(a.alive, key)
	} else {
		a.owners[key] = owner
	}
}

// due reports whether an instance's next heartbeat is due.
func (a *agent) due(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.alive[key]) >= a.ttl/3-a.ttl/30
}

func (a *agent) lives(key string, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.alive[key] = since
}

// Begin implements announce.Store. It checks for a leader because an agent also accepts records
// that it cannot forward to the servers, where no watcher would find them.
func (a *agent) Begin(ctx context.Context) (fresh bool, err error) {
	return false, a.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		leader, err := a.client.Status().LeaderWithQueryOptions(q)
		if err == nil && leader == "" {
			err = errors.New("the cluster has no leader")
		}
		return err
	})
}

// Renew implements announce.Store. Each heartbeat makes the agent write a file, so with a long TTL
// most renewals only read.
func (a *agent) Renew(ctx context.Context, key string, in *registry.Instance) (ok bool, err error) {
	if !a.due(key) {
		owner, err := a.look(ctx, key)
		return owner != "" && owner == a.owner(key), err
	}
	return a.signOfLife(ctx, key, in)
}

// signOfLife sends the heartbeat of an instance and reports whether the agent knows the instance.
func (a *agent) signOfLife(ctx context.Context, key string, in *registry.Instance) (ok bool, err error) {
	now := time.Now()
	state, note := signOfLife(in.State)
	err = a.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		return a.client.Agent().UpdateTTLOpts(checkID(key, a.owner(key)), note, state, q)
	})
	switch {
	case err == nil:
		a.lives(key, now)
		return true, nil
	case status(err) == http.StatusNotFound:
		return false, nil
	}
	return false, err
}

// Write implements announce.Store.
func (a *agent) Write(ctx context.Context, key string, in *registry.Instance, force bool) (taken bool, err error) {
	other, err := a.look(ctx, key)
	if err != nil {
		return false, err
	}
	owner := a.owner(key)
	if in == nil {
		if owner != "" && other == owner {
			err = a.deregister(ctx, key)
		}
		if err == nil {
			a.setOwner(key, "")
		}
		return false, err
	}
	switch {
	case other != "" && other == owner:
	case force || owner == "":
		owner = a.newOwner(other)
	case other > owner:
		a.setOwner(key, "")
		return true, nil
	}
	// The request in flight may arrive even if its answer does not.
	a.setOwner(key, owner)
	registration, err := a.registration(key, *in, owner)
	if err != nil {
		return false, err
	}
	// A registration is not cancelled: the agent would still carry it out, after Close has
	// withdrawn the records.
	err = a.attempt(context.WithoutCancel(ctx), attemptTimeout, func(q *api.QueryOptions) error {
		return a.client.Agent().ServiceRegisterOpts(registration, api.ServiceRegisterOpts{}.WithContext(q.Context()))
	})
	if err != nil {
		return false, err
	}
	// The agent keeps heartbeats across a restart, but not the initial status of a registration:
	// when an agent starts again, the check fails until the first heartbeat.
	if _, err := a.signOfLife(ctx, key, in); err != nil || other == "" || other == owner {
		return false, err
	}
	// This is not part of the registration, which would end the maintenance mode set by an
	// operator: that is a check, too.
	err = a.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		return a.client.Agent().CheckDeregisterOpts(checkID(key, other), q)
	})
	if status(err) == http.StatusNotFound {
		err = nil
	}
	return false, err
}

// look returns the owner of the agent's record under an ID, or "" if there is none.
func (a *agent) look(ctx context.Context, key string) (owner string, err error) {
	err = a.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		service, _, err := a.client.Agent().Service(key, q)
		if err == nil {
			owner = service.Meta[ownerKey]
		}
		return err
	})
	if status(err) == http.StatusNotFound {
		return "", nil
	}
	return owner, err
}

func (a *agent) deregister(ctx context.Context, key string) error {
	err := a.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		return a.client.Agent().ServiceDeregisterOpts(key, q)
	})
	if status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// withdraw removes this process's records under the keys, and stops at the first error.
func (a *agent) withdraw(keys []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan string, len(keys))
	for _, key := range keys {
		work <- key
	}
	close(work)
	var wg sync.WaitGroup
	for range min(16, len(keys)) {
		wg.Go(func() {
			for key := range work {
				if ctx.Err() != nil {
					return
				}
				if _, err := a.Write(ctx, key, nil, false); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("withdraw instances (they expire within %v): %w", a.ttl, err)
	}
	return nil
}
