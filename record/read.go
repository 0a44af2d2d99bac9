package record

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/zstd"
)

// Recording is a set of files that are open for reading. It may be read while a recorder writes:
// what it adds later is not seen. It is safe for concurrent use.
type Recording struct {
	files  []*os.File
	blocks []fileBlock // by the time of the first call
	index  Index
	z      compress.Compressor
}

type fileBlock struct {
	*block
	file *os.File
}

// Index is what is known of a recording without reading its calls.
type Index struct {
	// Files and Bytes are the number of files and their size.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Calls are the recorded calls, and Methods the same by method.
	Calls   int            `json:"calls"`
	Methods map[string]int `json:"methods"`
	// First and Last are the times of the first and the last arrival; zero without calls.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Damaged says what of the files cannot be read: the end of a file whose writer was killed, or
	// bytes that have changed. The rest is read.
	Damaged []string `json:"damaged,omitempty"`
}

// Open opens files of a recording, and folders with such files. Close releases them.
func Open(paths ...string) (*Recording, error) {
	r := &Recording{z: zstd.New(), index: Index{Methods: make(map[string]int)}}
	names, err := expand(paths)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := r.open(name); err != nil {
			r.Close()
			return nil, fmt.Errorf("read a recording: %w", err)
		}
	}
	slices.SortStableFunc(r.blocks, func(a, b fileBlock) int { return cmp.Compare(a.head.First, b.head.First) })
	return r, nil
}

// expand returns the names of the files.
func expand(paths []string) (names []string, err error) {
	if len(paths) == 0 {
		return nil, errors.New("name the files of a recording, or their folder")
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read a recording: %w", err)
		}
		if !info.IsDir() {
			names = append(names, path)
			continue
		}
		in, err := filepath.Glob(filepath.Join(escapeGlob(path), filePrefix+"*"+fileSuffix))
		if err != nil {
			return nil, err
		}
		if len(in) == 0 {
			return nil, fmt.Errorf("the folder %s has no files of a recording: their names end with %s", path, fileSuffix)
		}
		names = append(names, in...)
	}
	return names, nil
}

