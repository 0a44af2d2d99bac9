package anser

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// HealthChange says what happened to an instance.
type HealthChange uint8

// The changes.
const (
	InstanceEjected  HealthChange = iota // it gets no calls
	InstanceRestored                     // it gets calls again
	BreakerOpened                        // it gets no calls of one method
	BreakerHalfOpen                      // it gets single ones, as probes
	BreakerClosed                        // it gets all again
)

var healthChangeNames = [...]string{"instance ejected", "instance restored", "breaker opened", "breaker half open", "breaker closed"}

// String returns the change in words.
func (h HealthChange) String() string {
	if int(h) < len(healthChangeNames) {
		return healthChangeNames[h]
	}
	return fmt.Sprintf("health change %d", uint8(h))
}

// MarshalText writes the change in words, for JSON and logs.
func (h HealthChange) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// HealthEvent tells an [Observer] what a client makes of an instance.
type HealthEvent struct {
	Change   HealthChange
	Instance registry.Instance
	Method   string    // of a breaker, else empty
	Reason   string    // in words
	Until    time.Time // when the client tries the instance again, if it knows; else zero
}

// noteLocked has an event told once the lock is free.
func (cl *cluster) noteLocked(e *endpoint, change HealthChange, method, reason string, until time.Duration) {
	ev := HealthEvent{Change: change, Instance: e.Instance().Clone(), Method: method, Reason: reason}
	if until > 0 {
		ev.Until = time.Now().Add(until)
	}
	cl.events = append(cl.events, ev)
	cl.healthCounts[change]++
}

// tell logs an event and tells the observers.
func (cl *cluster) tell(ev HealthEvent) {
	level := levelOf(ev.Change)
	args := []any{"service", cl.client.serviceName(), "address", ev.Instance.Address, "reason", ev.Reason}
	if ev.Method != "" {
		args = append(args, "method", ev.Method)
	}
	if !ev.Until.IsZero() {
		args = append(args, "until", ev.Until)
	}
	cl.log.Log(context.Background(), level, ev.Change.String(), args...)
	defer func() {
		if p := recover(); p != nil { // there is no call that could fail with it
			cl.log.Error("an observer panicked on a health event", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	for _, o := range cl.client.o.observers.all() {
		if o.Health != nil {
			o.Health(ev)
		}
	}
}

// levelOf says how loud the log is about a change.
func levelOf(c HealthChange) slog.Level {
	switch c {
	case InstanceEjected, BreakerOpened:
		return slog.LevelWarn
	case BreakerHalfOpen:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
