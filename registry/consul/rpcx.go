package consul

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// DialRPCX returns a registry that keeps its instances as rpcx's plugin ConsulRegisterPlugin does,
// in Consul's keys and values under the same base path: rpcx clients find the Anser servers,
// and clients of Anser the rpcx servers. The options are those of Dial, without Prefix. The
// instances belong to a session of Consul, whose time to live is at least 10 s.
//
// The address of an rpcx server has the scheme rpcx: a client needs the option protocols.RPCX.
// That of an instance of Anser must be host:port; its server must speak rpcx too. A weight of rpcx
// counts 100 here, "inactive" is Disabled, and the first group of a server is its group.
func DialRPCX(endpoint, basePath string, opts ...Option) (registry.Registry, error) {
	r, err := Dial(endpoint, opts...)
	if err != nil {
		return nil, err
	}
	err = rpcxlayout.CheckBase(basePath)
	if err == nil && r.prefix != "" {
		err = errors.New("the base path takes the place of the option Prefix: leave that out")
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("consul.DialRPCX: %w", err)
	}
	s := &rpcxStore{registry: r, base: strings.Trim(basePath, "/")}
	return rpcxlayout.NewKeeper(s, upkeep.Renewal(r.ttl), r.log), nil
}

// RPCXScheme lets a client find its service in Consul, in the rpcx layout. It is an option of
// anser.Dial:
//
//	c, err := anser.Dial("consul+rpcx://127.0.0.1:8500/rpcx/Arith", consul.RPCXScheme(), protocols.RPCX())
//
// The path of the target is the base path of rpcx and the service path. The options are those of
// DialRPCX.
func RPCXScheme(opts ...Option) registry.Scheme {
	return registry.Scheme{Name: "consul+rpcx", Open: func(u *url.URL) (registry.Resolver, string, error) {
		endpoints, base, service, err := rpcxlayout.Target(targets, u)
		if err != nil {
			return nil, "", err
		}
		if len(endpoints) != 1 {
			return nil, "", checkEndpoint(u.Host)
		}
		r, err := DialRPCX(endpoints[0], base, opts...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}

// rpcxStore has the keys of rpcx. The keys that it writes belong to one session.
type rpcxStore struct {
	registry *Registry
	base     string

	mu      sync.Mutex // guards session, held during a renewal
	session string
	renewed time.Time
}

const (
	leastSession = 10 * time.Second // Consul's minimum
	lockDelay    = time.Millisecond // after the end of a session; 0 would be Consul's default
)

func (s *rpcxStore) path(service, name string) string { return s.base + "/" + service + "/" + name }

// attempt makes a request.
func (s *rpcxStore) attempt(ctx context.Context, timeout time.Duration, request func(*api.QueryOptions) error) error {
	err := s.registry.attempt(ctx, timeout, request)
	if hopeless(err) {
		return upkeep.Hopeless(err)
	}
	return err
}

func writeOptions(q *api.QueryOptions) *api.WriteOptions {
	return new(api.WriteOptions).WithContext(q.Context())
}

// Put implements rpcxlayout.Store.
func (s *rpcxStore) Put(ctx context.Context, service, name string, value []byte) error {
	session, err := s.hold(ctx)
	if err != nil {
		return err
	}
	pair := &api.KVPair{Key: s.path(service, name), Value: value, Flags: api.LockFlagValue, Session: session}
	return s.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		ok, _, err := s.registry.client.KV().Acquire(pair, writeOptions(q))
		if err != nil || ok {
			return err
		}
		// It belongs to another session: of a process that has gone, or that this one replaces.
		ok, answer, _, err := s.registry.client.Txn().Txn(api.TxnOps{
			{KV: &api.KVTxnOp{Verb: api.KVDelete, Key: pair.Key}},
			{KV: &api.KVTxnOp{Verb: api.KVLock, Key: pair.Key, Value: value, Flags: pair.Flags, Session: session}},
		}, q)
		if err == nil && !ok {
			err = refused(answer)
		}
		return err
	})
}

// hold returns a session that lives, and renews it.
func (s *rpcxStore) hold(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != "" && time.Since(s.renewed) < time.Second {
		return s.session, nil
	}
	err := s.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		if s.session != "" {
			entry, _, err := s.registry.client.Session().Renew(s.session, writeOptions(q))
			if err != nil && status(err) != http.StatusNotFound {
				return err
			}
			if entry != nil {
				return nil
			}
		}
		session, _, err := s.registry.client.Session().CreateNoChecks(&api.SessionEntry{
			Name: "anser", Behavior: api.SessionBehaviorDelete, TTL: max(s.registry.ttl, leastSession).String(), LockDelay: lockDelay,
		}, writeOptions(q))
		if err == nil {
			s.session = session
		}
		return err
	})
	if err == nil {
		s.renewed = time.Now()
	}
	return s.session, err
}

// Remove implements rpcxlayout.Store.
func (s *rpcxStore) Remove(ctx context.Context, service, name string) error {
	return s.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		_, err := s.registry.client.KV().Delete(s.path(service, name), writeOptions(q))
		return err
	})
}

// List implements rpcxlayout.Store.
func (s *rpcxStore) List(ctx context.Context, service string) (map[string][]byte, error) {
	values := make(map[string][]byte)
	prefix := s.path(service, "")
	err := s.attempt(ctx, readTimeout, func(q *api.QueryOptions) error {
		clear(values)
		q.RequireConsistent = true
		pairs, _, err := s.registry.client.KV().List(prefix, q)
		for _, p := range pairs {
			values[strings.TrimPrefix(p.Key, prefix)] = p.Value
		}
		return err
	})
	return values, err
}

// Services implements rpcxlayout.Store.
func (s *rpcxStore) Services(ctx context.Context) (names []string, err error) {
	err = s.attempt(ctx, readTimeout, func(q *api.QueryOptions) error {
		q.RequireConsistent = true
		keys, _, err := s.registry.client.KV().Keys(s.base+"/", "/", q)
		for _, key := range keys {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(key, s.base+"/"), "/"); ok {
				names = append(names, name)
			}
		}
		return err
	})
	return names, err
}

// Changes implements rpcxlayout.Store.
func (s *rpcxStore) Changes(ctx context.Context, service string, wake func()) {
	var index uint64
	var delay upkeep.Delay
	for ctx.Err() == nil {
		err := s.attempt(ctx, readTimeout+wait+wait/16, func(q *api.QueryOptions) error {
			q.WaitIndex, q.WaitTime = index, wait
			_, meta, err := s.registry.client.KV().Keys(s.path(service, ""), "", q)
			if err == nil && meta.LastIndex != index {
				index = meta.LastIndex
				wake()
			}
			return err
		})
		if err != nil || index == 0 {
			index = 0
			delay.Wait(ctx, nil)
			continue
		}
		delay = upkeep.Delay{}
	}
}

// Close implements rpcxlayout.Store. The instances were removed before.
func (s *rpcxStore) Close() error {
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	if session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
		defer cancel()
		s.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
			_, err := s.registry.client.Session().Destroy(session, writeOptions(q))
			return err
		})
	}
	return s.registry.Close()
}
