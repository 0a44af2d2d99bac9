package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// parts is a large frame that arrives in PARTs, between which other frames may come. The bytes are
// read into their place. See docs/decisions/0081-large-frames-in-parts.md.
type parts struct {
	wire.Parts
	largeBuffer
	method  uint32        // number of the method of a REQUEST
	left    int           // bytes of the current PART that are read into place, with its checksum; 0: there is none
	sum     uint32        // of the bytes of the current PART so far
	dropped bool          // what arrives is thrown away
	spent   time.Duration // reading since the first PART
}

// firstPart checks the first PART of a frame.
func (rd *reader) firstPart(h wire.Header, body []byte) (wire.Parts, error) {
	p, err := wire.BeginParts(h, body)
	if err != nil {
		return p, err
	}
	most := rd.maxFrame
	if rd.sealed != 0 {
		most -= wire.ChecksumSize
	}
	if uint64(p.Head.Length) > most {
		return p, rd.tooLarge(p.Head)
	}
	return p, nil
}

// beginParts begins a frame with the body of the first PART, for which firstPart has returned
// begun. A frame that is not wanted is thrown away from the beginning. Without memory for a REQUEST
// beginParts returns errNoMemory, as takePart and fill do; the caller then drops the frame.
func (rd *reader) beginParts(begun wire.Parts, body []byte, wanted bool) error {
	p := &parts{Parts: begun, dropped: !wanted}
	p.need = wire.HeaderSize + int(p.Head.Length)
	if rd.sealed != 0 {
		p.need += wire.ChecksumSize // of the last PART
	}
	rd.parts = p
	rd.progress.partedBytes.Store(int64(len(body)))
	if wanted && !rd.enlargeParts(body) {
		return errNoMemory
	}
	return nil
}

// enlargeParts is enlarge for the frame that arrives in PARTs. Only a REQUEST may find no memory.
func (rd *reader) enlargeParts(begun []byte) bool {
	return rd.enlarge(&rd.parts.largeBuffer, begun, rd.parts.Head.Type != wire.TypeRequest)
}

// takePart handles a further PART that has arrived as a whole. If it completes the frame, next
// returns the frame next.
func (rd *reader) takePart(h wire.Header, body []byte) error {
	p := rd.parts
	early, err := p.Next(h.ID, len(body))
	if err != nil {
		return err
	}
	if early {
		rd.dropParts()
		rd.endParts()
		return nil
	}
	if err := rd.place(body); err != nil {
		return err
	}
	if p.Left == 0 {
		rd.endParts()
	}
	return nil
}

// resumeClock counts the time from now on, in which the receiver reads, for the frame.
func (p *parts) resumeClock(of *progress) {
	of.parted.Store(mono.Now().Add(-p.spent))
	of.upkeep.Stir()
}

// stopClock ends what resumeClock has begun.
func (p *parts) stopClock(of *progress) {
	p.spent = mono.Now().Sub(of.parted.Load())
	of.parted.Store(0)
}

// mayEndEarly returns an error if a REPLY that has ended early is due; awaits is as for
// [callsToClient].
func (p *parts) mayEndEarly(awaits func(h wire.Header) (bool, error)) error {
	if due, err := awaits(p.Head); err != nil || !due {
		return err
	}
	return wire.Errorf(wire.BadFrame, "the REPLY to the call %d ends early, and the call was not cancelled", p.Head.ID&^fromServer)
}

// enterPart makes fillPart read the rest of the PART of which the beginning is all that is unread,
// if it belongs to a frame that arrives in PARTs.
func (rd *reader) enterPart() (entered bool, err error) {
	frame := rd.buf[rd.r:rd.w]
	length := rd.need - wire.HeaderSize
	size := length
	if rd.sealed != 0 {
		size -= wire.ChecksumSize
	}
	p := rd.parts
	if p == nil {
		return false, wire.CheckFirstPart(size)
	}
	if _, err := p.Next(getUint64(frame[idOffset:]), size); err != nil {
		return false, err
	}
	rd.r, rd.w, rd.need, rd.since = 0, 0, 0, 0
	rd.progress.partial.Store(0) // progress.parted is older
	p.left, p.sum = length, wire.UpdateChecksum(0, frame[:wire.HeaderSize])
	return true, rd.arrivedInside(frame[wire.HeaderSize:], true)
}

// fillPart reads once into the place of the current PART, and if more follow, also the header of
// the next frame, most often a PART that would need a read of its own otherwise.
func (rd *reader) fillPart() error {
	p := rd.parts
	if p.dropped {
		if len(rd.buf) < loadBuffer {
			rd.grow()
		}
		n, err := rd.readInside(rd.buf[:min(p.left, len(rd.buf))])
		if err != nil {
			return err
		}
		return rd.arrivedInside(rd.buf[:n], false)
	}
	if p.n == len(p.buf) && !rd.enlargeParts(p.buf[:p.n]) {
		return errNoMemory
	}
	end := p.n + p.left
	if p.Left > 0 {
		end += wire.HeaderSize
	}
	begin := p.n
	n, err := rd.readInside(p.buf[begin:min(end, len(p.buf))])
	if err != nil {
		return err
	}
	own := min(n, p.left)
	p.n += own
	rd.w = copy(rd.buf, p.buf[begin+own:begin+n])
	return rd.arrivedInside(p.buf[begin:begin+own], false)
}

// arrivedInside counts bytes of the current PART. With copied they are not in their place yet.
func (rd *reader) arrivedInside(b []byte, copied bool) error {
	p := rd.parts
	p.left -= len(b)
	if rd.sealed != 0 {
		p.sum = wire.UpdateChecksum(p.sum, b)
	}
	if copied {
		if err := rd.place(b); err != nil {
			return err
		}
	} else {
		rd.progress.partedBytes.Add(int64(len(b)))
	}
	if p.left > 0 {
		return nil
	}
	rd.peek = true
	if rd.sealed != 0 {
		if p.sum != wire.ChecksumResidue {
			return wire.Errorf(wire.BadChecksum, "a PART of a %s does not have the checksum of its bytes", p.Head.Type)
		}
		if !p.dropped {
			p.n -= wire.ChecksumSize
		}
	}
	if p.Left == 0 {
		rd.endParts()
	}
	return nil
}

// place copies the next bytes of the frame to their place.
func (rd *reader) place(b []byte) error {
	p := rd.parts
	rd.progress.partedBytes.Add(int64(len(b)))
	for len(b) > 0 && !p.dropped {
		if p.n == len(p.buf) && !rd.enlargeParts(p.buf[:p.n]) {
			return errNoMemory
		}
		n := copy(p.buf[p.n:], b)
		p.n += n
		b = b[n:]
	}
	return nil
}

// dropParts frees the buffer of the frame that arrives in PARTs, and throws away what follows.
func (rd *reader) dropParts() {
	p := rd.parts
	p.dropped = true
	rd.free(&p.largeBuffer)
	if p.Left == 0 && p.left == 0 {
		rd.endParts()
	}
}

// endParts ends the frame that arrives in PARTs. It is the next frame that next returns, unless it
// was dropped.
func (rd *reader) endParts() {
	p := rd.parts
	rd.parts = nil
	if !p.dropped {
		rd.large = p.largeBuffer
		rd.large.need, rd.large.parted = p.n, true
	}
}
