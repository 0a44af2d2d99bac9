// Package codectest is the conformance suite of codecs: what the runtime relies on, and what a
// peer's bytes must not be able to do.
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

// A Suite says what to test.
type Suite struct {
	// Codec is the codec under test.
	Codec codec.Codec
	// Values are messages that survive a round trip, pointers that are not nil. Let some hold
	// strings, bytes, maps and messages: those are what a codec may alias or allocate.
	Values []any
	// Misfits are values that the codec refuses to encode and to decode into, with an error.
	Misfits []any
	// Hostile are inputs that must be refused.
	Hostile []Input
	// Equal compares two messages. Nil stands for reflect.DeepEqual.
	Equal func(a, b any) bool
}

// An Input is what a peer sends, decoded into a new value of the type that Into points to.
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

// encode returns v's bytes with no spare capacity, so that reading behind them panics.
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
