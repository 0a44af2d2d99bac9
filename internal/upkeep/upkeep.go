// Package upkeep runs periodic maintenance of many objects, each at the time at which something
// is next due for it. Objects with nothing due cost nothing.
//
// The due time of a task is a lower bound: activity on an object usually postpones what is due,
// and the task finds that out when it runs and returns a later time. So activity need not touch
// the schedule. Linux keeps its keepalive timers in the same way, and nginx its timers. Activity
// that brings something forward calls [Task.Stir], which loads one atomic unless the task rests.
package upkeep

import (
	"container/heap"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

const (
	// Interval is the time between two runs for an object that is active.
	Interval = time.Second
	// Slack is the most by which a run is late on a machine that keeps up. All tasks that come due
	// within it share one timer.
	Slack = 100 * time.Millisecond
	// Never is the due time of a task that rests until it is stirred.
	Never mono.Time = math.MaxInt64
)

// Schedule runs tasks one after the other, on a goroutine that exists only during the runs. The
// zero value is ready for use, and all methods are safe for concurrent use.
type Schedule struct {
	mu      sync.Mutex // guards what follows; held for a few instructions only
	tasks   queue      // those with a due time other than Never, but for the one that runs
	members int
	timer   *time.Timer   // nil without members
	at      mono.Time     // time for which timer is set; Never if it is not
	passing bool          // a goroutine runs tasks
	ended   chan struct{} // closed when that goroutine ends; made by the goroutines that wait for it
	closed  bool
	runs    uint64
}

// Run is what a task does. now is the current time and was the time at which the task was due. It
// returns when it is due next. It must not wait for long, since other tasks wait for it.
type Run func(now, was mono.Time) (due mono.Time)

// Task is an entry of a schedule, part of the object that it maintains. The zero value belongs to
// no schedule, and its methods do nothing.
type Task struct {
	// resting is set while activity must bring the task forward: its due time is more than
	// Interval away. It is also set during a run. A run sets it and then looks at the object;
	// activity changes the object and then loads it. So one of the two sees the other.
	resting atomic.Bool

	schedule *Schedule // set before other goroutines know the task
	run      Run

	// Guarded by schedule.mu.
	due     mono.Time
	place   int  // index in tasks, from 1; 0: not there
	member  bool // added and not removed
	running bool
	forward mono.Time // time to which a run that is under way is brought forward
}

// Add makes t a member that is due at a time, or [Never]. It does nothing after Close. A task that
// was removed may be added again, to the same schedule and with the same run.
func (s *Schedule) Add(t *Task, due mono.Time, run Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if t.schedule == nil {
		t.schedule, t.run = s, run
	}
	s.members++
	t.member = true
	if t.running {
		t.forward = min(t.forward, due)
		return
	}
	t.due = due
	t.resting.Store(due > mono.Now().Add(Interval))
	s.enterLocked(t)
	s.armLocked()
}

// Remove ends the membership of t, if it is a member. A run that is under way goes on.
func (s *Schedule) Remove(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.member {
		return
	}
	t.member = false
	t.resting.Store(false)
	if t.place > 0 {
		heap.Remove(&s.tasks, t.place-1)
	}
	if s.members--; s.members == 0 {
		s.disarmLocked()
	}
}

// Wait waits until a pass over the tasks that is under way has ended. A run must not call it.
func (s *Schedule) Wait() {
	s.mu.Lock()
	if !s.passing {
		s.mu.Unlock()
		return
	}
	if s.ended == nil {
		s.ended = make(chan struct{})
	}
	ended := s.ended
	s.mu.Unlock()
	<-ended
}

// Close ends the schedule for good and waits until no task runs. A run must not call it.
func (s *Schedule) Close() {
	s.mu.Lock()
	s.closed = true
	for _, t := range s.tasks {
		t.place = 0
	}
	s.tasks = nil
	s.disarmLocked()
	s.mu.Unlock()
	s.Wait()
}

// Runs returns how many times tasks have run.
func (s *Schedule) Runs() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

// Stir notes activity on the object of t: a task that rests is due within Interval. It may be
// called with locks held that a run takes. A nil task has no activity.
func (t *Task) Stir() {
	if t != nil && t.resting.Load() {
		t.wake()
	}
}

func (t *Task) wake() {
	if t.resting.CompareAndSwap(true, false) {
		t.By(mono.Now().Add(Interval))
	}
}

// By makes t due at a time unless it is due earlier.
func (t *Task) By(due mono.Time) {
	s := t.schedule
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !t.member || s.closed:
	case t.running:
		t.forward = min(t.forward, due)
	case due < t.due:
		t.due = due
		s.enterLocked(t)
		s.armLocked()
	}
}

// enterLocked puts t at its place in the queue.
func (s *Schedule) enterLocked(t *Task) {
	switch {
	case t.place > 0:
		heap.Fix(&s.tasks, t.place-1)
	case t.due != Never:
		heap.Push(&s.tasks, t)
	}
}

// armLocked sets the timer for the first task, unless it is set for a time that is early enough.
func (s *Schedule) armLocked() {
	if s.passing || len(s.tasks) == 0 {
		return
	}
	at := min(s.tasks[0].due, Never.Add(-Slack)).Add(Slack)
	switch d := mono.Until(at); {
	case s.timer == nil:
		s.timer = time.AfterFunc(d, s.pass)
	case at < s.at:
		s.timer.Reset(d)
	default:
		return
	}
	s.at = at
}

// disarmLocked drops the timer: a later one may belong to another synctest bubble.
func (s *Schedule) disarmLocked() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// pass runs what is due. It is the function of the timer.
func (s *Schedule) pass() {
	s.mu.Lock()
	if s.passing || s.closed { // the timer was set again just after it had fired
		s.mu.Unlock()
		return
	}
	s.passing = true
	for len(s.tasks) > 0 {
		now := mono.Now()
		t := s.tasks[0]
		if t.due > now {
			break
		}
		heap.Pop(&s.tasks)
		s.runLocked(t, now)
	}
	s.passing, s.at = false, Never
	if s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
	s.armLocked()
	s.mu.Unlock()
}

// runLocked runs t and puts it back. The lock is released during the run.
func (s *Schedule) runLocked(t *Task, now mono.Time) {
	s.runs++
	t.running, t.forward = true, Never
	was := t.due
	s.mu.Unlock()
	t.resting.Store(true)
	due := t.run(now, was)
	s.mu.Lock()
	t.running = false
	if !t.member || s.closed {
		t.resting.Store(false)
		return
	}
	if due <= now.Add(Interval) {
		t.resting.Store(false)
	}
	// A task that is due all the time must not keep the processor.
	t.due = max(min(due, t.forward), now.Add(Slack))
	s.enterLocked(t)
}

// queue is a heap of tasks by due time.
type queue []*Task

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

func (q *queue) Push(t any) {
	*q = append(*q, t.(*Task))
	t.(*Task).place = len(*q)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.place = 0
	return t
}
