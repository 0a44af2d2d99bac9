// Package redis keeps the buckets of rate limits in a Redis or Valkey server, for all instances of
// a service: see ratelimit.Through.
package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/interceptor/ratelimit"
)

// script is a token bucket. It is refilled by the clock of the server, so the clocks of the
// instances do not matter. Spent tokens are subtracted even below zero, down to the tokens of one
// second plus a burst.
//
// KEYS[1] is the bucket; ARGV are the rate per second, the burst, the spent and the wanted tokens.
// It returns the number of tokens given and, if there are none, the microseconds until there is
// one.
const script = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local spent, want = tonumber(ARGV[3]), tonumber(ARGV[4])
local was = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(was[1]) or burst
local at = tonumber(was[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate / 1000000) - spent
tokens = math.max(tokens, -(burst + rate))
local given = math.max(0, math.min(want, math.floor(tokens)))
tokens = tokens - given
local wait = 0
if given == 0 then
  wait = math.max(0, math.min(math.ceil((1 - tokens) / rate * 1000000), 86400000000))
end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens), 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.min(math.ceil((burst - tokens) / rate * 1000) + 1000, 86400000)))
return {given, wait}
`

// Bank is a ratelimit.Bank. Create one with [Open]. It is safe for concurrent use.
type Bank struct {
	option rueidis.ClientOption
	prefix string
	lua    *rueidis.Lua
	client chan rueidis.Client // holds the one client, or nil while there is none; empty while a goroutine connects
}

// dialTimeout bounds connecting, so that withdrawals do not pile up if a server does not answer.
const dialTimeout = 500 * time.Millisecond

// Open returns a bank that connects on its first use, and again after a failure: a service can
// start while Redis is down. The keys begin with prefix and a colon; instances with the same
// prefix share their buckets, so it should contain the name of the service. In a Redis cluster
// each bucket is on one node.
//
// The option must have InitAddress. DisableRetry and DisableCache are always set, as a withdrawal
// must neither be repeated nor delayed. Open fails without an address or a prefix.
func Open(option rueidis.ClientOption, prefix string) (*Bank, error) {
	if len(option.InitAddress) == 0 {
		return nil, errors.New("redis.Open: there is no address: set InitAddress to host:port")
	}
	if prefix == "" {
		return nil, errors.New("redis.Open: the prefix is empty: use the name of the service")
	}
	option.DisableRetry, option.DisableCache = true, true
	if option.Dialer.Timeout == 0 {
		option.Dialer.Timeout = dialTimeout
	}
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = time.Second
	}
	b := &Bank{option: option, prefix: prefix, lua: rueidis.NewLuaScript(script), client: make(chan rueidis.Client, 1)}
	b.client <- nil
	return b, nil
}

// connected returns the client, and creates it if there is none.
func (b *Bank) connected(ctx context.Context) (rueidis.Client, error) {
	var c rueidis.Client
	var open bool
	select {
	case c, open = <-b.client:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !open {
		return nil, errClosed
	}
	defer func() { b.client <- c }()
	if c != nil {
		return c, nil
	}
	made, err := rueidis.NewClient(b.option)
	if err != nil {
		return nil, fmt.Errorf("connect to Redis: %w", err)
	}
	c = made
	return c, nil
}

var errClosed = errors.New("the bank is closed")

// Withdraw implements ratelimit.Bank.
func (b *Bank) Withdraw(ctx context.Context, bucket string, r ratelimit.Rate, spent, want int) (given int, wait time.Duration, err error) {
	c, err := b.connected(ctx)
	if err != nil {
		return 0, 0, err
	}
	args := []string{strconv.FormatFloat(r.PerSecond, 'g', -1, 64), strconv.Itoa(r.Burst), strconv.Itoa(spent), strconv.Itoa(want)}
	answer, err := b.lua.Exec(ctx, c, []string{b.prefix + ":" + bucket}, args).AsIntSlice()
	if err != nil {
		return 0, 0, fmt.Errorf("withdraw from the bucket %q: %w", bucket, err)
	}
	if len(answer) != 2 || answer[0] < 0 || answer[0] > int64(want) || answer[1] < 0 {
		return 0, 0, fmt.Errorf("withdraw from the bucket %q: Redis answers %v, want tokens and a time", bucket, answer)
	}
	return int(answer[0]), time.Duration(answer[1]) * time.Microsecond, nil
}

// Close closes the connections. Withdrawals fail from then on. It may be called more than once.
func (b *Bank) Close() error {
	if c, open := <-b.client; open {
		close(b.client)
		if c != nil {
			c.Close()
		}
	}
	return nil
}
