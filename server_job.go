package anser

import (
	"sync"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/mono"
)

// job is a call that does not run on the reader goroutine of its connection. It is pooled. While
// the handler runs, which may take long, it has no buffer from a pool.
type job struct {
	ctx     *callContext
	codec   codec.Codec
	payload []byte  // of the request; nil: it is decoded
	copied  *[]byte // the buffer of payload, from scratch, or nil
	large   []byte  // the same for a large request, from bufpool.GetFrame, or nil
	reply   *[]byte // the buffer of the reply, from scratch, or nil
	out     []byte  // what answers the call
	held    int     // bytes that the server's memory counts

	expected int // bytes of the reply that are expected, of a call that has waited
	unread   waitState

	// Of a request that the reader goroutine has decoded.
	decoded bool
	size    int // bytes that it was encoded in; with observers, of any request
	message any
	fault   *Error // why it could not be decoded, or nil

	run      execution
	returned bool // out is complete

	// Of an adaptive limit.
	granted mono.Time // time at which it got its place
	refused *Error    // why it does not run, or nil
}

var jobs = sync.Pool{New: func() any { return new(job) }}

// newJob returns the job of a call whose request had arrived at a time.
func newJob(ctx *callContext, arrived mono.Time) *job {
	j := jobs.Get().(*job)
	j.ctx, j.run.job, j.run.arrived, j.run.lends = ctx, j, arrived, true
	return j
}

func putJob(j *job) {
	j.dropRequest()
	if j.reply != nil {
		if cap(j.out) > cap(*j.reply) {
			*j.reply = j.out
		}
		putScratch(j.reply)
	}
	j.give(j.ctx)
	*j = job{}
	jobs.Put(j)
}

// keepRequest stores the request, which is in the buffer of the connection.
func (j *job) keepRequest(s *reading, payload []byte) {
	if s.isLarge() {
		j.large, j.payload = s.takeLarge(), payload
		return
	}
	if borrows(j.codec) { // until the handler has returned: no more than it needs
		j.payload = codec.AppendInPieces(nil, payload)
		return
	}
	j.copied = scratch.Get().(*[]byte)
	*j.copied = codec.AppendInPieces((*j.copied)[:0], payload)
	j.payload = *j.copied
}

// dropRequest drops the encoded request.
func (j *job) dropRequest() {
	if j.large != nil {
		bufpool.PutFrame(j.large)
		j.large = nil
	}
	if j.copied != nil {
		putScratch(j.copied)
		j.copied = nil
	}
	j.payload = nil
}

// room returns the buffer for the reply.
func (j *job) room() []byte {
	if j.reply == nil {
		j.reply = scratch.Get().(*[]byte)
	}
	return (*j.reply)[:0]
}

// lendRoom makes b, which is in the buffer of room, a reply that is lent.
func (j *job) lendRoom(b []byte) *[]byte {
	room := j.reply
	*room, j.reply = b, nil
	return room
}

// give releases the memory that is counted for the job, which belongs to the call ctx.
func (j *job) give(ctx *callContext) {
	if j.held != 0 {
		ctx.conn.server.memory.Give(j.held)
		j.held = 0
	}
}

// handToWorker makes a worker run the call, or wait first if later is set, and then apply the
// limits of the method. lost is as in loop; it is false for calls that are forwarded.
func (c *calleeHalf) handToWorker(s *reading, n *named, ctx *callContext, cd codec.Codec, payload []byte, later bool) (lost bool, err error) {
	held, refused := c.take(ctx, len(payload))
	if refused != nil {
		return false, c.refuse(s, ctx, refused)
	}
	j := newJob(ctx, s.arrived)
	j.codec, j.held = cd, held
	early := !later && c.decodesEarly(j, payload)
	if !early {
		j.keepRequest(s, payload)
	}
	if c.auth != nil {
		c.confirm(n, ctx)
	}
	if later {
		j.unread = waits
		j.start()
		return false, nil
	}
	if g := ctx.method.limits; g != nil && g.queue != nil {
		g.queue.enter(j)
		return false, nil
	}
	if early {
		return c.accepted.decodeEarly(s, j, payload), nil
	}
	j.start()
	return false, nil
}

