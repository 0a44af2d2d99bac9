package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/fanout"
)

// unary makes a call and waits for its reply.
func (k *caller) unary() {
	w, may := k.wish()
	in := request(k.r, w)
	may.refuse = in.refusal()
	m, again := echo, k.r.IntN(2) == 0
	if again {
		m = echoAgain
	}
	opts := k.options(&may, again)
	ctx, cancel := k.patience(&may)
	defer cancel()
	out, err := m.Call(ctx, k.client, in, opts...)
	k.compare(unary, in, out, err, may)
}

// refusal is the text of an error that the request asks for, or "" if it asks for none.
func (p *Parcel) refusal() string {
	if !p.Do.Fail {
		return ""
	}
	return "as " + p.ID + " wishes"
}

// compare judges the end of a call.
func (k *caller) compare(what kind, in, out *Parcel, err error, may expected) {
	if err != nil {
		k.tally.judge(what, err, may)
		return
	}
	if in.Do.Fail || in.Do.Panic {
		k.tally.fail(kindNames[what], fmt.Errorf("%s got a reply to a request that wished for none", in.ID))
		return
	}
	if err := out.answers(in); err != nil {
		k.tally.fail(kindNames[what], err)
		return
	}
	k.tally.done[what].Add(1)
}

// raw makes a call whose messages are bytes and nothing else.
func (k *caller) raw() {
	id, n := newID(), size(k.r)
	in := append([]byte(id), fill(id, asked, n)...)
	may := expected{once: k.once}
	ctx, cancel := k.patience(&may)
	defer cancel()
	out, err := echoRaw.Call(ctx, k.client, &in)
	if err != nil {
		k.tally.judge(unary, err, may)
		return
	}
	if err := compare(*out, append([]byte(id), fill(id, answered, n)...)); err != nil {
		k.tally.fail("raw", err)
		return
	}
	k.tally.done[unary].Add(1)
}

// futures starts several calls, and cancels some of them.
func (k *caller) futures() {
	type started struct {
		in  *Parcel
		f   *anser.Future[Parcel]
		may expected
	}
	var all []started
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 1 + k.r.IntN(24) {
		w, may := k.wish()
		in := request(k.r, w)
		may.refuse = in.refusal()
		opts := k.options(&may, false)
		if k.r.IntN(10) == 0 {
			may.gaveUp = true
			soon, stop := context.WithTimeout(ctx, time.Duration(k.r.IntN(3000))*time.Microsecond)
			defer stop()
			all = append(all, started{in, echo.Go(soon, k.client, in, opts...), may})
			continue
		}
		all = append(all, started{in, echo.Go(ctx, k.client, in, opts...), may})
	}
	everything := k.r.IntN(10) == 0
	for i := range all {
		if everything || k.r.IntN(8) == 0 {
			all[i].may.gaveUp = true
			if !everything {
				all[i].f.Cancel()
			}
		}
	}
	if everything {
		cancel()
	}
	for _, s := range all {
		out, err := s.f.Wait()
		k.compare(future, s.in, out, err, s.may)
	}
}

// oneway sends a message without a reply.
func (k *caller) oneway() {
	var may expected
	in := request(k.r, Wish{})
	opts := k.options(&may, false)
	ctx, cancel := k.patience(&may)
	defer cancel()
	k.mail.sending(in.ID)
	err := drop.Send(ctx, k.client, in, opts...)
	if err == nil {
		k.mail.sent(in.ID)
		return // it is counted when it arrives
	}
	if o := anser.OutcomeOf(err); o != anser.NotSent {
		k.tally.fail("oneway", fmt.Errorf("the outcome is %v: want not sent: %w", o, err))
	}
	if !k.mail.unsent(in.ID) {
		k.tally.fail("oneway", fmt.Errorf("%s arrived, and its sender was told that it was not sent: %w", in.ID, err))
	}
	may.once = true // it was not sent, which is well whatever the reason is
	k.tally.judge(oneway, err, may)
}

// fanout calls all instances.
func (k *caller) fanout() {
	in := request(k.r, Wish{Want: size(k.r)})
	may := expected{once: true}
	ctx, cancel := k.patience(&may)
	defer cancel()
	results, err := fanout.Inform[Parcel](ctx, k.client, string(echoAgain), in)
	if err != nil {
		k.tally.judge(fanned, err, may)
		return
	}
	for _, r := range results {
		k.compare(fanned, in, r.Reply, r.Err, may)
	}
}

// push makes the server call this client, or all clients in its room.
func (k *caller) push() {
	may := expected{once: k.once}
	if k.serves == nil || k.r.IntN(3) == 0 {
		in := request(k.r, Wish{})
		if err := shout.Send(context.Background(), k.client, in); err != nil {
			may.once = true
			k.tally.judge(shouted, err, may)
		}
		return
	}
	in := request(k.r, Wish{Want: size(k.r)})
	ctx, cancel := k.patience(&may)
	defer cancel()
	out, err := callMe.Call(ctx, k.client, in)
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Code == anser.Aborted && contains(err, "calling back") {
		k.tally.lost.Add(1) // the connection between the two was cut in the meantime
		return
	}
	k.compare(push, in, out, err, may)
}
