package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// DialRPCX returns a registry that keeps its instances as rpcx's plugin RedisRegisterPlugin does,
// under the same base path: rpcx clients find the Anser servers, and clients of Anser the
// rpcx servers. The options are those of Dial, without Prefix.
//
// The address of an rpcx server has the scheme rpcx: a client needs the option protocols.RPCX.
// That of an instance of Anser must be host:port; its server must speak rpcx too. A weight of rpcx
// counts 100 here, "inactive" is Disabled, and the first group of a server is its group. A watch
// sees a change within a second. Like rpcx's plugin, it does not find servers in a cluster of
// Redis.
func DialRPCX(addresses []string, basePath string, opts ...DialOption) (registry.Registry, error) {
	cfg := defaults()
	for _, opt := range opts {
		if o, ok := opt.(Option); opt == nil || ok && o == nil {
			return nil, errors.New("redis.DialRPCX: an option is nil")
		}
		opt.applyDial(&cfg)
	}
	err := rpcxlayout.CheckBase(basePath)
	if err == nil && cfg.prefix != DefaultPrefix {
		err = errors.New("the base path takes the place of the option Prefix: leave that out")
	}
	if err != nil {
		return nil, fmt.Errorf("redis.DialRPCX: %w", err)
	}
	if err := errors.Join(cfg.check(), targets.CheckServers(addresses)); err != nil {
		return nil, err
	}
	life := upkeep.NewLife()
	s := &rpcxStore{client: dialling(life, addresses, cfg), base: strings.TrimRight(basePath, "/"), ttl: cfg.ttl, life: life}
	return rpcxlayout.NewKeeper(s, upkeep.Renewal(cfg.ttl), cfg.log), nil
}

// RPCXScheme lets a client find its service in Redis, in the rpcx layout. It is an option of
// anser.Dial:
//
//	c, err := anser.Dial("redis+rpcx://127.0.0.1:6379/rpcx/Arith", redis.RPCXScheme(), protocols.RPCX())
//
// The path of the target is the base path of rpcx, with the slash in front, and the service path.
// The options are those of DialRPCX.
func RPCXScheme(opts ...DialOption) registry.Scheme {
	return registry.Scheme{Name: "redis+rpcx", Open: func(u *url.URL) (registry.Resolver, string, error) {
		addresses, base, service, err := rpcxlayout.Target(targets, u)
		if err != nil {
			return nil, "", err
		}
		r, err := DialRPCX(addresses, base, opts...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}

// rpcxStore has a key for each server, whose value is an object of JSON, as libkv writes it for
// rpcx.
type rpcxStore struct {
	client *client
	base   string
	ttl    time.Duration
	life   *upkeep.Life
}

// rpcxPair is the value of a key.
type rpcxPair struct {
	Key       string
	Value     []byte
	LastIndex uint64
}

// path returns the key as rpcx names it; in Redis it has another slash in front.
func (s *rpcxStore) path(service, name string) string { return s.base + "/" + service + "/" + name }

// Put implements rpcxlayout.Store.
func (s *rpcxStore) Put(ctx context.Context, service, name string, value []byte) error {
	path := s.path(service, name)
	record, err := json.Marshal(rpcxPair{path, value, uint64(time.Now().UnixNano())})
	if err != nil {
		return err
	}
	return s.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Set().Key("/"+path).Value(string(record)).Px(s.ttl).Build()).Error()
	})
}

// Remove implements rpcxlayout.Store.
func (s *rpcxStore) Remove(ctx context.Context, service, name string) error {
	return s.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Del().Key("/"+s.path(service, name)).Build()).Error()
	})
}

// List implements rpcxlayout.Store.
func (s *rpcxStore) List(ctx context.Context, service string) (map[string][]byte, error) {
	values := make(map[string][]byte)
	prefix := "/" + s.path(service, "")
	err := s.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) error {
		clear(values)
		keys, err := scan(ctx, c, prefix)
		if err != nil || len(keys) == 0 {
			return err
		}
		records, err := c.Do(ctx, c.B().Mget().Key(keys...).Build()).ToArray()
		if err != nil {
			return err
		}
		for i, key := range keys {
			if i >= len(records) {
				break
			}
			record, err := records[i].AsBytes()
			if rueidis.IsRedisNil(err) {
				continue // it has expired in between
			}
			if err != nil {
				return err
			}
			var p rpcxPair
			if json.Unmarshal(record, &p) != nil {
				p.Value = []byte("%") // no query: it is reported
			}
			values[strings.TrimPrefix(key, prefix)] = p.Value
		}
		return nil
	})
	return values, err
}

// scan returns the keys that begin with a prefix.
func scan(ctx context.Context, c rueidis.Client, prefix string) (keys []string, err error) {
	pattern := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(prefix) + "*"
	for cursor := uint64(0); ; {
		page, err := c.Do(ctx, c.B().Scan().Cursor(cursor).Match(pattern).Count(1000).Build()).AsScanEntry()
		if err != nil {
			return nil, err
		}
		keys = append(keys, page.Elements...)
		if cursor = page.Cursor; cursor == 0 {
			return keys, nil
		}
	}
}

// Services implements rpcxlayout.Store.
func (s *rpcxStore) Services(ctx context.Context) (names []string, err error) {
	prefix := "/" + s.base + "/"
	err = s.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) error {
		keys, err := scan(ctx, c, prefix)
		if err != nil {
			return err
		}
		seen := make(map[string]bool)
		for _, key := range keys {
			if name, _, ok := strings.Cut(strings.TrimPrefix(key, prefix), "/"); ok && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}

// Changes implements rpcxlayout.Store: whether Redis tells about changes depends on its
// configuration.
func (s *rpcxStore) Changes(context.Context, string, func()) {}

// Close implements rpcxlayout.Store.
func (s *rpcxStore) Close() error {
	s.life.End()
	s.client.close()
	return nil
}
