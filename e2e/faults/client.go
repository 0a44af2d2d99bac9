package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
)

// client is what a process of the role client is.
type client struct {
	*anser.Client // nil: it is a peer's
	caller
	attempts atomic.Int64
	calls    atomic.Int64
	ok       atomic.Int64 // calls that succeeded
	load     *load
	held     *holding
	streams  *flow
	list     *list
	registry string       // its address
	dialed   time.Time    // when Dial was called
	end      func() error // of a client in a crowd: closes it

	mu     sync.Mutex // guards events
	events []healthEvent
}

// caller makes calls with a framework.
type caller interface {
	call(ctx context.Context, idempotent bool, in *entry) (*entry, error)
	// outcome returns the outcome that an error of call proves.
	outcome(err error) (ledger.Outcome, anser.Code)
	// hold opens n calls that end with the context; wait waits until they have ended.
	hold(ctx context.Context, n int) (wait func() error)
}

// anserCaller is that of Anser.
type anserCaller struct {
	client *anser.Client
	keyed  bool
	to     string // the value of routeKey; empty: none
}

func (a anserCaller) call(ctx context.Context, idempotent bool, in *entry) (*entry, error) {
	if a.to != "" {
		ctx = anser.WithMetadata(ctx, anser.Metadata{routeKey: a.to})
	}
	if idempotent {
		return setEntry.Call(ctx, a.client, in)
	}
	if a.keyed {
		return appendEntry.Call(ctx, a.client, in, anser.IdempotencyKey(hex.EncodeToString(in.ID)))
	}
	return appendEntry.Call(ctx, a.client, in)
}

func (a anserCaller) outcome(err error) (ledger.Outcome, anser.Code) {
	code := anser.CodeOf(err)
	switch anser.OutcomeOf(err) {
	case anser.NotSent:
		return ledger.NotSent, code
	case anser.Refused:
		return ledger.Refused, code
	case anser.Executed:
		return ledger.Executed, code
	}
	return ledger.Unknown, code
}

// healthEvent is a health event of a client.
type healthEvent struct {
	At      time.Time
	Change  string
	Address string
	Reason  string
}

// status is the view of a client.
type status struct {
	Instances []instance
	Trouble   string
	Snapshot  bool
	Events    []healthEvent
}

type instance struct {
	Address   string
	Connected bool
	Down      bool
	Held      bool
	Ejected   string
}

func runClient(c config, p *parent) error {
	s := &client{registry: c.Registry}
	opts := []anser.DialOption{anser.Logger(logger()), anser.Timeout(c.Timeout), anser.Observe(anser.Observer{
		Health:  s.note,
		Request: func(context.Context, anser.MessageInfo) error { s.attempts.Add(1); return nil },
	})}
	if c.Dir != "" {
		opts = append(opts, anser.SnapshotDir(c.Dir))
	} else {
		opts = append(opts, anser.NoSnapshot())
	}
	if c.Stall > 0 {
		opts = append(opts, anser.WriteStall(c.Stall))
	}
	if c.Conns > 0 {
		opts = append(opts, anser.Conns(c.Conns))
	}
	if c.Attempts > 0 {
		opts = append(opts, anser.Attempts(c.Attempts))
	}
	if c.Keepalive[0] > 0 {
		opts = append(opts, anser.Keepalive(c.Keepalive[0], c.Keepalive[1]))
	}
	if c.Windows[0] > 0 {
		opts = append(opts, anser.FlowControlWindows(c.Windows[0], c.Windows[1]))
	}
	if c.Message > 0 {
		opts = append(opts, anser.MaxMessage(c.Message))
	}
	if c.TLS != nil {
		files, err := c.TLS.open()
		if err != nil {
			return err
		}
		defer files.Close()
		opts = append(opts, anser.TLS(files.Client()))
	}
	if c.Checksums {
		opts = append(opts, anser.Checksums())
	}
	if strings.HasPrefix(c.Target, "etcd://") {
		opts = append(opts, etcd.Scheme())
	}
	var err error
	if c.Registry != "" {
		if s.list, err = watchList(c.Registry); err != nil {
			return err
		}
		defer s.list.close()
	}
	s.dialed = time.Now()
	if s.Client, err = anser.Dial(c.Target, opts...); err != nil {
		return err
	}
	s.caller = anserCaller{client: s.Client, keyed: c.Keyed > 0, to: c.Service}
	if len(c.Over) > 0 {
		in, err := newTurns(c, s)
		if err != nil {
			return err
		}
		defer in.close()
		s.caller = in
	}
	if c.Body > 0 {
		s.caller = newBulkCaller(s.Client, c.Body)
	}
	if err := p.ready(); err != nil {
		return err
	}
	if err := p.obey(s.do); err != nil {
		return err
	}
	return s.Close()
}

