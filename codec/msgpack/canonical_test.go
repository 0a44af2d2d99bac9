package msgpack_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/anser-rpc/anser/codec/msgpack"
)

// Maps filled in another order have the same encoding, however deeply they are nested.
func TestCanonical(t *testing.T) {
	type inner struct{ M map[int]string }
	type outer struct {
		Names map[string]inner
		Any   any
		Plain int
	}
	c := msgpack.New()
	fill := func(up bool) *outer {
		o := &outer{Names: map[string]inner{}, Any: map[any]any{}, Plain: 7}
		for i := range 20 {
			if !up {
				i = 19 - i
			}
			in := inner{M: map[int]string{i: "a", i + 1: "b", i * 100_000: "c"}}
			o.Names[fmt.Sprint("name ", i)] = in
			o.Any.(map[any]any)[fmt.Sprint(i)] = []any{i}
		}
		return o
	}
	up, err := c.AppendCanonical(nil, fill(true))
	if err != nil {
		t.Fatal(err)
	}
	down, err := c.AppendCanonical([]byte("x"), fill(false))
	if err != nil || !bytes.Equal(up, down[1:]) {
		t.Fatalf("%x\n%x\n%v", up, down, err)
	}
	var got outer
	if err := c.Unmarshal(up, &got); err != nil || len(got.Names) != 20 || len(got.Any.(map[any]any)) != 20 || got.Plain != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	other, err := c.AppendCanonical(nil, &outer{Names: map[string]inner{"a": {}}, Plain: 7})
	if err != nil || bytes.Equal(up, other) {
		t.Error("another value has the same bytes", err)
	}
}

// Keys of a map[any]any that differ in Go, but not in MessagePack, have no order.
func TestCanonicalRefusesKeysWithTheSameBytes(t *testing.T) {
	c := msgpack.New()
	for _, v := range []any{
		&map[any]any{uint8(0): "a", uint16(0): "b"},
		&[]any{"a", map[any]any{"b": map[any]any{int8(7): 1, uint64(7): 2, "c": 3}}},
		&map[float64]int{math.NaN(): 1, math.Float64frombits(math.Float64bits(math.NaN())): 2},
	} {
		if out, err := c.AppendCanonical([]byte("x"), v); err == nil || string(out) != "x" {
			t.Errorf("%v is encoded as %x, %v; want an error", v, out, err)
		}
	}
}