const (
	manyInFlight = 256     // calls of a server from which on requests are decoded early
	earlyRequest = 1 << 10 // bytes of the largest request that is
)

// decodesEarly reports whether the reader goroutine decodes the request, and not the worker.
//
// With many calls in flight, their goroutines take most of the memory. A stack that has grown while
// the request was decoded never shrinks below 4 KiB, even if the handler then waits with a stack of
// less than 2 KiB. The reader goroutine is not what such a server lacks: where it is, few calls
// are in flight.
func (c *calleeHalf) decodesEarly(j *job, payload []byte) bool {
	if c.server.inFlight.Estimate(c.lane) < manyInFlight || len(payload) > earlyRequest || c.accepted == nil {
		return false
	}
	if c.server.o.observers.followMessages() { // they may refuse it, before it is decoded
		return false
	}
	if g := j.ctx.method.limits; g != nil && g.queue != nil { // it may be refused
		return false
	}
	if x := j.ctx.extras; x != nil && (x.key != "" || x.packing != nil || x.forwarded != nil) {
		return false
	}
	return !borrows(j.codec)
}

// decodeEarly decodes the request of a job, and makes a worker run it. If the codec ends the
// goroutine, by runtime.Goexit, another one goes on reading, and the worker ends its own. Until the
// codec has returned, the monitor may transfer the reading as in runInline; lost reports that.
func (c *serverConn) decodeEarly(s *reading, j *job, payload []byte) (lost bool) {
	word := c.beginTurn(s)
	returned := false
	defer func() {
		lost = !c.token.CompareAndSwap(word, uint64(readToken(word).idle()))
		if p := recover(); p != nil {
			j.fault = c.server.panicError(j.ctx, panicDecode, p)
		} else if !returned {
			j.fault = errExited
		}
		if lost {
			c.mu.Lock() // until the copies of the data in s are made
			s.release()
			c.mu.Unlock()
		} else if !returned && j.fault == errExited {
			c.server.conns.Go(func() { c.serve(s) })
		}
		j.decoded, j.size = true, len(payload)
		j.start()
	}()
	j.message, j.fault = c.server.decodeRequest(j.ctx, j.codec, payload, &j.run)
	returned = true
	return false
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

// start makes a worker execute the job. It does not wait.
func (j *job) start() {
	c := j.ctx.conn
	c.server.workers.Do(c.lane, j)
}

// execute runs a call on a worker, and returns the job that the worker executes next, or nil. As in
// [Server.execute], what is not needed while the handler runs is in functions of its own.
func (j *job) execute() (next *job) {
	c := j.ctx.conn
	if (c.unread.Any() || j.unread == waits) && j.mayWait() {
		if next, gone := j.awaitReading(); gone {
			return next
		}
	}
	if !c.begin(j) {
		return nil
	}
	ended := false
	defer func() {
		switch {
		case ended:
		case j.returned: // the encoder of another protocol ends the goroutine
			c.jobExited(j)
		default:
			if p := recover(); p != nil {
				next = c.jobPanicked(j, p)
			} else {
				c.jobExited(j)
			}
		}
	}()
	if request, ok := c.requestOf(j); ok {
		reply, err := j.ctx.method.run(j.ctx, request)
		j.out = c.server.answerWith(j.ctx, j.codec, reply, err, nil, &j.run)
	}
	next = c.finishJob(j)
	ended = true
	return next
}

// requestOf returns the decoded request of a job. ok is false if the call is not to be run any
// more, and j.out answers it.
//
//go:noinline
func (c *calleeHalf) requestOf(j *job) (request any, ok bool) {
	ctx, s := j.ctx, c.server
	j.run.phase = panicDecode
	switch {
	case j.refused != nil:
		j.out = appendRefusal(nil, ctx, j.refused)
		return nil, false
	case ctx.extras != nil && ctx.extras.key != "" && !ctx.method.takesKeys:
		j.out = s.executeOnce(ctx, j.codec, j.payload, nil, &j.run)
		return nil, false
	case s.o.observers != nil:
		if !j.decoded {
			j.size = len(j.payload)
		}
		if s.mayFollow(ctx, j.size) {
			if x := s.follow(ctx, j.size, &j.run); x != nil {
				j.out = s.executeObserved(x, ctx, j.codec, j.payload, nil, &j.run)
				return nil, false
			}
		}
	}
	request, fault := s.decodeRequest(ctx, j.codec, j.payload, &j.run)
	if fault != nil {
		j.out = appendRefusal(nil, ctx, fault)
		return nil, false
	}
	j.run.handle(ctx)
	return request, true
}

// begin prepares a job, and reports whether it is a call. If it is a stream, the handler has run.
//
//go:noinline
func (c *calleeHalf) begin(j *job) (call bool) {
	now := mono.Now()
	j.refused = j.late(now)
	j.run.began = now
	ctx, refused, arrived := j.ctx, j.refused, j.run.arrived
	if st := ctx.stream(); st != nil {
		putJob(j)
		c.runStream(ctx, st, refused, arrived)
		return false
	}
	if k := ctx.protocolCall(); k != nil && k.stream != nil {
		putJob(j)
		c.runForeign(ctx, k.stream, refused, arrived)
		return false
	}
	return true
}

// finishJob answers a call, and returns the job that its worker runs next, or nil.
//
//go:noinline
func (c *calleeHalf) finishJob(j *job) (next *job) {
	ctx := j.ctx
	c.holdAnswer(ctx, j)
	if j.run.measured {
		c.server.measure(ctx, &j.run, j.size, len(j.out)+len(j.run.lent.payload))
	}
	if j.refused == nil {
		if m := ctx.method; m.mode == runLearned {
			m.placement.Note(j.run.end().Sub(j.run.began))
		}
		if g := ctx.method.limits; g != nil && g.queue != nil {
			now := j.run.end()
			g.queue.Record(&g.class, now.Sub(j.granted), now)
		}
	}
	j.returned = true
	c.finishDetached(ctx, j.out, j.run.lent)
	if len(j.out) > loadBuffer && c.server.memory.Scarce() {
		c.dropLarge()
	}
	putJob(j)
	return ctx.nextWaiting()
}

// jobPanicked answers a call in which the user's code panicked, like finishJob.
func (c *calleeHalf) jobPanicked(j *job, p any) (next *job) {
	j.run.fault, j.run.lent = c.server.panicError(j.ctx, j.run.phase, p), lentReply{}
	j.out = appendUnfinished(nil, j.ctx, j.run.fault)
	ended := false
	defer func() {
		if !ended {
			c.jobExited(j)
		}
	}()
	next = c.finishJob(j)
	ended = true
	return next
}

// jobExited ends a job whose goroutine ends by runtime.Goexit, in the handler or in the encoder of
// another protocol.
func (c *calleeHalf) jobExited(j *job) {
	ctx := j.ctx
	defer func() {
		if next := ctx.nextWaiting(); next != nil {
			next.start()
		}
	}()
	j.give(ctx)
	j.known(ctx)
	if j.run.measured {
		c.server.measure(ctx, &j.run, j.size, 0)
	}
	if !j.returned {
		c.finishDetached(ctx, appendFault(nil, ctx, errExited), lentReply{})
	}
}

func (c *callContext) expired(now mono.Time) bool { return c.deadline != 0 && now >= c.deadline }

var errExpired = refusal(DeadlineExceeded, "the call's time was over before it could run")

// finishDetached ends a call that did not end on the reader goroutine, and sends its answer. lent
// is as for answer.
func (c *calleeHalf) finishDetached(ctx *callContext, frame []byte, lent lentReply) {
	ctx.finish()
	if k := ctx.protocolCall(); k != nil {
		defer c.release(ctx) // the protocol runs code of the user
		k.end()
		return
	}
	c.answer(ctx, frame, lent)
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
