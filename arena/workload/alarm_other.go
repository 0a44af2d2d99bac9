//go:build !linux

package workload

import (
	"os"
	"sync"
	"time"
)

// sleeper is an alarm of the runtime's own timers.
type sleeper struct {
	once   sync.Once
	closed chan struct{}
}

func newAlarm() (alarm, error) { return &sleeper{closed: make(chan struct{})}, nil }

func (s *sleeper) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.closed:
		return os.ErrClosed
	}
}

func (s *sleeper) close() { s.once.Do(func() { close(s.closed) }) }
