package anser

import (
	"runtime"
	"sync"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
)

// job is a call that does not run on the reader goroutine of its connection. It is pooled.
type job struct {
	ctx     *callContext
	codec   codec.Codec
	payload []byte    // its own, or the end of large
	large   []byte    // the frame of a large request, from bufpool.GetFrame, or nil
	out     []byte    // the encoded reply
	arrived mono.Time // time at which the request had arrived
	held    int       // bytes that the server's memory counts

	// Of an adaptive limit.
	granted mono.Time // time at which it got its place
	refused *Error    // why it does not run, or nil
}

var jobs = sync.Pool{New: func() any { return new(job) }}

func putJob(j *job) {
	if j.large != nil {
		bufpool.PutFrame(j.large)
		j.large, j.payload = nil, nil
	}
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

// give releases the memory that is counted for the job, which belongs to the call ctx.
func (j *job) give(ctx *callContext) {
	if j.held != 0 {
		ctx.conn.server.memory.Give(j.held)
		j.held = 0
	}
}

// workerPools are the workers of a server, in as many pools as there are processors: with one, two
// locked sections of each call would be the same for all of them. The lane of a connection chooses
// its pool.
type workerPools []struct {
	workers
	_ [64]byte
}

// newWorkerPools returns n pools, a power of 2, whose maintenance is a part of upkeep.
func newWorkerPools(n int, upkeep *upkeep.Task) workerPools {
	all := make(workerPools, n)
	for i := range all {
		all[i].upkeep, all[i].most = upkeep, max(maxIdleWorkers/n, 1)
	}
	return all
}

// do makes a worker run the job; it does not wait.
func (all workerPools) do(j *job) { all[int(j.ctx.conn.lane)&(len(all)-1)].do(j) }

// trim ends some of the workers that were not needed lately, and reports whether idle ones are
// left.
func (all workerPools) trim() (left bool) {
	for i := range all {
		left = all[i].trim() || left
	}
	return left
}

// rest sets whether trim is no longer called. If so, workers end instead of becoming idle.
func (all workerPools) rest(yes bool) {
	for i := range all {
		all[i].rest(yes)
	}
}

// close ends the idle workers and waits for the others.
func (all workerPools) close() {
	for i := range all {
		all[i].close()
	}
}

// workers runs jobs on goroutines that are reused. The last one that became idle is the first to
// be used: its stack has grown already and is in the cache.
type workers struct {
	most int // that may be idle

	mu      sync.Mutex // guards the fields below
	idle    []chan *job
	least   int          // fewest idle ones since the last trim
	upkeep  *upkeep.Task // trims while there are idle ones; or nil
	closed  bool
	resting bool
	wg      sync.WaitGroup
}

const maxIdleWorkers = 1024 // of a server

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

func (p *workers) work(j *job) {
	defer p.wg.Done()
	own := make(chan *job, 1)
	for j != nil {
		if j = j.ctx.conn.runJob(j); j != nil {
			// Waking another worker for it would put that one before every other goroutine that
			// waits for this processor, and while calls wait there is always one more: the reader
			// goroutines of the connections would not run for tenths of a second. Now they come
			// first.
			runtime.Gosched()
			continue
		}
		p.mu.Lock()
		if p.closed || p.resting || len(p.idle) >= p.most {
			p.mu.Unlock()
			return
		}
		p.idle = append(p.idle, own)
		p.upkeep.Stir()
		p.mu.Unlock()
		j = <-own
	}
}

// trim ends half of the workers that were not needed since the last trim.
func (p *workers) trim() (left bool) {
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

func (p *workers) rest(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = yes
	if yes {
		p.endIdleLocked()
	}
}

func (p *workers) endIdleLocked() {
	for _, w := range p.idle {
		w <- nil
	}
	p.idle, p.least = nil, 0
}

func (p *workers) close() {
	p.mu.Lock()
	p.closed = true
	p.endIdleLocked()
	p.mu.Unlock()
	p.wg.Wait()
}

// handToWorker makes a worker run the call.
func (c *calleeHalf) handToWorker(s *reading, n *named, ctx *callContext, cd codec.Codec, payload []byte) error {
	held, refused := c.take(ctx, len(payload))
	if refused != nil {
		return c.refuse(s, ctx, refused)
	}
	j := jobs.Get().(*job)
	j.ctx, j.codec, j.arrived, j.held = ctx, cd, s.arrived, held
	if j.large = s.takeLarge(); j.large != nil {
		j.payload = payload
	} else {
		j.payload = codec.AppendInPieces(j.payload[:0], payload)
	}
	if c.auth != nil {
		c.confirm(n, ctx)
	}
	if g := ctx.method.limits; g != nil && g.queue != nil {
		g.queue.enter(j)
		return nil
	}
	c.server.workers.do(j)
	return nil
}

// take adds a call with a request of size bytes that does not run on the reader goroutine, or
// returns why it cannot run. held is how many bytes the server's memory counts for the call.
func (c *calleeHalf) take(ctx *callContext, size int) (held int, refused *Error) {
	srv := c.server
	if !srv.inFlight.Take(c.lane) {
		return 0, srv.tooManyInFlight()
	}
	if size > smallRequest {
		if held = size; !srv.memory.Take(held) {
			srv.inFlight.Give(c.lane)
			return 0, srv.outOfMemory(held)
		}
	}
	if refused = c.open(ctx); refused != nil {
		srv.inFlight.Give(c.lane)
		srv.memory.Give(held)
		return 0, refused
	}
	return held, nil
}

// open adds a call, unless as many are open already as the settings told the client.
func (c *calleeHalf) open(ctx *callContext) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.accepted != nil && c.accepted.protocol != nil && c.accepted.acked: // the connection may have ended, and then nothing would end the call
		return errDraining
	case uint64(c.detached) >= c.server.settings.MaxCalls:
		return c.tooManyCalls()
	}
	c.openLocked(ctx)
	return nil
}

