// Package follow polls files on disk. Changes are detected by content, not by file system events,
// which miss the swap of a symbolic link.
package follow

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"time"
)

// Digest identifies the contents of files.
type Digest [sha256.Size]byte

// Read returns the contents of the files, in order, and a digest of all of them.
func Read(names []string) (contents [][]byte, sum Digest, err error) {
	h := sha256.New()
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, Digest{}, err
		}
		fmt.Fprintf(h, "%d\n", len(b))
		h.Write(b)
		contents = append(contents, b)
	}
	h.Sum(sum[:0])
	return contents, sum, nil
}

// Poller calls a function at intervals, on a goroutine of its own.
type Poller struct {
	closing sync.Once
	stop    chan struct{}
	done    chan struct{}
}

// Every returns a Poller that calls look at the interval, which must be positive, until it is
// closed. The first call is after one interval.
func Every(interval time.Duration, look func()) *Poller {
	p := &Poller{stop: make(chan struct{}), done: make(chan struct{})}
	go p.run(interval, look)
	return p
}

func (p *Poller) run(interval time.Duration, look func()) {
	defer close(p.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			look()
		case <-p.stop:
			return
		}
	}
}

// Close stops the calls, and waits for the last one. It may be called again.
func (p *Poller) Close() {
	p.closing.Do(func() { close(p.stop) })
	<-p.done
}
