package say

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/sysusage"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/telemetry"
)

// Watched describes a process of a system that a console watches.
type Watched struct {
	Registry string // host:port of etcd
	ID       string
}

// watchedService is the name of its service.
const watchedService = "say"

// CommandRate and a number of calls per second, or -1 for as many as the callers make, change what
// LoadWatched does. It makes no calls at first.
const CommandRate = "rate "

// ServeRegistry runs etcd on a free port of the loopback.
func ServeRegistry(commands io.Reader, answers io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "anser-reach-etcd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m, err := embedded.Start(context.Background(), embedded.Config{Dir: dir, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return answerCommands(commands, answers, func() (Stat, error) {
		return Stat{Addr: strings.TrimPrefix(m.Endpoint(), "http://"), CPU: cpuTime().Seconds()}, nil
	})
}

// page is the admin page of a process, which measures what readings by a console take of it.
type page struct {
	*admin.Page
	meter    *telemetry.Meter
	url      string
	server   *http.Server
	served   sync.WaitGroup
	readings atomic.Int64
	cpu      atomic.Int64 // nanoseconds that their handler took
}

func servePage(id string) (*page, error) {
	p := &page{meter: telemetry.New()}
	var err error
	if p.Page, err = admin.New(p.meter, admin.Name(id), admin.Logger(slog.New(slog.DiscardHandler))); err != nil {
		return nil, err
	}
	l, err := p.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.url, p.server = "http://"+l.Addr().String()+"/", &http.Server{Handler: p}
	p.served.Go(func() { p.server.Serve(l) })
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := sysusage.CurrentThread().CPU
	p.Page.ServeHTTP(w, r)
	p.cpu.Add(sysusage.CurrentThread().CPU - before)
	p.readings.Add(1)
}

func (p *page) close() error {
	err := errors.Join(p.Close(), p.server.Close())
	p.served.Wait()
	return err
}

// add adds what is known about the page.
func (p *page) add(s *Stat) {
	s.Page, s.Readings, s.ReadingCPU = p.url, p.readings.Load(), time.Duration(p.cpu.Load()).Seconds()
}

// ServeWatched is Serve for an instance of a service in a registry, with an admin page.
func ServeWatched(o Watched, commands io.Reader, answers io.Writer) (err error) {
	p, err := servePage(o.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	silent := slog.New(slog.DiscardHandler)
	reg, err := etcd.Dial([]string{o.Registry}, etcd.Logger(silent))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reg.Close()) }()
	self := registry.Instance{ID: o.ID, Service: watchedService, Tags: map[string]string{admin.Tag: p.url}}
	s := anser.NewServer(anser.NoSignals(), anser.Announce(reg, self), anser.Logger(silent), p.meter.Option())
	err = methodSay.Handle(s, func(_ context.Context, m *Message) (*Message, error) {
		benchpb.Answer(m)
		return m, nil
	})
	if err != nil {
		return err
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	err = answerCommands(commands, answers, func() (Stat, error) {
		st, err := stat(s, l.Addr().String())
		p.add(&st)
		return st, err
	})
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
		return err
	}
	return nil
}

// watchedCallers is the number of callers of LoadWatched.
const watchedCallers = 32

// callers make calls at a rate.
type callers struct {
	client *anser.Client
	calls  atomic.Int64
	failed atomic.Pointer[error]

	mu      sync.Mutex    // guards the fields below
	every   time.Duration // between the calls of one of them; 0: they make none
	changed chan struct{} // closed when every changes
}

// pace returns the time between the calls of a caller, and what is closed when it changes.
func (k *callers) pace() (time.Duration, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.every, k.changed
}

func (k *callers) set(every time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.every, k.changed = every, make(chan struct{})
}

// LoadWatched calls the instances of ServeWatched, and has an admin page.
func LoadWatched(o Watched, commands io.Reader, answers io.Writer) (err error) {
	p, err := servePage(o.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	client, err := anser.Dial("etcd://"+o.Registry+"/"+watchedService, etcd.Scheme(), anser.NoSnapshot(), anser.Logger(slog.New(slog.DiscardHandler)), p.meter.Option())
	if err != nil {
		return err
	}
	defer client.Close()
	k := &callers{client: client, changed: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for i := range watchedCallers {
		wg.Go(func() { k.run(ctx, i) })
	}
	return answerCommandsAnd(commands, answers, func() (Stat, error) {
		st := Stat{CPU: cpuTime().Seconds(), Calls: k.calls.Load()}
		p.add(&st)
		if err := k.failed.Load(); err != nil {
			return st, *err
		}
		return st, nil
	}, k.do)
}

// do obeys CommandRate.
func (k *callers) do(command string) error {
	text, ok := strings.CutPrefix(command, CommandRate)
	rate, err := strconv.ParseFloat(text, 64)
	switch {
	case !ok || err != nil:
		return fmt.Errorf("unknown command %q", command)
	case rate < 0:
		k.set(1)
	case rate == 0:
		k.set(0)
	default:
		k.set(time.Duration(watchedCallers / rate * 1e9))
	}
	return nil
}

// behind is how much time a caller makes up for.
const behind = 100 * time.Millisecond

// run makes the calls of one caller.
func (k *callers) run(ctx context.Context, number int) {
	message := benchpb.Filled()
	for ctx.Err() == nil {
		every, changed := k.pace()
		// The callers begin at different times.
		k.runAt(ctx, message, time.Now().Add(every*time.Duration(number)/watchedCallers), every, changed)
	}
}

// runAt makes calls until the pace changes, the first one at a time.
func (k *callers) runAt(ctx context.Context, message *Message, next time.Time, every time.Duration, changed <-chan struct{}) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		wait := time.Until(next)
		if every == 0 {
			wait = time.Hour
		}
		if wait > 0 {
			t.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-changed:
				return
			case <-t.C:
			}
		} else if isOver(ctx, changed) {
			return
		}
		if every == 0 {
			continue
		}
		if next = next.Add(every); time.Since(next) > behind {
			next = time.Now()
		}
		out, err := methodSay.Call(ctx, k.client, message)
		if err == nil && !benchpb.Answered(out) {
			err = fmt.Errorf("wrong reply %v", out)
		}
		if err != nil {
			if ctx.Err() == nil {
				k.failed.CompareAndSwap(nil, &err)
			}
			<-ctx.Done() // the process reports it
			return
		}
		k.calls.Add(1)
	}
}

// isOver reports whether a caller must look again at what it does.
func isOver(ctx context.Context, changed <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return true
	case <-changed:
		return true
	default:
		return false
	}
}
