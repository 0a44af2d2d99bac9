package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Encoded is a message that stays encoded, for programs that forward messages and have no Go types
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

// Forwarding returns a codec that takes messages of type [Encoded] for what the codec with this
// number and name has encoded, and changes nothing in them. It is for clients: the messages that it
// receives are copies.
func Forwarding(id uint8, name string) Codec { return forwarding{id, name} }

type forwarding struct {
	id   uint8
	name string
}

func (p forwarding) ID() uint8 { return p.id }

func (p forwarding) Name() string { return p.name }

func (p forwarding) Append(dst []byte, v any) ([]byte, error) {
	e, ok := v.(*Encoded)
	switch {
	case !ok || e == nil:
		return dst, fmt.Errorf("%s, forwarded: cannot encode %s: pass a *codec.Encoded that is not nil", p.name, typeName(v))
	case e.Codec != p.id:
		return dst, fmt.Errorf("%s, forwarded: the message is encoded with codec %d, and not %d", p.name, e.Codec, p.id)
	}
	return AppendInPieces(dst, e.Data), nil
}

func (p forwarding) Unmarshal(data []byte, v any) error {
	e, ok := v.(*Encoded)
	if !ok || e == nil {
		return fmt.Errorf("%s, forwarded: cannot decode into %s: pass a *codec.Encoded that is not nil", p.name, typeName(v))
	}
	e.Codec, e.Data = p.id, AppendInPieces(e.Data[:0], data)
	return nil
}

// Fits reports whether v is a *Encoded.
func (forwarding) Fits(v any) bool {
	_, ok := v.(*Encoded)
	return ok
}

// Interface checks.
var (
	_ Fitter         = forwarding{}
	_ json.Marshaler = Encoded{}
)
