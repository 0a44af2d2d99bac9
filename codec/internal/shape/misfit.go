package shape

import (
	"errors"
	"strings"
)

// Misfit is the error that a format does not support a part of a type.
type Misfit struct {
	Path string // of the part: "Inner[].E"
	Err  error
}

// Error returns the path of the part and the reason.
func (m *Misfit) Error() string { return "field " + m.Path + ": " + m.Err.Error() }

// Unwrap returns the reason.
func (m *Misfit) Unwrap() error { return m.Err }

// At wraps err, which is nil or about a part of a type, as an error about that part of a larger
// type: about the field of that name, or with "[]" about an element. A reason for a whole element
// needs no path.
func At(step string, err error) error {
	var inner *Misfit
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &inner):
		return &Misfit{step, err}
	case strings.HasPrefix(inner.Path, "["):
		return &Misfit{step + inner.Path, inner.Err}
	}
	return &Misfit{step + "." + inner.Path, inner.Err}
}
