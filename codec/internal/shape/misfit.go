package shape

import (
	"errors"
	"strings"
)

// Misfit says why a part of a type has no place in a format.
type Misfit struct {
	Path string // of the part: "Inner[].E"
	Err  error
}

// Error names the part and the reason.
func (m *Misfit) Error() string { return "field " + m.Path + ": " + m.Err.Error() }

// Unwrap returns the reason.
func (m *Misfit) Unwrap() error { return m.Err }

// At says that err, which is nil or about a part of a type, is about that part of a larger one: about a field of that
// name, or with "[]" about an element. A reason for a whole element needs no path.
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
