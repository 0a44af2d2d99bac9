// Package tail keeps the end of a process's output, for the error that reports its failure.
package tail

import (
	"strings"
	"sync"
)

// Buffer keeps the last bytes written to it. Its methods are safe for concurrent use.
type Buffer struct {
	most int

	mu   sync.Mutex // guards text
	text []byte
}

// New returns a Buffer that keeps most bytes.
func New(most int) *Buffer { return &Buffer{most: most} }

// Write implements io.Writer. It does not fail.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if over := len(b.text) - b.most; over > 0 {
		b.text = append(b.text[:0], b.text[over:]...)
	}
	return len(p), nil
}

// String returns the kept bytes, without surrounding white space and a partial character at the
// beginning.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(b.text)), "")
}
