package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// Bits of Settings.Features about checksums: that they are supported, and that they are required.
const (
	FeatureCRC       = 1 << 0
	FeatureCRCWanted = 1 << 2
)

// castagnoli is the polynomial of RFC 3720 §12.1, for which amd64 and arm64 have instructions.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ChecksumResidue is the CRC-32C of any data that ends with its own checksum.
const ChecksumResidue = 0x48674BC7

// UpdateChecksum returns the CRC-32C of the data with the CRC-32C sum, followed by p; that of no
// data is 0. It is for frames that are not in one piece.
func UpdateChecksum(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }

// AppendChecksum completes the frame that begins at dst[start:] and ends with dst: it sets
// FlagCRC, adds the checksum to the length, and appends the CRC-32C of the header and the body. It
// is the last step, after [PutLength].
func AppendChecksum(dst []byte, start int) []byte {
	frame := dst[start:]
	PutLength(frame, uint32(len(frame)-HeaderSize))
	MarkChecksum(frame)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(frame, castagnoli))
}

// MarkChecksum changes a header into that of the same frame with a checksum: it sets FlagCRC, adds
// the checksum to the length, and stores the check of the header.
func MarkChecksum(header []byte) {
	PutLength(header, binary.LittleEndian.Uint32(header)+ChecksumSize)
	header[5] |= byte(FlagCRC)
	PutHeaderCheck(header)
}

// PutHeaderCheck stores the check of a header at the start of b into its bytes 6 and 7. It must be
// the last change of the header.
func PutHeaderCheck(b []byte) { binary.LittleEndian.PutUint16(b[6:], headerCheck(b)) }

// headerCheck returns 16 bits that verify the other 14 bytes of a header: a receiver relies on the
// length long before the checksum of the whole frame can arrive. It folds both halves of a CRC-32C
// over the 14 bytes, which detects every change of up to three of the 128 bits of a header. One
// half alone does not.
func headerCheck(b []byte) uint16 {
	sum := crc32.Update(crc32.Checksum(b[:6], castagnoli), castagnoli, b[8:HeaderSize])
	return uint16(sum>>16) ^ uint16(sum)
}

// parseCheckedHeader is ParseHeaderWith on a connection with checksums.
func parseCheckedHeader(b []byte) (Header, error) {
	h := readHeader(b)
	if sent, want := binary.LittleEndian.Uint16(b[6:]), headerCheck(b); sent != want {
		return h, Errorf(BadChecksum, "check of the frame header is %04X, its bytes have %04X", sent, want)
	}
	rule := typeRules[h.Type]
	if h.Flags&^rule.flags != FlagCRC || rule.ids&idBit(h.ID) == 0 {
		return h, checkHeader(h, FlagCRC)
	}
	return h, nil
}

// CheckChecksum verifies a frame with FlagCRC and returns its body without the checksum, aliasing
// body. header is the HeaderSize bytes parsed by [ParseHeaderWith], body all bytes covered by its
// length.
func CheckChecksum(header, body []byte) ([]byte, error) {
	n := len(body) - ChecksumSize
	if n < 0 {
		return nil, Errorf(BadFrame, "frame with a checksum of %d bytes, want %d", len(body), ChecksumSize)
	}
	sum := crc32.Update(crc32.Checksum(header[:HeaderSize], castagnoli), castagnoli, body[:n])
	if sent := binary.LittleEndian.Uint32(body[n:]); sent != sum {
		return nil, Errorf(BadChecksum, "checksum of the frame is %08X, its bytes have %08X", sent, sum)
	}
	return body[:n:n], nil
}
