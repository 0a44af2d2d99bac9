package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// Entry is what calls are about: request and reply.
type Entry struct {
	ID    string        // no two calls have the same
	Hold  time.Duration // that the handler takes
	Depth int           // of calls back to the server
}

// The methods of an instance.
const (
	appendEntry    anser.Method[Entry, Entry] = "Ledger.Append"
	callBack       anser.Method[Entry, Entry] = "Ledger.CallBack"
	callBackInline anser.Method[Entry, Entry] = "Ledger.CallBackInline"
)

// runInstance is the role of a server.
func runInstance(c config) error {
	opts := []anser.ServerOption{anser.Logger(slog.New(slog.NewTextHandler(os.Stderr, nil)))}
	if c.Registry != "" {
		r, err := dialRegistry(c.Registry)
		if err != nil {
			return err
		}
		opts = append(opts, anser.Announce(r, registry.Instance{Service: service}))
	}
	ledger, err := os.OpenFile(c.Ledger, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer ledger.Close()
	self, err := anser.Dial(c.Address)
	if err != nil {
		return err
	}
	defer self.Close()
	s := anser.NewServer(opts...)
	h := &instance{ledger, self}
	err = errors.Join(
		appendEntry.Handle(s, h.append),
		callBack.Handle(s, h.callBack(callBack)),
		callBackInline.Handle(s, h.callBack(callBackInline), anser.Inline()),
	)
	if err != nil {
		return err
	}
	go func() {
		for len(s.Addrs()) == 0 {
			time.Sleep(time.Millisecond)
		}
		ready()
	}()
	return s.ListenAndServe(c.Address)
}

// instance has the handlers.
type instance struct {
	ledger *os.File
	self   *anser.Client // of the server itself
}

// append records that it ran. A line of the file is written by one system call, which several
// processes can do at once, and which a kill of this process cannot undo.
func (h *instance) append(ctx context.Context, in *Entry) (*Entry, error) {
	if _, err := h.ledger.WriteString(in.ID + "\n"); err != nil {
		return nil, err
	}
	if in.Hold > 0 {
		select {
		case <-time.After(in.Hold):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return in, nil
}

// callBack makes a handler that calls itself in.Depth times, one inside the other.
func (h *instance) callBack(m anser.Method[Entry, Entry]) func(context.Context, *Entry) (*Entry, error) {
	return func(ctx context.Context, in *Entry) (*Entry, error) {
		if in.Depth == 0 {
			return in, nil
		}
		return m.Call(ctx, h.self, &Entry{ID: in.ID, Depth: in.Depth - 1})
	}
}

// runCaller is the role of a client that makes some calls, each of which must succeed.
func runCaller(c config) error {
	client, err := anser.Dial("etcd://"+c.Registry+"/"+service, scheme(), anser.SnapshotDir(c.Dir), anser.Timeout(bound))
	if err != nil {
		return err
	}
	for i := range c.Calls {
		if _, err := appendEntry.Call(context.Background(), client, &Entry{ID: fmt.Sprintf("caller-%d-%d", os.Getpid(), i)}); err != nil {
			return err
		}
		if i == 0 {
			ready()
		}
	}
	return client.Close()
}

// startInstances starts n instances of the service.
func startInstances(t *testing.T, n int, c config) []*process {
	t.Helper()
	var all []*process
	for range n {
		c.Address = freeAddress()
		all = append(all, start(t, "instance", c))
	}
	return all
}
