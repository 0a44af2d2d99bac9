package anser

import (
	"encoding/binary"

	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// offerChecksums returns the features of checksums that a side announces: it always knows them.
func offerChecksums(wants bool) uint64 {
	if wants {
		return wire.FeatureCRC | wire.FeatureCRCWanted
	}
	return wire.FeatureCRC
}

// negotiateChecksums reports whether the frames of a connection have checksums: one side wants
// them, and the other one knows them. It returns an error if this side wants them and the other
// one does not know them.
func negotiateChecksums(wants bool, peer *wire.Settings, own, other string) (bool, error) {
	known := peer.Features&wire.FeatureCRC != 0
	if wants && !known {
		return false, wire.Errorf(wire.BadChecksum, "the %s does not offer checksums of frames, which this %s demands (anser.Checksums): use a version that does, or leave the option out", other, own)
	}
	return known && (wants || peer.Features&wire.FeatureCRCWanted != 0), nil
}

// checksumWriter adds checksums to frames just before they are written. All frames pass through
// it, wherever they were made, and the frames that are kept in memory, counted and sent again
// have no checksums. It is owned by the goroutine that writes.
type checksumWriter struct {
	buf    []byte // sealed bytes; from bufpool, or nil
	at     int    // bytes of buf that were taken
	first  int    // bytes of buf that belong to the frame that began before it, with the checksum
	inside bool   // the last frame is not sealed yet
	left   int    // bytes of its body that are not sealed yet
	sum    uint32 // of the part that is sealed
}

// fill seals as many bytes of frames as there is room for, and returns how many. All bytes of the
// buffer must have been written.
func (s *checksumWriter) fill(frames []byte) (used int) {
	if s.buf == nil {
		s.buf = bufpool.Get(bufpool.Size)
	}
	b := s.buf[:0]
	s.at, s.first = 0, 0
	if s.inside {
		s.first = s.left + wire.ChecksumSize
	}
	for {
		if s.inside {
			n := min(s.left, len(frames)-used, cap(b)-len(b))
			piece := frames[used : used+n]
			b = append(b, piece...)
			s.sum = wire.UpdateChecksum(s.sum, piece)
			used += n
			if s.left -= n; s.left > 0 || cap(b)-len(b) < wire.ChecksumSize {
				break
			}
			b = binary.LittleEndian.AppendUint32(b, s.sum)
			s.inside = false
		}
		if used == len(frames) || cap(b)-len(b) < wire.HeaderSize {
			break
		}
		head := frames[used : used+wire.HeaderSize]
		at := len(b)
		b = append(b, head...)
		s.inside, s.left = true, int(getUint32(head))
		wire.MarkChecksum(b[at:])
		s.sum = wire.UpdateChecksum(0, b[at:])
		used += wire.HeaderSize
	}
	s.buf = b
	return used
}

// rest returns the sealed bytes that must be written next; without any it seals more of the
// frames. All frames were written when it returns none.
func (s *checksumWriter) rest(frames []byte) (rest []byte, used int) {
	if s.at == len(s.buf) && (len(frames) > 0 || s.inside) {
		used = s.fill(frames)
	}
	return s.buf[s.at:], used
}

// took records that n more bytes were written.
func (s *checksumWriter) took(n int) {
	if s.at += n; s.at == len(s.buf) && !s.inside {
		bufpool.Put(s.buf)
		*s = checksumWriter{}
	}
}

// holds reports whether any sealed bytes, or a frame that is sealed in part, were not written.
func (s *checksumWriter) holds() bool { return s != nil && (s.at < len(s.buf) || s.inside) }

// pendingBytes returns how many sealed bytes were not written, without the checksums.
func (s *checksumWriter) pendingBytes() int {
	if s == nil {
		return 0
	}
	n := len(s.buf) - s.at
	for end := s.first; n > 0; {
		if begin := end - wire.ChecksumSize; end > 0 { // the position of the checksum
			n -= max(0, min(end, len(s.buf))-max(begin, s.at))
		}
		if end+wire.HeaderSize > len(s.buf) {
			break
		}
		end += wire.HeaderSize + int(getUint32(s.buf[end:]))
	}
	return n
}

// writeSealed is writeOut with checksums.
func (w *writer) writeSealed(frames []byte) (taken int, err error) {
	defer w.writeStart.Store(0)
	for {
		out, used := w.checksums.rest(frames[taken:])
		taken += used
		if len(out) == 0 {
			return taken, nil
		}
		w.writeStart.Store(mono.Now())
		n, err := w.nc.Write(out)
		w.checksums.took(n)
		if err != nil {
			return taken, err
		}
	}
}