func (s *client) note(e anser.HealthEvent) {
	if e.Change != anser.InstanceEjected && e.Change != anser.InstanceRestored {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, healthEvent{time.Now(), e.Change.String(), e.Instance.Address, e.Reason})
}

func (s *client) do(c command) (any, error) {
	if s.Client == nil && slices.Contains([]string{"status", "absent", "first", "feed", "pour", "fill", "unknown"}, c.Do) {
		return nil, fmt.Errorf("a peer's client cannot %s", c.Do)
	}
	switch c.Do {
	case "status":
		return s.status(), nil
	case "list":
		if s.list == nil {
			return nil, errors.New("this client does not watch a registry")
		}
		return s.list.state(), nil
	case "usage", "settle":
		var heap, stacks int64
		if c.Do == "settle" {
			heap, stacks = settle()
		}
		u, err := used()
		u.Heap, u.Stacks, u.Attempts, u.Calls, u.Succeeded = heap, stacks, s.attempts.Load(), s.calls.Load(), s.ok.Load()
		return u, err
	case "load":
		var o loadOptions
		if err := json.Unmarshal(c.Value, &o); err != nil {
			return nil, err
		}
		if s.load != nil {
			return nil, errors.New("there is a load already")
		}
		s.load = newLoad(s, o)
		s.load.begin()
		return nil, nil
	case "rate":
		var rate float64
		if err := json.Unmarshal(c.Value, &rate); err != nil {
			return nil, err
		}
		s.load.setRate(rate)
		return nil, nil
	case "stop":
		var file string
		if err := json.Unmarshal(c.Value, &file); err != nil {
			return nil, err
		}
		return s.load.stop(file)
	case "measure":
		var o measureOptions
		if err := json.Unmarshal(c.Value, &o); err != nil {
			return nil, err
		}
		return s.measure(o)
	case "absent":
		var o absentOptions
		if err := json.Unmarshal(c.Value, &o); err != nil {
			return nil, err
		}
		return s.absent(o), nil
	case "first":
		var o firstOptions
		if err := json.Unmarshal(c.Value, &o); err != nil {
			return nil, err
		}
		return s.first(o)
	case "put":
		return put(s.registry)
	case "get":
		return get(s.registry)
	case "revoke":
		return revoke(s.registry)
	case "hold":
		var o holdOptions
		if err := json.Unmarshal(c.Value, &o); err != nil {
			return nil, err
		}
		s.held = s.hold(o)
		return nil, nil
	case "feed", "pour":
		var o flowOptions
		if err := json.Unmarshal(c.Value, &o); err != nil {
			return nil, err
		}
		var err error
		s.streams, err = s.flow(c.Do, o)
		return nil, err
	case "dry":
		f := s.streams
		s.streams = nil
		return f.stop()
	case "cancel":
		return s.held.cancelAll()
	case "fill":
		var o holdOptions
		if err := json.Unmarshal(c.Value, &o); err != nil {
			return nil, err
		}
		s.held = s.fill(o)
		return nil, nil
	case "unknown":
		return s.unknown(c.Value)
	}
	return nil, fmt.Errorf("a client cannot %s", c.Do)
}

func (s *client) status() status {
	st := s.Status()
	out := status{Snapshot: st.Snapshot}
	if st.Trouble != nil {
		out.Trouble = st.Trouble.Error()
	}
	for _, in := range st.Instances {
		out.Instances = append(out.Instances, instance{in.Address, in.Connected, in.Down, in.Held, in.Ejected})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Events = slices.Clone(s.events)
	return out
}

// list returns the registry's list, as seen by a client.
type list struct {
	registry *etcd.Registry
	cancel   context.CancelFunc
	done     chan struct{}

	mu  sync.Mutex // guards now
	now listed
}

// listed is what a registry lists.
type listed struct {
	Current   bool // it is not older than the last trouble
	Addresses []string
}

func watchList(address string) (*list, error) {
	r, err := etcd.Dial([]string{address})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &list{registry: r, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		r.Watch(ctx, service, l.update, func(error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.now.Current = false
		})
	}()
	return l, nil
}

func (l *list) update(in []registry.Instance) {
	now := listed{Current: true}
	for i := range in {
		now.Addresses = append(now.Addresses, in[i].Address)
	}
	slices.Sort(now.Addresses)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = now
}

func (l *list) state() listed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *list) close() {
	l.cancel()
	<-l.done
	l.registry.Close()
}
