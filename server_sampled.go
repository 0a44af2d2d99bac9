package anser

import "context"

// maxSamplers is the number of bits of [Invocation.sampled].
const maxSamplers = 8

// sampler is an interceptor for a part of the calls.
type sampler struct {
	choose func(method string) bool
	in     Interceptor
}

// samplers are those of a server; at most maxSamplers.
type samplers []sampler

// chosen returns a bit for each sampler that wants a call of the method.
func (s samplers) chosen(method string) (bits uint8) {
	for i := range s {
		if s[i].choose(method) {
			bits |= 1 << i
		}
	}
	return bits
}

// around wraps last in the interceptors, each of which runs for the calls with its bit.
func (s samplers) around(last Func) Func {
	for i := len(s) - 1; i >= 0; i-- {
		next := last
		in := s[i].in(next)
		last = func(ctx context.Context, inv *Invocation) error {
			if inv.sampled&(1<<i) != 0 {
				return in(ctx, inv)
			}
			return next(ctx, inv)
		}
	}
	return last
}

// watchedStream is a stream whose messages an interceptor sees; see [Invocation.OnMessage].
type watchedStream struct {
	anyStream
	seen func(message any, sent bool)
}

func (w *watchedStream) send(msg any) error {
	w.seen(msg, true)
	return w.anyStream.send(msg)
}

func (w *watchedStream) recv(msg any, fresh bool) error {
	err := w.anyStream.recv(msg, fresh)
	if err == nil {
		w.seen(msg, false)
	}
	return err
}

// unwatched returns the stream itself.
func unwatched(st anyStream) anyStream {
	if w, ok := st.(*watchedStream); ok {
		return w.anyStream
	}
	return st
}
