package protobuf

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anser-rpc/anser/codec/internal/utf8text"
)

var (
	errTooDeep = fmt.Errorf("messages nested deeper than %d levels", maxDepth)
	// errUnusual means that vtproto would misread the bytes although they may be valid.
	errUnusual = errors.New("entry of a map that only the standard runtime reads")
)

// check searches the bytes of a message for text that is not UTF-8, more than depth levels of
// messages, and entries of maps that vtproto would misread. All other errors are left to the
// decoder.
func (n *node) check(b []byte, depth int) error {
	if depth == 0 {
		return errTooDeep
	}
	hasValue := false
	for len(b) > 0 {
		number, wireType, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if n.entry != nil {
			if !n.entry.permits(number, wireType) {
				return errUnusual
			}
			hasValue = hasValue || number == 2
		}
		if wireType != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(number, wireType, b); size < 0 {
				return protowire.ParseError(size)
			}
			b = b[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		f := n.field(number)
		switch {
		case f.message != nil:
			if err := f.message.check(value, depth-1); err != nil {
				return err
			}
		case f.text != "" && !utf8text.Valid(value):
			return fmt.Errorf("field %s is not UTF-8", f.text)
		}
	}
	if n.entry != nil && n.entry.message && !hasValue {
		return errUnusual
	}
	return nil
}
