package proc

import (
	"sync"
	"syscall"
	"time"
)

// The pace of a Sampler. A sample costs about 50 µs a process, and looking for new processes a
// millisecond or two.
const (
	every     = 50 * time.Millisecond
	everyTree = 500 * time.Millisecond
)

// Record is what a Sampler has seen.
type Record struct {
	Trees []*Tree
	Self  Series // CPU time of this process, nanoseconds
	Busy  Series // CPU time of the machine's processes, nanoseconds
	Wire  Series // bytes that passed the interface
}

// Sampler samples until it is stopped. Its methods are safe for concurrent use.
type Sampler struct {
	wirePID int
	iface   string
	stop    chan struct{}
	done    chan struct{}

	mu     sync.Mutex // guards record and grown
	record Record
	grown  time.Time
}

// Start samples trees of processes, and an interface in the network namespace of a process.
func Start(roots []int, wirePID int, iface string) *Sampler {
	s := &Sampler{wirePID: wirePID, iface: iface, stop: make(chan struct{}), done: make(chan struct{})}
	s.Add(roots...)
	go s.run()
	return s
}

// Add begins with further trees. Their samples begin now.
func (s *Sampler) Add(roots ...int) {
	for _, root := range roots {
		s.add(&Tree{root: root, members: []int{root}})
	}
	s.Now()
}

// AddStarted is Add for a process that was started after a moment, at which it had used nothing.
// On a busy machine it may be well at work before the first sample of it.
func (s *Sampler) AddStarted(after time.Time, root int) {
	t := &Tree{root: root, members: []int{root}}
	t.note(after.UnixNano(), usage{})
	s.add(t)
	s.Now()
}

func (s *Sampler) add(t *Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Trees = append(s.record.Trees, t)
}

func (s *Sampler) run() {
	defer close(s.done)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.Now()
		}
	}
}

// Now takes a sample more. A process that is about to end is read for the last time with it.
func (s *Sampler) Now() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.grown) >= everyTree {
		s.grown = now
		parents := parentsOfAll()
		for _, tree := range s.record.Trees {
			tree.grow(parents)
		}
	}
	// Each figure has the time at which it was read: on a busy machine the readings of one sample
	// can be milliseconds apart.
	for _, tree := range s.record.Trees {
		tree.sample(time.Now().UnixNano())
	}
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		s.record.Self.Add(time.Now().UnixNano(), float64(used.Utime.Nano()+used.Stime.Nano()))
	}
	if t, err := busy(); err == nil {
		s.record.Busy.Add(time.Now().UnixNano(), float64(t))
	}
	if n, err := wire(s.wirePID, s.iface); err == nil {
		s.record.Wire.Add(time.Now().UnixNano(), float64(n))
	}
}

// Stop ends the sampling and returns what was seen.
func (s *Sampler) Stop() *Record {
	close(s.stop)
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.record
}
