package anser

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/membudget"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/stranger"
	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

const (
	idleBuffer  = 2 << 10      // for a frame that has begun, and while little arrives on what is no socket
	loadBuffer  = bufpool.Size // under load
	quietReads  = 64           // this many small reads in a row make a reader idle again
	smallRead   = idleBuffer / 2
	minProgress = 4 << 10 // the minimum speed of a frame in bytes per second
)

// reader splits the bytes of a connection into frames. The bodies it returns alias its buffer and
// are valid until the next call of fill. It is owned by one goroutine. It waits for a socket
// without a buffer, so that a connection on which nothing arrives has none.
type reader struct {
	nc       net.Conn
	socket   *sysconn.Reader // reads nc; nil: nc is no socket
	buf      []byte          // nil: nothing is unread, and socket waits
	r, w     int             // buf[r:w] is unread
	need     int             // bytes of the frame at buf[r:] if it is not complete, else 0
	since    mono.Time       // time at which the first byte of an unfinished frame had arrived, or 0
	large    largeBuffer
	parts    *parts // a frame that arrives in PARTs, or nil
	peek     bool   // the last frame was large
	last     int    // bytes of the last read
	quiet    int    // small reads in a row
	maxFrame uint64
	sealed   wire.Flags // wire.FlagCRC if frames have checksums, else 0
	progress *progress
	memory   *membudget.Budget // of a server, or nil
}

// progress is the state that the reader shares with the maintenance of its connection. While the
// reader does not read, perhaps because the peer does not read either, no frame is late: partial
// and parted are 0 then.
type progress struct {
	lastRead    mono.Atomic  // time of the last read that returned bytes
	partial     mono.Atomic  // time at which the first byte of an unfinished frame had arrived, or 0
	partBytes   atomic.Int64 // bytes of it that have arrived
	parted      mono.Atomic  // time at which a frame in PARTs began, later by what was not spent reading, or 0
	partedBytes atomic.Int64 // bytes of it that have arrived
	received    atomic.Int64 // bytes of the connection so far; written by the reader goroutine
	upkeep      *upkeep.Task // of the connection; nil before it is maintained
}

// init makes the reader read nc from here on. room is the reader itself, or what it is a part of.
func (rd *reader) init(nc net.Conn, room sysconn.Room) {
	rd.nc, rd.socket = nc, sysconn.NewReader(nc, room)
	if rd.socket == nil && rd.buf == nil {
		rd.buf = make([]byte, idleBuffer)
	}
}

// next returns the next whole frame of the bytes read. ok is false when more bytes must be read.
func (rd *reader) next() (h wire.Header, body []byte, ok bool, err error) {
	if rd.large.buf != nil {
		if !rd.large.returned || rd.r == rd.w {
			return rd.nextLarge()
		}
		rd.large.passed = true // other frames came with its last PART
	}
	have := rd.w - rd.r
	if have < wire.HeaderSize {
		return h, nil, false, nil
	}
	if rd.sealed == 0 {
		h, err = wire.ParseHeader(rd.buf[rd.r:rd.w])
	} else {
		h, err = wire.ParseHeaderWith(rd.buf[rd.r:rd.w], rd.sealed)
	}
	if err != nil {
		return h, nil, false, err
	}
	if uint64(h.Length) > rd.maxFrame {
		return h, nil, false, rd.tooLarge(h)
	}
	end := wire.HeaderSize + int(h.Length)
	if have < end {
		rd.need = end
		return h, nil, false, nil
	}
	frame := rd.buf[rd.r : rd.r+end : rd.r+end]
	if body, err = rd.open(&h, frame); err != nil {
		return h, nil, false, err
	}
	rd.r += end
	rd.need = 0
	return h, body, true, nil
}

// open returns the body of a frame, after checking its checksum if it has one.
func (rd *reader) open(h *wire.Header, frame []byte) (body []byte, err error) {
	body = frame[wire.HeaderSize:]
	if rd.sealed != 0 {
		if body, err = wire.CheckChecksum(frame, body); err != nil {
			return nil, err
		}
		h.Flags &^= wire.FlagCRC
	}
	return body, nil
}

