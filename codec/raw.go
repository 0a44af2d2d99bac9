package codec

import "fmt"

// Raw passes bytes through: the payload is the message. It supports only []byte, not named types
// of it: a named type has a meaning, and is probably intended for another codec. Messages of
// 512 KiB or more are written from their own memory, and read into it, where that is possible.
type Raw struct{}

// ID returns RawID.
func (Raw) ID() uint8 { return RawID }

// Name returns "raw".
func (Raw) Name() string { return "raw" }

// Append appends the bytes of v, a []byte or a *[]byte.
func (Raw) Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return AppendInPieces(dst, v), nil
	case *[]byte:
		if v != nil {
			return AppendInPieces(dst, *v), nil
		}
	}
	return dst, fmt.Errorf("raw codec: cannot encode %s: pass a []byte or a *[]byte that is not nil", typeName(v))
}

// Unmarshal copies data to v, a *[]byte, and reuses its memory if that is large enough.
func (Raw) Unmarshal(data []byte, v any) error {
	if v, ok := v.(*[]byte); ok && v != nil {
		*v = AppendInPieces((*v)[:0], data)
		return nil
	}
	return fmt.Errorf("raw codec: cannot decode into %s: pass a *[]byte that is not nil", typeName(v))
}

// Fits reports whether v is a *[]byte.
func (Raw) Fits(v any) bool {
	_, ok := v.(*[]byte)
	return ok
}
