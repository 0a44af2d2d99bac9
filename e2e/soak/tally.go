package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser"
)

// The kinds of calls.
type kind int

const (
	unary kind = iota
	future
	oneway
	stream
	fanned  // to all instances
	push    // calls of a server to its clients
	shouted // messages of a server to its clients
	files
	kinds // how many there are
)

var kindNames = [kinds]string{"unary", "future", "oneway", "stream", "fanout", "push", "broadcast", "file"}

// tally counts the results of calls. Its methods are safe for concurrent use.
type tally struct {
	done      [kinds]atomic.Int64 // ended as expected, possibly with a requested error
	cancelled atomic.Int64        // by their caller, or at a deadline that was set to pass
	lost      atomic.Int64        // with an unknown outcome, since a connection was cut or a server closed
	cuts      atomic.Int64        // connections
	replaced  atomic.Int64        // servers
	clients   atomic.Int64        // that were closed
	failures  atomic.Int64

	mu    sync.Mutex // guards what follows
	first []string   // of the failures
	told  int        // number returned by news
}

// shownFailures is the number of failures that are printed individually.
const shownFailures = 20

func (y *tally) fail(what string, err error) {
	y.failures.Add(1)
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.first) < shownFailures {
		y.first = append(y.first, fmt.Sprintf("%s: %v", what, err))
	}
}

// news returns the first failures that it has not returned yet.
func (y *tally) news() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	fresh := y.first[y.told:]
	y.told = len(y.first)
	return fresh
}

func (y *tally) calls() (n int64) {
	for k := range y.done {
		n += y.done[k].Load()
	}
	return n + y.cancelled.Load() + y.lost.Load()
}

// expected lists the acceptable results of a call other than success.
type expected struct {
	gaveUp bool   // its caller cancelled it or set a short deadline
	refuse string // it may be answered by an error with this text
	panics bool   // its handler panics
	once   bool   // there is one instance only, which may go away
}

// judge counts an error of a call that did not answer, or a failure if the call may not end like
// that.
func (y *tally) judge(k kind, err error, may expected) {
	code, outcome := anser.CodeOf(err), anser.OutcomeOf(err)
	switch {
	case may.gaveUp && (code == anser.Canceled || code == anser.DeadlineExceeded):
		y.cancelled.Add(1)
	case may.gaveUp && code == anser.Unavailable && outcome == anser.NotSent:
		y.cancelled.Add(1) // the connection was lost first, and then the call was cancelled before a retry
	case may.refuse != "" && code == anser.Aborted && contains(err, may.refuse):
		y.done[k].Add(1)
	case may.panics && code == anser.Internal && outcome == anser.Executed:
		y.done[k].Add(1)
	case code == anser.Unavailable && outcome == anser.OutcomeUnknown:
		y.lost.Add(1)
	case may.once && (code == anser.Unavailable || outcome == anser.NotSent):
		y.lost.Add(1)
	default:
		y.fail(kindNames[k], fmt.Errorf("%w (code %v, outcome %v, expected %+v)", err, code, outcome, may))
	}
}
