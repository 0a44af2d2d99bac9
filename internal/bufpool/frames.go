package bufpool

import (
	"math/bits"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysmem"
)

// Buffers of frames have sizes in steps of an eighth of a power of two, from half of Size. Each
// takes one frame, and may be kept as long as its message, so little of it should be unused.
const (
	smallestFrame = Size / 2
	frameSteps    = 8 // sizes between two powers of two
	frameClasses  = frameSteps * 12
	largestFrame  = smallestFrame << (frameClasses / frameSteps) // beyond it buffers are not kept
)

// keptFrames is how many bytes of free buffers are kept while they are in use again and again. A
// sync.Pool loses them within two garbage collections, and with large messages, which are garbage
// themselves, there are tens of those in a second.
const keptFrames = 32 << 20

var frames frameStore

// frameStore holds free buffers by their class: the last one that was given back is the first to be
// taken. What was not needed for a second is dropped after the next garbage collection.
type frameStore struct {
	more [frameClasses + 1]sync.Pool // of *[]byte: what is over keptFrames

	mu        sync.Mutex // guards the fields below
	free      [frameClasses + 1][][]byte
	least     [frameClasses + 1]int // fewest free ones since the last trim
	bytes     int                   // of all free ones
	trimmed   mono.Time
	handed    int       // buffers that were handed out since the last collection; large ones count as several
	collected mono.Time // time of the last collection
	frequent  int       // collections in a row that were frequent
	reserve   []byte    // see reserveBytes
	waiting   bool      // for the next garbage collection
}

// get returns a free buffer of a class, with size bytes, or nil.
func (s *frameStore) get(class, size int) []byte {
	s.mu.Lock()
	s.handed += max(1, size/(512<<10))
	wait := !s.waiting
	s.waiting = true
	var b []byte
	if n := len(s.free[class]) - 1; n >= 0 {
		b = s.free[class][n]
		s.free[class][n] = nil
		s.free[class] = s.free[class][:n]
		s.least[class] = min(s.least[class], n)
		s.bytes -= len(b)
	}
	s.mu.Unlock()
	if wait {
		s.awaitCollection()
	}
	if b != nil {
		return b
	}
	if b, ok := s.more[class].Get().(*[]byte); ok {
		return *b
	}
	return nil
}

// put adds a free buffer.
func (s *frameStore) put(class int, b []byte) {
	s.mu.Lock()
	if s.bytes+len(b) > keptFrames {
		s.mu.Unlock()
		s.putMore(class, b)
		return
	}
	s.free[class] = append(s.free[class], b)
	s.bytes += len(b)
	s.mu.Unlock()
}

// putMore is a function of its own because it allocates, for the pointer to b. put does not.
func (s *frameStore) putMore(class int, b []byte) { s.more[class].Put(&b) }

// awaitCollection makes afterCollection run after the next garbage collection.
func (s *frameStore) awaitCollection() {
	runtime.AddCleanup(new(collected), (*frameStore).afterCollection, s)
}

// collected is unreachable at once. It is larger than the objects that the runtime allocates
// together.
type collected [64]byte

// The garbage collector runs when as much garbage has been made as memory is in use, at least 4
// MiB. The decoded text of 64 messages of 64 KiB is that much: in a process with little memory in
// use, half of the processor time of such calls went into more than a hundred collections a second.
// While large frames come and collections follow each other that fast, the store holds a reserve
// that is never written to. It takes no physical memory, but counts as memory in use. See
// docs/decisions/0075.
const (
	reserveBytes = 32 << 20
	oftenEnough  = 50 * time.Millisecond // between two collections
	fewFrames    = 8                     // in that time
	inARow       = 3                     // such collections, so that a burst takes none
	leastMemory  = 16 * reserveBytes     // a process with a lower limit has no reserve
)

func (s *frameStore) afterCollection() {
	if s.noteCollection(mono.Now()) && min(debug.SetMemoryLimit(-1), sysmem.Limit()) >= leastMemory {
		reserve := unclear(reserveBytes)
		s.mu.Lock()
		s.reserve = reserve
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.waiting = s.bytes > 0 || s.reserve != nil || s.handed > 0
	again := s.waiting
	s.mu.Unlock()
	if again {
		s.awaitCollection()
	}
}

// noteCollection drops the buffers that nothing has needed since the last trim, at most once a
// second, and the reserve when it is not needed. It reports whether the reserve is worth taking.
func (s *frameStore) noteCollection(now mono.Time) (take bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, handed := now.Sub(s.collected), s.handed
	s.collected, s.handed = now, 0
	if since >= time.Second || handed == 0 {
		s.reserve = nil
	}
	if now.Sub(s.trimmed) >= time.Second {
		s.trimmed = now
		for class := range s.free {
			s.trimLocked(class)
		}
	}
	if since < oftenEnough && handed >= fewFrames {
		s.frequent++
	} else {
		s.frequent = 0
	}
	return s.reserve == nil && s.frequent >= inARow
}

func (s *frameStore) trimLocked(class int) {
	for _, b := range s.free[class][:s.least[class]] {
		s.bytes -= len(b)
	}
	s.free[class] = slices.Delete(s.free[class], 0, s.least[class])
	s.least[class] = len(s.free[class])
}

// frameClass returns the smallest class of buffers of at least n bytes, and their size. Buffers
// that are not kept have a class of their own.
func frameClass(n int) (class, size int) {
	if n <= smallestFrame {
		return 0, smallestFrame
	}
	power := bits.Len(uint(n-1)) - 1 // n-1 is at least this power of two
	step := 1 << power / frameSteps
	steps := (n - 1 - 1<<power) / step
	class = (power-bits.Len(uint(smallestFrame))+1)*frameSteps + steps + 1
	if class > frameClasses { // it is not kept
		return frameClasses + 1, n
	}
	return class, 1<<power + (steps+1)*step
}

// FrameSize returns the length of the buffer that GetFrame returns for n bytes.
func FrameSize(n int) int {
	_, size := frameClass(n)
	return size
}

// GetFrame returns a buffer for a frame of n bytes, at most an eighth longer. Its content is
// arbitrary.
func GetFrame(n int) []byte {
	class, size := frameClass(n)
	if class <= frameClasses {
		if b := frames.get(class, size); b != nil {
			return b
		}
	}
	return unclear(size)
}

// unclear returns n bytes, at least one, that need not be zero. strings.Builder is the only
// allocation in the standard library that neither clears nor copies.
func unclear(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// PutFrame gives a buffer of GetFrame back, also one that was cut at its end. Nothing may alias it
// any more. A buffer of another size is left to the garbage collector.
func PutFrame(b []byte) {
	b = b[:cap(b)]
	if len(b) < smallestFrame {
		return
	}
	if class, size := frameClass(len(b)); size == len(b) && class <= frameClasses {
		frames.put(class, b)
	}
}
