// Package workers runs jobs on goroutines that are reused.
package workers

import (
	"runtime"
	"sync"

	"github.com/anser-rpc/anser/internal/upkeep"
)

// Pools are workers for jobs of type *J, in a number of pools: with a single one, two locked
// sections of each job would be the same for all processors. Safe for concurrent use.
type Pools[J any] []struct {
	pool[J]
	_ [64]byte
}

const maxIdle = 1024 // of all pools

// New returns n pools, a power of 2, whose workers execute run. It returns the job that the worker
// executes next, or nil. Trim is a part of the task.
func New[J any](n int, run func(*J) *J, task *upkeep.Task) Pools[J] {
	all := make(Pools[J], n)
	for i := range all {
		all[i].run, all[i].upkeep, all[i].most = run, task, max(maxIdle/n, 1)
	}
	return all
}

// Do makes a worker of the pool i execute the job. It does not wait.
func (all Pools[J]) Do(i uint32, j *J) { all[int(i)&(len(all)-1)].do(j) }

// Trim ends half of the workers that were not needed since the last Trim, and reports whether idle
// ones are left.
func (all Pools[J]) Trim() (left bool) {
	for i := range all {
		left = all[i].trim() || left
	}
	return left
}

// Rest sets whether Trim is no longer called. If so, workers end instead of becoming idle.
func (all Pools[J]) Rest(yes bool) {
	for i := range all {
		all[i].rest(yes)
	}
}

// Close ends the idle workers and waits for the others.
func (all Pools[J]) Close() {
	for i := range all {
		all[i].close()
	}
}

// pool is a pool of workers. The last one that became idle is the first to
// be used: its stack has grown already and is in the cache.
type pool[J any] struct {
	run  func(*J) *J
	most int // that may be idle

	mu      sync.Mutex // guards the fields below
	idle    []chan *J
	least   int          // fewest idle ones since the last trim
	upkeep  *upkeep.Task // trims while there are idle ones; or nil
	closed  bool
	resting bool
	wg      sync.WaitGroup
}

func (p *pool[J]) do(j *J) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.least = min(p.least, n-1)
		p.mu.Unlock()
		w <- j
		return
	}
	p.wg.Add(1)
	p.mu.Unlock()
	go p.work(j)
}

func (p *pool[J]) work(j *J) {
	defer p.wg.Done()
	var own chan *J // made by the first wait, since most goroutines of a burst never wait
	for j != nil {
		if next := p.run(j); next != nil {
			// Waking another worker for it would put that one before every other goroutine that
			// waits for this processor, and while calls wait there is always one more: the reader
			// goroutines of the connections would not run for tenths of a second. Now they come
			// first.
			runtime.Gosched()
			j = next
			continue
		}
		j = p.next(&own)
	}
}

// next waits for a job on the worker's own channel. It returns nil if the worker ends.
func (p *pool[J]) next(own *chan *J) *J {
	p.mu.Lock()
	if p.closed || p.resting || len(p.idle) >= p.most {
		p.mu.Unlock()
		return nil
	}
	if *own == nil {
		*own = make(chan *J, 1)
	}
	p.idle = append(p.idle, *own)
	p.upkeep.Stir()
	p.mu.Unlock()
	return <-*own
}

func (p *pool[J]) trim() (left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := (min(p.least, len(p.idle)) + 1) / 2
	for _, w := range p.idle[:n] {
		w <- nil
	}
	p.idle = append(p.idle[:0], p.idle[n:]...)
	p.least = len(p.idle)
	return p.least > 0
}

func (p *pool[J]) rest(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = yes
	if yes {
		p.endIdleLocked()
	}
}

func (p *pool[J]) endIdleLocked() {
	for _, w := range p.idle {
		w <- nil
	}
	p.idle, p.least = nil, 0
}

func (p *pool[J]) close() {
	p.mu.Lock()
	p.closed = true
	p.endIdleLocked()
	p.mu.Unlock()
	p.wg.Wait()
}
