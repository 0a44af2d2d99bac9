package anser

import (
	"runtime"
	"sync"

	"github.com/anser-rpc/anser/codec"
)

// job is a call that does not run on the goroutine that reads its connection. It is pooled.
type job struct {
	ctx     *callContext
	codec   codec.Codec
	payload []byte // its own
	out     []byte // the encoded reply
	arrived int64  // nanotime at which the request was there
	held    int    // bytes that the server's memory counts

	// Of a gate.
	since   int64  // nanotime from which the call waits
	granted int64  // nanotime at which it got its place
	refused *Error // why it does not run, or nil
}

var jobs = sync.Pool{New: func() any { return new(job) }}

func putJob(j *job) {
	if cap(j.payload) > maxKeptMessage {
		j.payload = nil
	}
	if cap(j.out) > maxKeptMessage {
		j.out = nil
	}
	j.give(j.ctx)
	j.ctx, j.codec, j.refused = nil, nil, nil
	jobs.Put(j)
}

// give has the server's memory forget the job, which is of the call ctx.
func (j *job) give(ctx *callContext) {
	if j.held != 0 {
		ctx.conn.server.memory.give(j.held)
		j.held = 0
	}
}

// workers runs jobs on goroutines that are reused, the last one that became idle first: its stack has
// grown already and is in the cache.
type workers struct {
	mu     sync.Mutex // guards what follows
	idle   []chan *job
	least  int // fewest idle ones since the last trim
	closed bool
	wg     sync.WaitGroup
}

const maxIdleWorkers = 1024

// do runs the job; it does not wait.
func (p *workers) do(j *job) {
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

// hold has close wait until release is called. The caller knows of a worker that runs.
func (p *workers) hold() { p.wg.Add(1) }

func (p *workers) release() { p.wg.Done() }

func (p *workers) work(j *job) {
	defer p.wg.Done()
	own := make(chan *job, 1)
	for j != nil {
		if j = j.ctx.conn.runJob(j); j != nil {
			// Waking another worker for it would put that one before everything else that wants this
			// processor, and while calls wait there is always one more: the goroutines that read the
			// connections would not get to run for tenths of a second. Now they come first.
			runtime.Gosched()
			continue
		}
		p.mu.Lock()
		if p.closed || len(p.idle) >= maxIdleWorkers {
			p.mu.Unlock()
			return
		}
		p.idle = append(p.idle, own)
		p.mu.Unlock()
		j = <-own
	}
}

// trim ends half of the workers that nobody needed since the last trim.
func (p *workers) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := (min(p.least, len(p.idle)) + 1) / 2
	for _, w := range p.idle[:n] {
		w <- nil
	}
	p.idle = append(p.idle[:0], p.idle[n:]...)
	p.least = len(p.idle)
}

// close ends the idle workers and waits for the others.
func (p *workers) close() {
	p.mu.Lock()
	p.closed = true
	for _, w := range p.idle {
		w <- nil
	}
	p.idle = nil
	p.mu.Unlock()
	p.wg.Wait()
}