// tooLarge is the error of a frame that is over the limit.
func (rd *reader) tooLarge(h wire.Header) error {
	if rd.maxFrame <= maxHello {
		return wire.Errorf(wire.FrameTooLarge, "%s frame of %d bytes is over the limit of %d before the handshake is over",
			h.Type, h.Length, rd.maxFrame)
	}
	most := rd.maxFrame
	if rd.sealed != 0 {
		most -= wire.ChecksumSize
	}
	return wire.Errorf(wire.FrameTooLarge, "%s frame of %d bytes is over the limit of %s: raise it with anser.MaxMessage, or send less",
		h.Type, h.Length, frameLimit(most))
}

// expectChecksums makes the reader expect a checksum in every frame from here on. The checksum
// does not count as part of the frame.
func (rd *reader) expectChecksums() {
	rd.sealed = wire.FlagCRC
	rd.maxFrame += wire.ChecksumSize
}

// nextData is next for a whole DATA frame of the stream id. It leaves any other frame to next.
func (rd *reader) nextData(id uint64) (h wire.Header, body []byte, ok bool) {
	if rd.w-rd.r < wire.HeaderSize || wire.Type(rd.buf[rd.r+4]) != wire.TypeData {
		return h, nil, false
	}
	if binary.LittleEndian.Uint64(rd.buf[rd.r+8:]) != id {
		return h, nil, false
	}
	h, body, ok, err := rd.next()
	return h, body, ok && err == nil
}

// fill reads once. A frame that does not fit the buffer, or fills much of it, gets a buffer of its
// own, if the memory limit allows it: otherwise fill returns errNoMemory without reading.
func (rd *reader) fill() error {
	p := rd.parts
	if p != nil {
		p.resumeClock(rd.progress)
	}
	err := rd.fillOnce()
	if p != nil {
		p.stopClock(rd.progress)
	}
	if rd.since != 0 {
		rd.progress.partial.Store(0)
	}
	return err
}

// fillOnce is fill without the clock of the frames that have begun.
func (rd *reader) fillOnce() error {
	if rd.large.buf != nil {
		if !rd.large.returned {
			return rd.fillLarge()
		}
		rd.dropLarge() // the next frame may come much later
		rd.peek = true
	}
	if rd.parts != nil && rd.parts.left > 0 {
		return rd.fillPart()
	}
	if rd.r == rd.w {
		rd.rewind()
	} else if large, err := rd.keepUnfinished(); err != nil {
		return err
	} else if large {
		return rd.fillOnce()
	}
	n, err := rd.read()
	if n > 0 {
		rd.w += n
		rd.last = n
		if rd.w == len(rd.buf) && len(rd.buf) < loadBuffer && !rd.peek {
			rd.grow() // what filled the buffer is the beginning of more
		}
		rd.peek = false
		if n < smallRead {
			rd.quiet++
		} else {
			rd.quiet = 0
		}
		rd.progress.lastRead.Store(mono.Now())
		rd.progress.received.Add(int64(n))
		rd.progress.upkeep.Stir()
		return nil
	}
	switch {
	case err == nil:
		err = io.ErrNoProgress
	case err == io.EOF && (rd.w > rd.r || rd.parts != nil):
		err = wire.Errorf(wire.BadFrame, "the connection ended inside a frame")
	}
	return err
}

func (rd *reader) read() (int, error) {
	if rd.socket != nil {
		return rd.socket.Read()
	}
	return rd.nc.Read(rd.Free())
}

// Free returns the place for the bytes that are read next. It belongs to [sysconn.Room], as Waits.
func (rd *reader) Free() []byte {
	if rd.buf == nil {
		rd.buf = bufpool.Get(loadBuffer)
	}
	limit := len(rd.buf)
	if rd.peek {
		limit = min(limit, rd.w+peekRead)
	}
	return rd.buf[rd.w:limit]
}

// Waits gives the buffer back in which nothing is unread. The beginning of a frame after which
// nothing comes gets a small buffer, or else each connection of a client that never ends its
// frames would keep a large one. After a large read, the rest most likely comes at once.
func (rd *reader) Waits() {
	switch {
	case rd.w == 0:
		bufpool.Put(rd.buf)
		rd.buf = nil
	case max(rd.last, rd.w) < idleBuffer && len(rd.buf) == loadBuffer:
		rest := make([]byte, idleBuffer)
		copy(rest, rd.buf[:rd.w])
		bufpool.Put(rd.buf)
		rd.buf = rest
	}
}

