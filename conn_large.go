package anser

import (
	"io"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

const (
	largeFrame  = 32 << 10 // a frame of this size or more that has not arrived as a whole gets a buffer of its own
	begunFrame  = 64       // bytes of it that have arrived before: turnAway needs the beginning of a request
	firstLarge  = 2 * loadBuffer
	largeGrowth = 17      // a buffer is at most this many times as large as what has arrived
	peekRead    = 4 << 10 // read after a large frame, as the next frame may be large, too
)

// largeBuffer is the buffer of a single frame, which can be passed on with the frame: such a frame
// is not copied after it has been read.
type largeBuffer struct {
	buf      []byte // from bufpool.GetFrame, or nil
	n        int    // bytes that have arrived
	need     int    // bytes of the frame
	held     int    // bytes of buf that the server's memory counts
	parted   bool   // the frame came in PARTs
	returned bool   // next has returned the frame: the buffer is free at the next fill
	passed   bool   // next has returned another frame since
}

// makeLarge makes room for the frame of which the beginning has arrived, or for more of it, and
// reports whether there is memory. By force it takes the memory anyway. The buffer grows with what
// has arrived: a peer that only announces a large frame holds 128 KiB at most. The last buffer but
// one has a seventeenth of the frame, so that less than an eighth of it is copied.
func (rd *reader) makeLarge(force bool) bool {
	l, begun := rd.large, rd.begun()
	if l.buf == nil {
		l.need = rd.need
	}
	if !rd.enlarge(&l, begun, force) {
		return false
	}
	rd.large = l
	rd.r, rd.w, rd.need = 0, 0, 0
	return true
}

// enlarge gives l a larger buffer, which begins with what has arrived of the frame, and reports
// whether there is memory, as for makeLarge.
func (rd *reader) enlarge(l *largeBuffer, begun []byte, force bool) bool {
	size := l.need
	if l.need > largeGrowth*len(begun) {
		size = min(l.need, max(firstLarge, min(largeGrowth*len(begun), l.need/largeGrowth+1)))
	}
	size = bufpool.FrameSize(size)
	if rd.memory != nil && size > loadBuffer {
		more := size - l.held
		if force {
			rd.memory.Force(more)
		} else if !rd.memory.Take(more) {
			return false
		}
		l.held += more
	}
	buf := bufpool.GetFrame(size)
	codec.CopyInPieces(buf, begun)
	bufpool.PutFrame(l.buf)
	l.buf, l.n = buf, len(begun)
	return true
}

// begun returns what has arrived of a frame that is not complete.
func (rd *reader) begun() []byte {
	if rd.large.buf != nil {
		return rd.large.buf[:rd.large.n]
	}
	return rd.buf[rd.r:rd.w]
}

// fillLarge reads once into the buffer of a large frame, and not beyond its end.
func (rd *reader) fillLarge() error {
	l := &rd.large
	rd.arriving(l.n)
	if l.n == len(l.buf) && !rd.makeLarge(false) {
		return errNoMemory
	}
	n, err := rd.readInside(l.buf[l.n:min(l.need, len(l.buf))])
	l.n += n
	return err
}

// readInside reads once, in the middle of a frame. There is an error if nothing was read.
func (rd *reader) readInside(b []byte) (n int, err error) {
	n, err = rd.nc.Read(b)
	if n > 0 {
		rd.quiet = 0
		rd.progress.lastRead.Store(mono.Now())
		rd.progress.received.Add(int64(n))
		rd.progress.upkeep.Stir()
		return n, nil
	}
	switch err {
	case nil:
		err = io.ErrNoProgress
	case io.EOF:
		err = wire.Errorf(wire.BadFrame, "the connection ended inside a frame")
	}
	return 0, err
}

// nextLarge is next for the frame in the buffer of its own.
func (rd *reader) nextLarge() (h wire.Header, body []byte, ok bool, err error) {
	l := &rd.large
	if l.returned || l.n < l.need {
		return h, nil, false, nil
	}
	l.returned = true
	if l.parted { // its PARTs had the checksums
		h, err = wire.ParseHeader(l.buf)
		return h, l.buf[wire.HeaderSize:l.need:l.need], err == nil, err
	}
	if h, err = wire.ParseHeaderWith(l.buf, rd.sealed); err != nil {
		return h, nil, false, err
	}
	body, err = rd.open(&h, l.buf[:l.need:l.need])
	return h, body, err == nil, err
}

// isLarge reports whether the frame that next returned last has a buffer of its own.
func (rd *reader) isLarge() bool { return rd.large.returned && !rd.large.passed }

// takeLarge returns the buffer of the frame for which isLarge was true. The caller owns it from
// here on, and may give it to bufpool.PutFrame.
func (rd *reader) takeLarge() []byte {
	buf := rd.large.buf
	rd.large.buf = nil
	rd.free(&rd.large)
	return buf
}

// dropLarge frees the buffer of a large frame.
func (rd *reader) dropLarge() { rd.free(&rd.large) }

// free gives the buffer back, and the memory that is counted for it.
func (rd *reader) free(l *largeBuffer) {
	bufpool.PutFrame(l.buf)
	if l.held != 0 {
		rd.memory.Give(l.held)
	}
	*l = largeBuffer{}
}
