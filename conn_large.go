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
	returned bool   // next has returned the frame: the buffer is free at the next fill
}

// makeLarge makes room for the frame of which the beginning has arrived, or for more of it, and
// reports whether there is memory. By force it takes the memory anyway. The buffer grows with what
// has arrived: a peer that only announces a large frame holds 128 KiB at most. The last buffer but
// one has a seventeenth of the frame, so that less than an eighth of it is copied.
func (rd *reader) makeLarge(force bool) bool {
	begun, need := rd.begun(), rd.need
	if rd.large.buf != nil {
		need = rd.large.need
	}
	size := need
	if need > largeGrowth*len(begun) {
		size = min(need, max(firstLarge, min(largeGrowth*len(begun), need/largeGrowth+1)))
	}
	size = bufpool.FrameSize(size)
	if rd.memory != nil && size > loadBuffer {
		more := size - rd.held
		if force {
			rd.memory.Force(more)
		} else if !rd.memory.Take(more) {
			return false
		}
		rd.held += more
	}
	l := largeBuffer{buf: bufpool.GetFrame(size), n: len(begun), need: need}
	codec.CopyInPieces(l.buf, begun)
	bufpool.PutFrame(rd.large.buf)
	rd.large = l
	rd.r, rd.w, rd.need = 0, 0, 0
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
	rd.progress.partBytes.Store(int64(l.n))
	if l.n == len(l.buf) && !rd.makeLarge(false) {
		return errNoMemory
	}
	n, err := rd.nc.Read(l.buf[l.n:min(l.need, len(l.buf))])
	if n > 0 {
		l.n += n
		rd.quiet = 0
		rd.progress.lastRead.Store(mono.Now())
		rd.progress.received.Add(int64(n))
		rd.progress.upkeep.Stir()
		return nil
	}
	switch err {
	case nil:
		return io.ErrNoProgress
	case io.EOF:
		return wire.Errorf(wire.BadFrame, "the connection ended inside a frame")
	}
	return err
}

// nextLarge is next for the frame in the buffer of its own.
func (rd *reader) nextLarge() (h wire.Header, body []byte, ok bool, err error) {
	l := &rd.large
	if l.returned || l.n < l.need {
		return h, nil, false, nil
	}
	l.returned = true
	if h, err = wire.ParseHeaderWith(l.buf, rd.sealed); err != nil {
		return h, nil, false, err
	}
	body, err = rd.open(&h, l.buf[:l.need:l.need])
	return h, body, err == nil, err
}

// takeLarge returns the buffer of the frame that next returned last, if it has one of its own. The
// caller owns it from here on, and may give it to bufpool.PutFrame.
func (rd *reader) takeLarge() []byte {
	if !rd.large.returned {
		return nil
	}
	buf := rd.large.buf
	rd.large = largeBuffer{}
	rd.give()
	return buf
}

// dropLarge frees the buffer of a large frame.
func (rd *reader) dropLarge() {
	bufpool.PutFrame(rd.large.buf)
	rd.large = largeBuffer{}
	rd.give()
}
