package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
)

// A directory is where servers register and clients look.
type directory struct {
	registrar registry.Registrar
	scheme    registry.Scheme
	close     func() error
}

func newDirectory(ctx context.Context, name, dir string) (*directory, error) {
	if name == "memory" {
		m := registry.NewMemory()
		return &directory{m, registry.Scheme{Name: "soak", Open: func(u *url.URL) (registry.Resolver, string, error) {
			return m.Join(), u.Host, nil
		}}, m.Close}, nil
	}
	member, err := embedded.Start(ctx, embedded.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	r, err := member.Registry()
	if err != nil {
		return nil, errors.Join(err, member.Close())
	}
	return &directory{r, registry.Scheme{Name: "soak", Open: func(u *url.URL) (registry.Resolver, string, error) {
		r, err := etcd.Dial([]string{member.Endpoint()})
		return r, u.Host, err
	}}, member.Close}, nil
}

// world is everything that a soak runs.
type world struct {
	o         options
	out       io.Writer
	tally     *tally
	mail      *mail
	directory *directory
	fleets    []*fleet
	heaps     []int64
	began     time.Time
}

// soak runs everything for a while, and then checks for leaks.
func soak(ctx context.Context, o options, out io.Writer) (bool, error) {
	if err := warm(); err != nil {
		return false, err
	}
	start, err := measure()
	if err != nil {
		return false, err
	}
	w := &world{o: o, out: out, tally: new(tally), mail: newMail(), began: time.Now()}
	if err := w.run(ctx); err != nil {
		return false, err
	}
	end, err := settle(start)
	if err != nil {
		return false, err
	}
	return w.verdict(start, end), nil
}

// run is over when everything that it started has ended.
func (w *world) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "anser-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	data, err := os.MkdirTemp("", "anser-soak-registry-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	if w.directory, err = newDirectory(ctx, w.o.registry, data); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.directory.close()) }()
	for service, identity := range map[string]*identity{"plain": nil, "secret": newIdentity()} {
		f := &fleet{service: service, registry: w.directory.registrar, identity: identity, root: root, tally: w.tally, mail: w.mail}
		w.fleets = append(w.fleets, f)
		defer func() { err = errors.Join(err, f.close()) }()
		if err := f.fill(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, w.o.length)
	defer cancel()
	return w.live(ctx)
}

// live runs the clients, the churn, the cuts and the reports until ctx ends.
func (w *world) live(ctx context.Context) error {
	ctx, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	var wg sync.WaitGroup
	random := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(w.o.seed, n)) }
	for i, f := range w.fleets {
		if w.o.churn > 0 {
			wg.Go(func() {
				r := random(1000 + uint64(i))
				every(ctx, r, w.o.churn*time.Duration(len(w.fleets)), func() {
					if err := f.replace(r); err != nil {
						broken(err)
					}
				})
			})
		}
		if w.o.cuts > 0 {
			wg.Go(func() {
				r := random(2000 + uint64(i))
				every(ctx, r, w.o.cuts*time.Duration(len(w.fleets)), func() { f.cut(r) })
			})
		}
	}
	for i := range w.o.clients {
		wg.Go(func() {
			r := random(uint64(i))
			for ctx.Err() == nil {
				if err := w.client(ctx, r, w.fleets[i%len(w.fleets)]); err != nil {
					broken(err)
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-time.After(w.o.report):
			case <-ctx.Done():
				return
			}
			if err := w.report(); err != nil {
				broken(err)
			}
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wg.Wait()
	}()
	<-ctx.Done()
	select {
	case <-ended:
	case <-time.After(longest + time.Minute):
		w.tally.fail("the end", fmt.Errorf("calls hang:\n%s", stacks()))
		return errors.New("calls hang: there is no way to an orderly end")
	}
	if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// client runs one client for a while.
func (w *world) client(ctx context.Context, r *rand.Rand, f *fleet) error {
	p, err := dial(r, f, w.directory.scheme)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(8))*time.Second)
	defer cancel()
	p.live(ctx, r, w.o.callers)
	return p.close()
}

// report prints a line.
func (w *world) report() error {
	now, err := measure()
	if err != nil {
		return err
	}
	w.heaps = append(w.heaps, now.heap)
	w.mail.turn(w.tally)
	y := w.tally
	for _, f := range y.news() {
		fmt.Fprintf(w.out, "        FAILURE %s\n", f)
	}
	if w.o.profile != "" {
		if err := profile(w.o.profile); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w.out, "%6s  %d calls, %d cancelled, %d lost, %d failures; %d cuts, %d servers and %d clients replaced; %d goroutines, %d descriptors, heap %s, RSS %s\n",
		time.Since(w.began).Round(time.Second), y.calls(), y.cancelled.Load(), y.lost.Load(), y.failures.Load(), y.cuts.Load(), y.replaced.Load(),
		y.clients.Load(), now.goroutines, now.fds, mib(now.heap), mib(now.rss))
	return err
}

// verdict prints the result and reports whether there were no failures.
func (w *world) verdict(start, end held) bool {
	y := w.tally
	fmt.Fprintf(w.out, "\n%d calls in %s:", y.calls(), time.Since(w.began).Round(time.Second))
	for k := range kinds {
		fmt.Fprintf(w.out, " %d %s,", y.done[k].Load(), kindNames[k])
	}
	fmt.Fprintf(w.out, " %d cancelled, %d lost with %d cuts and %d servers\n", y.cancelled.Load(), y.lost.Load(), y.cuts.Load(), y.replaced.Load())
	problems := leaks(start, end)
	first, last, ok, enough := flat(w.heaps)
	heap := fmt.Sprintf("the run is too short to judge the heap, which takes %d lines", judged)
	if enough {
		heap = fmt.Sprintf("heap %s in the first quarter, %s in the last", mib(first), mib(last))
	}
	if !ok {
		problems = append(problems, "the heap grows: "+heap)
	}
	if len(w.heaps) > 0 && y.cuts.Load()+y.replaced.Load() == 0 && y.lost.Load() > 0 {
		problems = append(problems, fmt.Sprintf("%d calls were lost though nothing was cut or closed", y.lost.Load()))
	}
	if n := y.failures.Load(); n > 0 {
		problems = append(problems, fmt.Sprintf("%d failures, the first ones:", n))
		problems = append(problems, y.first...)
	}
	fmt.Fprintf(w.out, "%d goroutines and %d descriptors, %d and %d at the start; %s; heap in the end %s\n",
		end.goroutines, end.fds, start.goroutines, start.fds, heap, mib(end.heap))
	if len(problems) == 0 {
		fmt.Fprintln(w.out, "PASS: no failure, nothing left")
		return true
	}
	fmt.Fprintln(w.out, "FAIL")
	for _, p := range problems {
		fmt.Fprintf(w.out, "  %s\n", p)
	}
	if len(leaks(start, end)) > 0 {
		fmt.Fprintf(w.out, "%s\n", stacks())
	}
	return false
}
