package anser

import (
	"context"
	"testing"
)

// A stream that was cancelled before a worker has it does not run its handler: a client that opens
// and cancels streams as fast as it can makes the server run fewer than it opens.
func TestCancelledStreamDoesNotRun(t *testing.T) {
	s := NewServer()
	c := newServerConn(s)
	m := &method{name: "Chat.Talk"}
	ran := func(end bool, extras *callExtras) *Error {
		ctx := &callContext{conn: &c.calleeHalf, method: m, id: 1, extras: extras}
		if end {
			ctx.end(context.Canceled)
		}
		return (&job{ctx: ctx}).late(1)
	}
	st := &callExtras{stream: new(stream)}
	if refused := ran(true, st); refused != errGone {
		t.Errorf("the handler of a cancelled stream runs: %v", refused)
	}
	if refused := ran(false, st); refused != nil {
		t.Errorf("the handler of an open stream does not run: %v", refused)
	}
	if refused := ran(true, nil); refused != nil { // a oneway message runs, although its connection is lost
		t.Errorf("the handler of a call does not run: %v", refused)
	}
}
