package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// attemptTimeout bounds one request, and one attempt to connect.
const attemptTimeout = 3 * time.Second

// client makes requests over a rueidis.Client, which it creates for the first request: rueidis
// cannot create one while the server is down.
type client struct {
	life      *upkeep.Life
	addresses string
	option    rueidis.ClientOption
	kept      bool // owned by the caller of New

	mu      sync.Mutex     // guards the fields below
	made    rueidis.Client // nil until a server was reached
	dialing *dial          // the attempt in progress, or nil
}

// dial is one attempt to create the client, shared by all requests that wait for it.
type dial struct {
	done chan struct{} // closed when err is set
	err  error
}

func dialling(life *upkeep.Life, addresses []string, cfg config) *client {
	c := &client{life: life, addresses: strings.Join(addresses, ",")}
	c.option = rueidis.ClientOption{
		InitAddress: addresses, Username: cfg.user, Password: cfg.password, TLSConfig: cfg.tls, SelectDB: cfg.database,
		DisableRetry: true, // its retries are silent, so an outage would go unreported
		DisableCache: true, // servers before 6.0, and some compatible ones, do not support it
		// One connection, so that a withdrawal cannot overtake the announcement of the same
		// record. Its buffers are small: a registry has little traffic.
		PipelineMultiplex: -1, RingScaleEachConn: 8, ReadBufferEachConn: 32 << 10, WriteBufferEachConn: 32 << 10,
		ConnWriteTimeout: 2 * attemptTimeout,
		DialCtxFn:        c.connect,
		// Otherwise an unreachable server costs a second attempt, as for a node of a cluster.
		ForceSingleClient: len(addresses) == 1,
	}
	return c
}

// connect dials with a context that also ends with the registry.
func (c *client) connect(ctx context.Context, address string, dialer *net.Dialer, cfg *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	defer context.AfterFunc(c.life.Context(), cancel)()
	if cfg != nil {
		return (&tls.Dialer{NetDialer: dialer, Config: cfg}).DialContext(ctx, "tcp", address)
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// get returns the client, and creates it if necessary.
func (c *client) get(ctx context.Context) (rueidis.Client, error) {
	c.mu.Lock()
	if c.made != nil {
		defer c.mu.Unlock()
		return c.made, nil
	}
	d := c.dialing
	if d == nil {
		d = &dial{done: make(chan struct{})}
		if !c.life.Go(func() { c.dial(d) }) {
			c.mu.Unlock()
			return nil, errors.New("the registry is closing")
		}
		c.dialing = d
	}
	c.mu.Unlock()
	select {
	case <-d.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if d.err != nil {
		return nil, d.err
	}
	return c.get(ctx)
}

func (c *client) dial(d *dial) {
	made, err := rueidis.NewClient(c.option)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.made = made
	}
	d.err, c.dialing = err, nil
	close(d.done)
}

// close closes the connection, unless it belongs to the caller. No request may be started after
// it.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made != nil && !c.kept {
		c.made.Close()
	}
}

// attempt makes one request.
func (c *client) attempt(ctx context.Context, request func(context.Context, rueidis.Client) error) error {
	limited, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	made, err := c.get(limited)
	if err == nil {
		err = request(limited, made)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil: // not the caller's own context
		return fmt.Errorf("redis at %s has not answered within %v", c.addresses, attemptTimeout)
	case isRefusal(err):
		return upkeep.Hopeless(fmt.Errorf("redis at %s: %w%s", c.addresses, err, advice(err)))
	}
	return fmt.Errorf("redis at %s: %w", c.addresses, err)
}

// isRefusal reports whether the same request would fail again: Redis rejected its content or its
// user.
func isRefusal(err error) bool {
	answer, ok := errors.AsType[*rueidis.RedisError](err)
	if !ok {
		return false
	}
	code, _, _ := strings.Cut(answer.Error(), " ")
	switch code {
	case "NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "NOPROTO", "MOVED":
		return true
	}
	return code == "ERR" && !strings.Contains(answer.Error(), "max number of clients")
}

// advice returns what to do about a refusal.
func advice(err error) string {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "NOAUTH"):
		return ": use the option redis.User"
	case strings.HasPrefix(text, "NOPERM"):
		return ": see docs/registries.md for what the user needs"
	case strings.HasPrefix(text, "MOVED"):
		return ": this is a node of a cluster, so give the addresses of two of its nodes, or more"
	case strings.HasPrefix(text, "WRONGTYPE"):
		return ": another program uses the same keys, so choose another prefix"
	}
	return ""
}
