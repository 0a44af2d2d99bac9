package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// Limits of one script: other clients wait while it runs.
const (
	maxBatch      = 100
	maxBatchBytes = 256 << 10
)

// forgetService is after how long without announcements a service is removed from the list of
// names.
const forgetService = 24 * time.Hour

// backend writes the announcer's records.
type backend struct{ registry *Registry }

// Apply implements upkeep.Backend.
func (b backend) Apply(ctx context.Context, items []upkeep.Item) ([]error, error) {
	results := make([]error, len(items))
	services := make(map[string][]int) // indices of items
	for i, item := range items {
		services[item.Service] = append(services[item.Service], i)
	}
	// The names come first: a name without instances does no harm.
	if err := b.name(ctx, slices.Collect(maps.Keys(services))); err != nil {
		return nil, err
	}
	for service, indices := range services {
		for len(indices) > 0 {
			args, n, err := b.batch(items, indices)
			if err != nil {
				return nil, err
			}
			if err := b.apply(ctx, service, args, indices[:n], results); err != nil {
				return nil, err
			}
			indices = indices[n:]
		}
	}
	return results, nil
}

// name adds the services to the list for Services.
func (b backend) name(ctx context.Context, services []string) error {
	return b.registry.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) error {
		now := time.Now()
		add := c.B().Zadd().Key(b.registry.servicesKey()).ScoreMember()
		for _, s := range services {
			add = add.ScoreMember(float64(now.Unix()), s)
		}
		old := strconv.FormatInt(now.Add(-forgetService).Unix(), 10)
		for _, resp := range c.DoMulti(ctx, add.Build(),
			c.B().Zremrangebyscore().Key(b.registry.servicesKey()).Min("-inf").Max(old).Build()) {
			if err := resp.Error(); err != nil {
				return err
			}
		}
		return nil
	})
}

// batch returns the arguments of the script for the first n of the indices.
func (b backend) batch(items []upkeep.Item, indices []int) (args []string, n int, err error) {
	r := b.registry
	args = []string{
		r.owner, strconv.FormatInt(r.ttl.Milliseconds(), 10), strconv.Itoa(linger), r.channel(items[indices[0]].Service),
	}
	size := 0
	for _, i := range indices {
		item := items[i]
		what, record := "remove", []byte(nil)
		if item.Want != nil {
			what = "keep"
			if item.Force {
				what = "put"
			}
			if record, err = registry.Encode(*item.Want); err != nil {
				return nil, 0, upkeep.Hopeless(err) // checked before
			}
		}
		if size += len(record) + len(item.Key); n == maxBatch || n > 0 && size > maxBatchBytes {
			break
		}
		args = append(args, what, item.Key, string(record))
		n++
	}
	return args, n, nil
}

func (b backend) apply(ctx context.Context, service string, args []string, indices []int, results []error) error {
	var answers []string
	err := b.registry.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
		answers, err = applyScript.Exec(ctx, c, b.registry.keys(service), args).AsStrSlice()
		return err
	})
	if err != nil {
		return err
	}
	if len(answers) != len(indices) {
		return fmt.Errorf("redis answered %d of %d items", len(answers), len(indices))
	}
	for i, answer := range answers {
		if answer == "taken" {
			results[indices[i]] = upkeep.ErrTaken
		}
	}
	return nil
}