// escapeGlob returns a path as a pattern that matches it alone.
func escapeGlob(path string) string {
	var b bytes.Buffer
	for _, c := range []byte(path) {
		if bytes.IndexByte([]byte(`*?[\`), c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// open reads the index of a file.
func (r *Recording) open(name string) error {
	switch info, err := os.Stat(name); {
	case err != nil:
		return err
	case !info.Mode().IsRegular(): // to open a named pipe can take forever
		return fmt.Errorf("%s is not a regular file: name the files of a recording, or their folder", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	r.files = append(r.files, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r.index.Files++
	r.index.Bytes += info.Size()
	magic := make([]byte, len(fileMagic))
	if n, err := f.ReadAt(magic, 0); err != nil && err != io.EOF {
		return err
	} else if string(magic[:n]) != fileMagic {
		if n < len(fileMagic) && bytes.HasPrefix([]byte(fileMagic), magic[:n]) {
			r.damaged("%s: it ends before its first block", name)
			return nil
		}
		return fmt.Errorf("%s is not a file of a recording, or one of another version", name)
	}
	return r.scan(f, int64(len(fileMagic)), info.Size())
}

func (r *Recording) damaged(format string, args ...any) {
	r.index.Damaged = append(r.index.Damaged, fmt.Sprintf(format, args...))
}

// scan reads the heads of the blocks of a file.
func (r *Recording) scan(f *os.File, at, size int64) error {
	budget := maxLooks*size + maxHead
	for at < size {
		b, err := readHead(f, at, size)
		if errors.Is(err, ErrDamaged) {
			next, err := findBlock(f, at+1, size, &budget)
			if err != nil {
				return err
			}
			if next < 0 {
				r.damaged("%s: the last %d bytes are not a whole block", f.Name(), size-at)
				return nil
			}
			r.damaged("%s: %d bytes at %d are not a block", f.Name(), next-at, at)
			at = next
			continue
		}
		if err != nil {
			return err
		}
		r.add(b, f)
		at = b.next()
	}
	return nil
}

func (r *Recording) add(b *block, f *os.File) {
	r.blocks = append(r.blocks, fileBlock{b, f})
	i := &r.index
	i.Calls += b.head.Calls
	for name, n := range b.head.Methods {
		i.Methods[name] += n
	}
	if first := time.Unix(0, b.head.First).UTC(); i.First.IsZero() || first.Before(i.First) {
		i.First = first
	}
	if last := time.Unix(0, b.head.Last).UTC(); last.After(i.Last) {
		i.Last = last
	}
}

// Close closes the files.
func (r *Recording) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Index returns the index, which is shared and must not be changed.
func (r *Recording) Index() Index { return r.index }

// Filter chooses calls. The zero value chooses all.
type Filter struct {
	// Method chooses by name; nil chooses all.
	Method func(name string) bool
	// From and To are the earliest time of arrival, and the first one that is too late; zero
	// values are no limits.
	From, To time.Time
}

// block reports whether a block may have calls of the filter.
func (f *Filter) block(h *blockHead) bool {
	if !f.From.IsZero() && h.Last < f.From.UnixNano() || !f.To.IsZero() && h.First >= f.To.UnixNano() {
		return false
	}
	if f.Method == nil {
		return true
	}
	for name := range h.Methods {
		if f.Method(name) {
			return true
		}
	}
	return false
}

func (f *Filter) call(c *Call) bool {
	return (f.Method == nil || f.Method(c.Method)) && (f.From.IsZero() || !c.At.Before(f.From)) && (f.To.IsZero() || c.At.Before(f.To))
}

// maxWaiting bounds the calls that wait for earlier ones, in bytes. Blocks that overlap that much
// are the work of many recorders, or not of one.
const maxWaiting = 128 << 20

// Calls returns the calls of all files in the order of their arrival. An error that is yielded
// with a nil call is about a damaged part that is left out, and the loop goes on, if it is
// ErrDamaged; one of reading ends it. Memory is bounded by that of blocks that overlap in time,
// and by about 128 MiB of JSON: if more overlap, some calls come too late.
func (r *Recording) Calls(f Filter) iter.Seq2[*Call, error] {
	return func(yield func(*Call, error) bool) {
		var w waitingCalls
		for _, b := range r.blocks {
			if !f.block(&b.head) {
				continue
			}
			for len(w.calls) > 0 && w.calls[0].At.UnixNano() < b.head.First {
				if !yield(w.next(), nil) {
					return
				}
			}
			lines, err := b.calls(b.file, r.z)
			if err != nil {
				if !yield(nil, fmt.Errorf("%s: %d calls at %d: %w", b.file.Name(), b.head.Calls, b.at, err)) || !errors.Is(err, ErrDamaged) {
					return
				}
				continue
			}
			for line := range bytes.SplitSeq(bytes.TrimSuffix(lines, []byte{'\n'}), []byte{'\n'}) {
				c, err := parseCall(line)
				if err != nil {
					if !yield(nil, fmt.Errorf("%s: a call of the block at %d: %w", b.file.Name(), b.at, err)) {
						return
					}
				} else if f.call(c) {
					w.add(c, len(line))
				}
				for w.bytes > maxWaiting {
					if !yield(w.next(), nil) {
						return
					}
				}
			}
		}
		for len(w.calls) > 0 {
			if !yield(w.next(), nil) {
				return
			}
		}
	}
}

// parseCall reads a line of a block, and checks what programs rely on.
func parseCall(line []byte) (*Call, error) {
	c := new(Call)
	if err := json.Unmarshal(line, c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case c.Method == "":
		return nil, fmt.Errorf("%w: it has no method", ErrDamaged)
	case !c.Stream && c.Request == nil:
		return nil, fmt.Errorf("%w: it has no request", ErrDamaged)
	case c.Took < 0 || c.Timeout < 0:
		return nil, fmt.Errorf("%w: it has a time below 0", ErrDamaged)
	}
	for i, m := range c.Messages {
		if m.JSON == nil || m.After < 0 || i > 0 && m.After < c.Messages[i-1].After {
			return nil, fmt.Errorf("%w: message %d of the stream has no JSON, or comes before the one before it", ErrDamaged, i)
		}
	}
	return c, nil
}

// waitingCalls are calls in the order of their arrival.
type waitingCalls struct {
	calls callHeap
	bytes int // of their lines
}

func (w *waitingCalls) add(c *Call, size int) {
	heap.Push(&w.calls, waitingCall{c, size})
	w.bytes += size
}

func (w *waitingCalls) next() *Call {
	c := heap.Pop(&w.calls).(waitingCall)
	w.bytes -= c.size
	return c.Call
}

type waitingCall struct {
	*Call
	size int
}

// callHeap has the call that arrived first on top.
type callHeap []waitingCall

func (h callHeap) Len() int           { return len(h) }
func (h callHeap) Less(i, j int) bool { return h[i].At.Before(h[j].At) }
func (h callHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *callHeap) Push(x any)        { *h = append(*h, x.(waitingCall)) }
func (h *callHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = waitingCall{}
	*h = (*h)[:last]
	return c
}
