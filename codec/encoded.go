package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Encoded is a message that stays encoded, for programs that pass messages on and have no Go types
// for them. The zero value has no encoding.
type Encoded struct {
	Codec uint8  // number of the codec that has encoded it
	Data  []byte // owned by the message
}

// MarshalJSON returns the message if it is JSON, so that it can be an element of other JSON.
func (e Encoded) MarshalJSON() ([]byte, error) {
	if e.Codec != JSONID {
		return nil, fmt.Errorf("the message is encoded with codec %d, and not in JSON", e.Codec)
	}
	return e.Data, nil
}

// UnmarshalJSON makes e a copy of a JSON text.
func (e *Encoded) UnmarshalJSON(text []byte) error {
	if e == nil {
		return errors.New("cannot decode into a nil *codec.Encoded")
	}
	e.Codec, e.Data = JSONID, bytes.Clone(text)
	return nil
}

// Passing returns a codec that takes messages of type [Encoded] for what the codec with this number
// and name has encoded, and changes nothing in them. It is for clients: the messages that it
// receives are copies.
func Passing(id uint8, name string) Codec { return passing{id, name} }

type passing struct {
	id   uint8
	name string
}

func (p passing) ID() uint8 { return p.id }

func (p passing) Name() string { return p.name }

func (p passing) Append(dst []byte, v any) ([]byte, error) {
	e, ok := v.(*Encoded)
	switch {
	case !ok || e == nil:
		return dst, fmt.Errorf("%s, passed on: cannot encode %s: pass a *codec.Encoded that is not nil", p.name, typeName(v))
	case e.Codec != p.id:
		return dst, fmt.Errorf("%s, passed on: the message is encoded with codec %d, and not %d", p.name, e.Codec, p.id)
	}
	return AppendInPieces(dst, e.Data), nil
}

func (p passing) Unmarshal(data []byte, v any) error {
	e, ok := v.(*Encoded)
	if !ok || e == nil {
		return fmt.Errorf("%s, passed on: cannot decode into %s: pass a *codec.Encoded that is not nil", p.name, typeName(v))
	}
	e.Codec, e.Data = p.id, AppendInPieces(e.Data[:0], data)
	return nil
}

// Fits reports whether v is a *Encoded.
func (passing) Fits(v any) bool {
	_, ok := v.(*Encoded)
	return ok
}

// Interface checks.
var (
	_ Fitter         = passing{}
	_ json.Marshaler = Encoded{}
)
