package anser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// announcement holds the arguments of the option Announce.
type announcement struct {
	registrar registry.Registrar
	instance  registry.Instance
}

// announcer keeps a server registered. The registry is advice: the server serves while it tries.
type announcer struct {
	mu      sync.Mutex // guards the fields below
	stopped bool
	cancel  context.CancelFunc
	list    []announcement
	status  []AnnouncementStatus // of list, in its order
	wg      sync.WaitGroup
}

// AnnouncementStatus describes how a server is registered with a registry.
type AnnouncementStatus struct {
	Instance   registry.Instance
	Registered bool      // the registry has confirmed the instance
	Trouble    error     // why it has not yet, at the last attempt, or nil
	Since      time.Time // when it was confirmed, or of the last attempt
}

const (
	announceRetry   = 2 * time.Second
	deregisterBound = 3 * time.Second
	deregisterLate  = 500 * time.Millisecond // when there is no time left
	// 1/deregisterShare of the time of Shutdown is for this; the calls in flight have the rest.
	deregisterShare = 4
)

// check returns why the instance cannot be announced, or nil.
func (n announcement) check() error {
	in := n.instance
	if in.Address == "" {
		in.Address = "127.0.0.1:1" // filled in when the server listens
	}
	err := in.Validate()
	if n.registrar == nil {
		err = errors.New("the registrar is nil")
	}
	if err != nil {
		return fmt.Errorf("anser.Announce: %w", err)
	}
	return nil
}

func (a *announcer) start(list []announcement, addr net.Addr, o *sideOptions) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	for _, n := range list {
		if n.instance.Address == "" {
			n.instance.Address = dialable(addr)
		}
		a.list = append(a.list, n)
		at := len(a.status)
		a.status = append(a.status, AnnouncementStatus{Instance: n.instance.Clone()})
		a.wg.Go(func() {
			n.keep(ctx, o, func(err error) {
				a.mu.Lock()
				defer a.mu.Unlock()
				st := &a.status[at]
				st.Registered, st.Trouble, st.Since = err == nil, err, time.Now()
			})
		})
	}
}

// keep registers the instance, and retries until it succeeds. note gets the result of each attempt;
// the log has the first failure and the success.
func (n announcement) keep(ctx context.Context, o *sideOptions, note func(error)) {
	for level := slog.LevelWarn; ; level = slog.LevelDebug {
		err := n.registrar.Register(ctx, n.instance)
		note(err)
		if err == nil || ctx.Err() == nil {
			o.observers.announced(n.instance, err)
		}
		if err == nil {
			o.log.Info("registered", "service", n.instance.Service, "address", n.instance.Address)
			return
		}
		if ctx.Err() != nil {
			return
		}
		o.log.Log(ctx, level, "cannot register, trying again", "service", n.instance.Service, "address", n.instance.Address, "err", err)
		select {
		case <-time.After(announceRetry):
		case <-ctx.Done():
			return
		}
	}
}

// stop deregisters the instances and prevents further registrations. It does not wait long for a
// registry that is down, and tries even if ctx is done.
func (a *announcer) stop(ctx context.Context, o *sideOptions) {
	a.mu.Lock()
	a.stopped = true
	list := a.list
	a.list = nil
	if a.cancel != nil {
		a.cancel()
	}
	a.mu.Unlock()
	a.wg.Wait()
	a.mu.Lock()
	a.status = nil
	a.mu.Unlock()
	bound := deregisterBound
	if end, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(end)/deregisterShare)
	}
	if ctx.Err() != nil {
		ctx, bound = context.WithoutCancel(ctx), deregisterLate
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	var wg sync.WaitGroup
	for _, n := range list {
		wg.Go(func() {
			err := n.registrar.Deregister(ctx, n.instance)
			o.observers.withdrawn(n.instance, err)
			if err != nil {
				o.log.Warn("cannot deregister: the registry drops the instance by itself in a while", "service", n.instance.Service, "err", err)
			}
		})
	}
	wg.Wait()
}

// dialable returns an address that other machines can dial for the address of a listener.
func dialable(addr net.Addr) string {
	prefix := ""
	switch n := addr.Network(); n {
	case "tcp", "memory":
	case "unix":
		return "unix://" + addr.String()
	default: // the scheme of a transport
		prefix = n + "://"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if ip, e := netip.ParseAddr(host); err != nil || e != nil || !ip.IsUnspecified() {
		return prefix + addr.String()
	}
	addrs, _ := net.InterfaceAddrs() // without them, only the loopback remains
	return prefix + net.JoinHostPort(reachable(addrs).String(), port)
}

// reachable returns the first address that other machines may reach, preferably IPv4, or the
// loopback.
func reachable(addrs []net.Addr) net.IP {
	best := net.IPv4(127, 0, 0, 1)
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			return n.IP
		}
		if best.IsLoopback() {
			best = n.IP
		}
	}
	return best
}