func (s *Server) tooManyInFlight() *Error {
	return over(limitInFlight, "the server is at its limit of %d calls in flight (anser.MaxInFlight)", s.o.maxInFlight)
}

func (c *calleeHalf) tooManyCalls() *Error {
	return over(limitCalls, "the connection is at its limit of %d open calls (anser.MaxCalls): wait for one of them, or use another connection", c.server.settings.MaxCalls)
}

func (c *calleeHalf) openLocked(ctx *callContext) {
	c.detached++
	c.opened++
	c.running.Put(ctx.id, ctx)
}

// runJob runs a call on a worker, and returns the job that the worker runs next, or nil.
func (c *calleeHalf) runJob(j *job) (next *job) {
	ctx, arrived, began := j.ctx, j.arrived, mono.Now()
	refused := j.late(began)
	if st := ctx.stream(); st != nil {
		putJob(j)
		c.runStream(ctx, st, refused, arrived)
		return nil
	}
	if k := ctx.protocolCall(); k != nil && k.stream != nil {
		putJob(j)
		c.runForeign(ctx, k.stream, refused, arrived)
		return nil
	}
	returned, answered := false, false
	defer func() {
		if answered {
			return
		}
		defer func() {
			if next := ctx.nextWaiting(); next != nil {
				next.ctx.conn.server.workers.do(next)
			}
		}()
		j.give(ctx)
		if !returned { // the handler ends the goroutine, by runtime.Goexit, or else the encoder of another protocol
			c.finishDetached(ctx, appendFault(nil, ctx, errExited))
		}
	}()
	t := callTimes{arrived: arrived, began: began}
	if refused != nil {
		j.out = appendRefusal(j.out[:0], ctx, refused)
	} else {
		if ctx.extras != nil && ctx.extras.key != "" && !ctx.method.takesKeys {
			j.out = c.server.executeOnce(ctx, j.codec, j.payload, j.out[:0], &t)
		} else {
			j.out = c.server.execute(ctx, j.codec, j.payload, j.out[:0], &t)
		}
		if m := ctx.method; m.mode == runLearned {
			m.placement.Note(t.end().Sub(began))
		}
		if g := ctx.method.limits; g != nil && g.queue != nil {
			now := t.end()
			g.queue.Record(&g.class, now.Sub(j.granted), now)
		}
	}
	returned = true
	if len(j.out) > smallRequest { // until it is in the buffer of the connection
		c.server.memory.Force(len(j.out))
		j.held += len(j.out)
	}
	c.finishDetached(ctx, j.out)
	answered = true
	if len(j.out) > loadBuffer && c.server.memory.Scarce() {
		c.dropLarge()
	}
	putJob(j)
	return ctx.nextWaiting()
}

func (c *callContext) expired(now mono.Time) bool { return c.deadline != 0 && now >= c.deadline }

var errExpired = refusal(DeadlineExceeded, "the call's time was over before it could run")

// finishDetached ends a call that did not end on the reader goroutine, and sends its answer.
func (c *calleeHalf) finishDetached(ctx *callContext, frame []byte) {
	ctx.finish()
	if k := ctx.protocolCall(); k != nil {
		defer c.release(ctx) // the protocol runs code of the user
		k.end()
		return
	}
	c.answer(ctx.id, frame)
	c.release(ctx)
}

// release gives back what a call had that did not end on the reader goroutine.
func (c *calleeHalf) release(ctx *callContext) {
	if c.auth != nil && ctx.extras != nil && ctx.extras.key != "" {
		c.server.orphans.remove(ctx)
	}
	c.server.inFlight.Give(c.lane)
	c.finishDrain()
}