// rewind prepares the empty buffer for the next frames.
func (rd *reader) rewind() {
	rd.r, rd.w, rd.since = 0, 0, 0
	if rd.socket == nil && rd.quiet >= quietReads && len(rd.buf) > idleBuffer {
		bufpool.Put(rd.buf)
		rd.buf, rd.quiet = make([]byte, idleBuffer), 0
	}
}

// keepUnfinished makes room for more of a frame that has not arrived as a whole. large reports that
// it has a buffer of its own now.
func (rd *reader) keepUnfinished() (large bool, err error) {
	if rd.r > 0 || rd.since == 0 {
		rd.since = mono.Now()
	}
	have := rd.w - rd.r
	rd.arriving(have)
	if rd.need >= largeFrame && have < rd.need {
		if wire.Type(rd.buf[rd.r+typeOffset]) == wire.TypePart {
			if large, err = rd.enterPart(); large || err != nil {
				return large, err
			}
		}
		if have >= begunFrame {
			if !rd.makeLarge(false) {
				return false, errNoMemory
			}
			return true, nil
		}
	}
	if rd.r > 0 {
		rd.w = copy(rd.buf, rd.buf[rd.r:rd.w])
		rd.r = 0
	}
	if rd.w == len(rd.buf) {
		rd.grow()
	}
	return false, nil
}

// arriving starts the clock of the unfinished frame, of which n bytes have arrived.
func (rd *reader) arriving(n int) {
	rd.progress.partBytes.Store(int64(n))
	rd.progress.partial.Store(rd.since)
	rd.progress.upkeep.Stir()
}

// continueFrom makes rd continue with a copy of the bytes that before has not returned yet, and
// with the frame that arrives in PARTs. A frame that has a buffer of its own remains with before,
// which has returned it. room is as for init.
func (rd *reader) continueFrom(before *reader, room sysconn.Room) {
	*rd = reader{maxFrame: before.maxFrame, sealed: before.sealed, progress: before.progress, memory: before.memory, parts: before.parts}
	before.parts = nil
	switch unread := before.buf[before.r:before.w]; {
	case len(unread) >= idleBuffer:
		rd.buf = bufpool.Get(loadBuffer)
		rd.w = copy(rd.buf, unread)
	case len(unread) > 0:
		rd.buf = make([]byte, idleBuffer)
		rd.w = copy(rd.buf, unread)
	}
	rd.init(before.nc, room)
	if rd.socket != nil {
		rd.socket.Follow(before.socket)
	}
}

// grow replaces the buffer of an idle connection by one for a load.
func (rd *reader) grow() {
	bigger := bufpool.Get(loadBuffer)
	copy(bigger, rd.buf[:rd.w])
	bufpool.Put(rd.buf)
	rd.buf = bigger
}

// discard reads and drops n bytes, the rest of a frame whose beginning is all that is unread. If
// the frame has a checksum, discard checks it.
func (rd *reader) discard(n int) error {
	sum := uint32(0)
	begun := rd.begun()
	arrived := len(begun)
	rd.arriving(arrived)
	defer rd.progress.partial.Store(0)
	if p := rd.parts; p != nil {
		p.resumeClock(rd.progress)
		defer p.stopClock(rd.progress)
	}
	if rd.sealed != 0 {
		sum = wire.UpdateChecksum(0, begun)
	}
	rd.dropLarge()
	rd.r, rd.w, rd.need = 0, 0, 0
	rd.grow()
	for n > 0 {
		m, err := rd.nc.Read(rd.buf[:min(n, len(rd.buf))])
		if m == 0 && err == nil {
			err = io.ErrNoProgress
		}
		if err == io.EOF {
			err = wire.Errorf(wire.BadFrame, "the connection ended inside a frame")
		}
		if err != nil && m == 0 {
			return err
		}
		if rd.sealed != 0 {
			sum = wire.UpdateChecksum(sum, rd.buf[:m])
		}
		n -= m
		arrived += m
		rd.progress.partBytes.Store(int64(arrived))
		rd.progress.received.Add(int64(m))
		rd.progress.lastRead.Store(mono.Now())
	}
	if rd.sealed != 0 && sum != wire.ChecksumResidue {
		return wire.Errorf(wire.BadChecksum, "a frame that was thrown away does not have the checksum of its bytes")
	}
	return nil
}

