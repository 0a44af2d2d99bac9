package filetransfer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/anser-rpc/anser"
)

// Checksum is the algorithm by which the two sides verify that their bytes are the same. It is an
// [Option].
type Checksum uint8

// The checksums.
const (
	// SHA256 detects every change, including malicious ones. It is the default.
	SHA256 Checksum = iota
	// CRC32C detects accidental changes, except one in four billion. It costs a tenth of SHA256,
	// and is useful if the network is faster than SHA256: see docs/files.md.
	CRC32C
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// String returns the name of the checksum on the wire.
func (c Checksum) String() string {
	switch c {
	case SHA256:
		return "sha256"
	case CRC32C:
		return "crc32c"
	}
	return fmt.Sprintf("Checksum(%d)", uint8(c))
}

func (c Checksum) apply(o *options) {
	if c > CRC32C {
		o.fault("%v is not a checksum: use filetransfer.SHA256 or filetransfer.CRC32C", c)
	}
	o.checksum = c
}

// parseChecksum is the inverse of String.
func parseChecksum(name string) (Checksum, error) {
	for _, c := range []Checksum{SHA256, CRC32C} {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, anser.Errorf(anser.Unimplemented, "the checksum %q is unknown: use sha256 or crc32c", name)
}

func (c Checksum) new() hash.Hash {
	if c == CRC32C {
		return crc32.New(castagnoli)
	}
	return sha256.New()
}

// sumOf returns the checksum of the data written to h, in the form that is shown and sent.
func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// hashPrefix writes the first n bytes of r to h.
func hashPrefix(h hash.Hash, r io.ReaderAt, n int64) error {
	buf := takeBuffer()
	defer giveBuffer(buf)
	copied, err := io.CopyBuffer(onlyWriter{h}, io.NewSectionReader(r, 0, n), *buf)
	if err == nil && copied < n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// onlyWriter hides all methods but Write from io.CopyBuffer.
type onlyWriter struct{ io.Writer }
