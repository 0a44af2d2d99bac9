package anser

import "sync/atomic"

// memory bounds the bytes of large requests that a server holds at once: requests that are
// arriving, waiting for their handler, or running. Without it, the bound would be the number of
// calls in flight times the size of a message, which is 40 GiB.
//
// It counts the buffers of connections beyond loadBuffer, the requests of more than smallRequest
// bytes that were handed to a worker, and replies of more than smallRequest bytes until they are
// in the buffer of their connection. It does not count small requests and replies, nor what
// handlers allocate for a request, so the limit should be a small part of the memory of the
// process.
type memory struct {
	limit int64
	held  atomic.Int64
}

// smallRequest is the size up to which requests are not counted.
const smallRequest = 4 << 10

// take reports whether n more bytes may be held, and if so counts them.
func (m *memory) take(n int) bool {
	if m.held.Add(int64(n)) > m.limit {
		m.held.Add(int64(-n))
		return false
	}
	return true
}

// force counts n bytes that are held regardless of the limit.
func (m *memory) force(n int) { m.held.Add(int64(n)) }

// give releases n bytes.
func (m *memory) give(n int) { m.held.Add(int64(-n)) }

// scarce reports whether more than half of the limit is held.
func (m *memory) scarce() bool { return m.held.Load() > m.limit/2 }