// release returns the buffer to its pool. It must not be aliased any more.
func (rd *reader) release() {
	bufpool.Put(rd.buf)
	rd.buf, rd.r, rd.w = nil, 0, 0
	rd.dropLarge()
	if rd.parts != nil {
		rd.dropParts()
		rd.parts = nil
	}
}

// tooSlow reports whether an unfinished frame has been arriving for longer than stall,
// at less than minProgress bytes per second.
func (p *progress) tooSlow(now mono.Time, stall time.Duration) bool {
	slow := func(since mono.Time, bytes int64) bool {
		return since != 0 && now.Sub(since) >= stall && float64(bytes) < minProgress*now.Sub(since).Seconds()
	}
	return slow(p.partial.Load(), p.partBytes.Load()) || slow(p.parted.Load(), p.partedBytes.Load())
}

// late reports whether an unfinished frame has been arriving for longer than limit; with
// 0 none is.
func (p *progress) late(now mono.Time, limit time.Duration) bool {
	since := p.since()
	return limit != 0 && since != 0 && now.Sub(since) > limit
}

// since returns the time at which the oldest frame began that has not arrived as a whole, or 0.
func (p *progress) since() mono.Time {
	if since := p.parted.Load(); since != 0 { // what comes between its PARTs is younger
		return since
	}
	return p.partial.Load()
}

func lateFrame(limit time.Duration) *wire.Error {
	return wire.Errorf(wire.Timeout, "a frame did not arrive within %v: send smaller messages, or raise anser.ReadTimeout", limit)
}

func notAnser(begin []byte) error {
	if begin[0] == tlsHandshake {
		return wire.Errorf(wire.BadFrame, "the client speaks TLS, but the server was not given anser.TLS")
	}
	return wire.Errorf(wire.BadFrame, "not the Anser protocol: it begins with % X", begin)
}

// tlsHandshake is the first byte that a TLS client sends.
const tlsHandshake = 0x16

// foreign is the error of a peer that speaks another protocol, or another version.
type foreign struct{ error }

func (f *foreign) Unwrap() error { return f.error }

// readPreface reads the preface and settings of the peer.
func (rd *reader) readPreface() (wire.Settings, error) {
	for rd.w-rd.r < wire.PrefaceSize {
		// Bytes that cannot become a preface are refused at the first one, or as soon as they are
		// an HTTP request.
		if n := min(rd.w-rd.r, len(wire.Magic)); n > 0 && string(rd.buf[rd.r:rd.r+n]) != string(wire.Magic[:n]) {
			is, may := stranger.BeginsHTTP(rd.buf[rd.r : rd.r+n])
			if is {
				return wire.Settings{}, &foreign{errHTTP}
			}
			if !may {
				return wire.Settings{}, &foreign{notAnser(rd.buf[rd.r : rd.r+n])}
			}
		}
		if err := rd.fill(); err != nil {
			return wire.Settings{}, err
		}
	}
	if is, _ := stranger.BeginsHTTP(rd.buf[rd.r : rd.r+len(wire.Magic)]); is {
		return wire.Settings{}, &foreign{errHTTP}
	}
	if err := wire.ParsePreface(rd.buf[rd.r:]); err != nil {
		return wire.Settings{}, &foreign{err}
	}
	rd.r += wire.PrefaceSize
	for {
		h, body, ok, err := rd.next()
		switch {
		case err != nil:
			return wire.Settings{}, err
		case ok && h.Type == wire.TypeClose:
			return wire.Settings{}, closedByPeer(body)
		case ok && (h.Type != wire.TypeSettings || h.ID != 0):
			return wire.Settings{}, wire.Errorf(wire.BadFrame, "the first frame is %s with id %d, want SETTINGS with id 0", h.Type, h.ID)
		case ok:
			return wire.ParseSettings(body)
		case h.Type == wire.TypeSettings: // its body is not there yet
			if err := wire.CheckSettingsLength(h.Length); err != nil {
				return wire.Settings{}, err
			}
		}
		if err := rd.fill(); err != nil {
			return wire.Settings{}, err
		}
	}
}
