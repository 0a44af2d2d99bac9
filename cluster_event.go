package anser

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// noteLocked queues an event, which is emitted once the lock is released.
func (cl *cluster) noteLocked(e *endpoint, change HealthChange, method, reason string, until time.Duration) {
	ev := HealthEvent{Change: change, Instance: e.Instance().Clone(), Method: method, Reason: reason}
	if until > 0 {
		ev.Until = time.Now().Add(until)
	}
	cl.events = append(cl.events, ev)
	cl.healthCounts[change]++
}

// emit logs an event and calls the observers.
func (cl *cluster) emit(ev HealthEvent) {
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
		if p := recover(); p != nil { // there is no call that could return the error
			cl.log.Error("an observer panicked on a health event", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	for _, o := range cl.client.o.observers.all() {
		if o.Health != nil {
			o.Health(ev)
		}
	}
}

// levelOf returns the log level of a change.
func levelOf(c HealthChange) slog.Level {
	switch c {
	case InstanceEjected, BreakerOpened:
		return slog.LevelWarn
	case BreakerHalfOpen:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
