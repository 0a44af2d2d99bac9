package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
)

const room = "room"

// handlers are the handlers of one server.
type handlers struct {
	tally  *tally
	mail   *mail
	server *anser.Server
}

func (h handlers) register() error {
	return errors.Join(
		echo.Handle(h.server, h.echo),
		echoAgain.Handle(h.server, h.echo, anser.Idempotent()),
		echoRaw.Handle(h.server, h.echoRaw),
		drop.Handle(h.server, h.drop),
		talk.Handle(h.server, h.talk),
		callMe.Handle(h.server, h.callMe, anser.Concurrent()),
		shout.Handle(h.server, h.shout),
	)
}

// echo does what the parcel wishes.
func (h handlers) echo(ctx context.Context, in *Parcel) (*Parcel, error) {
	return in.serve(ctx, h.tally)
}

// serve is the handler of parcels, of servers and of clients.
func (p *Parcel) serve(ctx context.Context, y *tally) (*Parcel, error) {
	if err := p.check(asked); err != nil {
		y.fail("a request", err)
		return nil, anser.Errorf(anser.InvalidArgument, "%v", err)
	}
	if p.Do.Hold > 0 {
		select {
		case <-time.After(p.Do.Hold):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case p.Do.Panic:
		panic("as " + p.ID + " wishes")
	case p.Do.Fail:
		return nil, anser.Errorf(anser.Aborted, "as %s wishes", p.ID)
	}
	return p.reply(), nil
}

func (h handlers) echoRaw(_ context.Context, in *[]byte) (*[]byte, error) {
	id := string((*in)[:min(idSize, len(*in))])
	p := Parcel{ID: id, Data: (*in)[len(id):]}
	if err := p.check(asked); err != nil {
		h.tally.fail("a raw request", err)
		return nil, anser.Errorf(anser.InvalidArgument, "%v", err)
	}
	out := append([]byte(id), fill(id, answered, len(p.Data))...)
	return &out, nil
}

func (h handlers) drop(_ context.Context, in *Parcel) error {
	if err := in.check(asked); err != nil {
		h.tally.fail("a oneway message", err)
		return nil
	}
	h.mail.arrived(in.ID, h.tally)
	return nil
}

// talk answers every message of a stream.
func (h handlers) talk(_ context.Context, st *anser.Stream[Parcel, Parcel]) error {
	n := 0
	for in, err := range st.All() {
		if err != nil {
			return err // the client gave up, or the connection is lost
		}
		if err := in.check(asked); err != nil {
			h.tally.fail("a message of a stream", err)
			return anser.Errorf(anser.InvalidArgument, "%v", err)
		}
		if in.Seq != n {
			h.tally.fail("a message of a stream", anser.Errorf(anser.DataLoss, "number %d of %s came in place of %d", in.Seq, in.ID, n))
		}
		n++
		if in.Do.Fail {
			return anser.Errorf(anser.Aborted, "as %s wishes", in.ID)
		}
		if err := st.Send(in.reply()); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return nil
}

// callMe calls its caller, and passes the answer on only if it is right.
func (h handlers) callMe(ctx context.Context, in *Parcel) (*Parcel, error) {
	sess, ok := anser.SessionFrom(ctx)
	if !ok {
		return nil, anser.Errorf(anser.FailedPrecondition, "there is no session")
	}
	sess.Join(room)
	id := newID()
	back := &Parcel{ID: id, Data: fill(id, asked, len(in.Data)), Do: Wish{Want: in.Do.Want}}
	out, err := clientEcho.Call(ctx, sess.Client(), back)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, anser.Errorf(anser.Aborted, "calling back: %v", err).WithRetryAfter(anser.RetryNever)
	}
	if err := out.answers(back); err != nil {
		h.tally.fail("a call to a client", err)
		return nil, anser.Errorf(anser.Internal, "%v", err)
	}
	return in.serve(ctx, h.tally)
}

func (h handlers) shout(ctx context.Context, in *Parcel) error {
	if err := in.check(asked); err != nil {
		h.tally.fail("a message to be broadcast", err)
		return nil
	}
	h.server.Broadcast(ctx, string(clientHear), in, anser.InGroup(room))
	return nil
}

// serveClient registers what a client serves.
func serveClient(s *anser.Server, y *tally) error {
	return errors.Join(
		clientEcho.Handle(s, func(ctx context.Context, in *Parcel) (*Parcel, error) { return in.serve(ctx, y) }),
		clientHear.Handle(s, func(_ context.Context, in *Parcel) error {
			if err := in.check(asked); err != nil {
				y.fail("a broadcast message", err)
				return nil
			}
			y.done[shouted].Add(1)
			return nil
		}),
	)
}

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

// mail knows the oneway messages that may still arrive: each at most once, and none of which it
// was said that it was not sent. Its methods are safe for concurrent use.
type mail struct {
	mu      sync.Mutex          // guards what follows
	trying  map[string]struct{} // are being sent
	current map[string]struct{} // were sent lately
	before  map[string]struct{} // of the generation before
	turns   int
}

func newMail() *mail {
	return &mail{trying: make(map[string]struct{}), current: make(map[string]struct{})}
}

// sending records a message before it is sent.
func (m *mail) sending(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trying[id] = struct{}{}
}

// sent records that a message has been sent, and counts as lost if it does not arrive soon.
func (m *mail) sent(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.trying[id]; ok {
		delete(m.trying, id)
		m.current[id] = struct{}{}
	}
}

// unsent takes a message back, and reports whether it was still there: else it arrived.
func (m *mail) unsent(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeLocked(id)
}

func (m *mail) takeLocked(id string) bool {
	for _, generation := range []map[string]struct{}{m.trying, m.current, m.before} {
		if _, ok := generation[id]; ok {
			delete(generation, id)
			return true
		}
	}
	return false
}

// arrived counts a message, or a failure if it cannot have arrived.
func (m *mail) arrived(id string, y *tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.takeLocked(id) {
		y.fail("a oneway message", anser.Errorf(anser.AlreadyExists, "%s arrived twice, or after its sender was told that it was not sent", id))
		return
	}
	y.done[oneway].Add(1)
}

// turn is called at each report. It forgets the generation before the current one: what was sent
// and has not arrived by then is lost with its connection.
func (m *mail) turn(y *tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turns++; m.turns%turnsKept != 0 {
		return
	}
	y.lost.Add(int64(len(m.before)))
	m.before, m.current = m.current, make(map[string]struct{})
}

// turnsKept is how many reports a generation of messages lasts.
const turnsKept = 6
