package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/child"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
)

// InstanceCommand is the command that runs an instance in a process started by Run; its flags are
// those of InstanceOptions.
const InstanceCommand = "demo-instance"

// InstanceOptions describe the instance of a process.
type InstanceOptions struct {
	Service, ID, Version, Registry string
	Record                         string // folder of its recording
	Files                          string // folder that posts serves; "": none
}

func (o InstanceOptions) args() []string {
	return []string{InstanceCommand, "--service", o.Service, "--id", o.ID, "--version", o.Version, "--registry", o.Registry, "--record", o.Record, "--files", o.Files}
}

// ready is an instance's report to its parent.
type ready struct {
	Address string `json:"address"`
}

// drainBound is how long calls may take to finish when an instance is restarted.
const drainBound = 10 * time.Second

// instanceKey is the trailer with the name of the instance that answered.
const instanceKey = "instance"

// ServeInstance serves until ctx is done or the input ends, and then drains.
func ServeInstance(ctx context.Context, o InstanceOptions, in io.Reader, out, errOut io.Writer) (err error) {
	service, err := serviceNamed(o.Service)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelWarn}))
	reg, err := etcd.Dial([]string{strings.TrimPrefix(o.Registry, "etcd://")}, etcd.TTL(leaseTTL), etcd.Logger(log))
	if err != nil {
		return err
	}
	defer func() { // it ends well also while the registry is away, and must not end the demo
		if gone := reg.Close(); gone != nil {
			log.Warn("the registry drops the instance by itself when its lease ends", "id", o.ID, "error", gone)
		}
	}()
	failed := func(err error) { log.Warn("spans are not exported", "err", err) }
	seen, err := watch(watchOptions{service: o.Service, id: o.ID, failed: failed})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.close()) }()
	calls, err := recordCalls(o.Record, log)
	if err != nil {
		return err
	}
	defer calls.end()
	self := registry.Instance{ID: o.ID, Service: o.Service, Version: o.Version, Zone: zone(o.ID), Tags: map[string]string{admin.Tag: seen.url}}
	var late lateness
	server := anser.NewServer(anser.Announce(reg, self), anser.Intercept(sign(o.ID)), anser.Intercept(late.intercept),
		anser.Logger(log), seen.calls, calls.option(), anser.AcceptCompression(all.Compressors()...), protocols.All(protocols.Handler(metrics(seen.meter))))
	Slow.Handle(server, late.set)
	closer, err := service.register(server, o.Registry, seen.calls)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer()) }()
	closeFiles, err := serveFiles(server, o.Service, o.Files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFiles()) }()
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if err := child.SayReady(out, ready{l.Addr().String()}); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	case <-child.Orphaned(in):
	}
	bounded, cancel := context.WithTimeout(context.Background(), drainBound)
	defer cancel()
	err = server.Shutdown(bounded)
	if end := <-served; !errors.Is(end, anser.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// sign adds the trailer with the name of the instance.
func sign(id string) anser.Interceptor {
	return func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			if err := anser.SetTrailer(ctx, instanceKey, id); err != nil {
				return err
			}
			return next(ctx, inv)
		}
	}
}

// Slow is the control method of an instance: it delays all later answers of other methods.
const Slow anser.Method[SlowArgs, SlowReply] = "Demo.Slow"

// SlowArgs is the delay.
type SlowArgs struct{ Micros int64 }

// SlowReply is empty.
type SlowReply struct{}

// lateness is the delay of an instance's answers.
type lateness struct{ micros atomic.Int64 }

func (l *lateness) set(_ context.Context, in *SlowArgs) (*SlowReply, error) {
	l.micros.Store(in.Micros)
	return new(SlowReply), nil
}

func (l *lateness) intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		if by := l.micros.Load(); by > 0 && inv.Method != string(Slow) {
			t := time.NewTimer(time.Duration(by) * time.Microsecond)
			defer t.Stop()
			select {
			case <-t.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return next(ctx, inv)
	}
}

// instanceID names the instances of a service: "arith-1".
func instanceID(service string, n int) string { return fmt.Sprintf("%s-%d", service, n) }

// zone distributes the instances of a service over imaginary zones.
func zone(id string) string { return "zone-" + string('a'+id[len(id)-1]-'1') }

// dialOptions are the options of all clients of the demo.
func dialOptions() []anser.DialOption {
	return []anser.DialOption{
		etcd.Scheme(), anser.Idempotent(), anser.NoSnapshot(), anser.Logger(slog.New(slog.DiscardHandler)),
	}
}
