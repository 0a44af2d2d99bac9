// Package codectest is the conformance suite for codecs: the properties that the runtime relies
// on, and protection against hostile input.
//
//	func TestConformance(t *testing.T) {
//		codectest.Run(t, codectest.Suite{Codec: mine.New(), Values: []any{&Small{A: 1}, &Large{…}}})
//	}
package codectest

import (
	"reflect"
	"testing"

	"github.com/anser-rpc/anser/codec"
)

// A Suite configures Run.
type Suite struct {
	// Codec is the codec under test.
	Codec codec.Codec
	// Values are messages that survive a round trip, as non-nil pointers. Include strings, byte
	// slices, maps and nested messages, which a codec may alias or allocate.
	Values []any
	// Misfits are values that the codec must reject, both for encoding and as a target for
	// decoding.
	Misfits []any
	// Hostile are inputs that must be rejected.
	Hostile []Input
	// Equal compares two messages. Nil means reflect.DeepEqual.
	Equal func(a, b any) bool
}

// An Input is a peer's payload, decoded into a new value of the type that Into points to.
type Input struct {
	Name string
	Data []byte
	Into any
}

// Run runs the suite in subtests of t.
func Run(t *testing.T, s Suite) {
	t.Helper()
	if s.Equal == nil {
		s.Equal = reflect.DeepEqual
	}
	if len(s.Values) == 0 {
		t.Fatal("the suite has no values")
	}
	t.Run("identity", s.identity)
	t.Run("round trip", s.roundTrip)
	t.Run("append in place", s.appendInPlace)
	t.Run("data is not kept", s.dataNotKept)
	t.Run("canonical", s.canonical)
	t.Run("concurrent use", s.concurrentUse)
	t.Run("fits", s.fits)
	t.Run("nothing to encode", s.nothingToEncode)
	t.Run("nothing to decode into", s.nothingToDecodeInto)
	t.Run("misfits", s.misfits)
	t.Run("truncated", s.truncated)
	t.Run("corrupted", s.corrupted)
	t.Run("hostile", s.hostile)
}

// encode returns v's encoding without spare capacity, so that reading beyond it panics.
func (s Suite) encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := s.Codec.Append(nil, v)
	if err != nil {
		t.Fatalf("Append(%T): %v", v, err)
	}
	return b[:len(b):len(b)]
}

// fresh returns a new value of the type that v points to.
func fresh(v any) any { return reflect.New(reflect.TypeOf(v).Elem()).Interface() }

// null returns a nil pointer of v's type.
func null(v any) any { return reflect.Zero(reflect.TypeOf(v)).Interface() }
