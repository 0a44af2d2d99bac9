package exchange_test

import (
	"testing"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// To look for members that a request does not have costs no allocations.
func TestMembersAllocate(t *testing.T) {
	m, data := forwardedMethod(t), []byte(`{"A":7,"B":["x","y"],"C":{"A":8,"C":{"A":9}},"D":{"x":{"A":1},"y":{}}}`)
	decode := func(c codec.Codec) float64 {
		var in codec.Encoded
		return testing.AllocsPerRun(100, func() {
			if fault := m.Decode(c, data, &in); fault != nil {
				t.Fatal(fault)
			}
		})
	}
	var strict, plain float64
	for range 10 { // other goroutines and collections add some to a round
		if strict, plain = decode(new(exchange.Directory).RequestJSON()), decode(exchange.JSON); strict <= plain {
			return
		}
	}
	t.Errorf("%v allocations, and %v without", strict, plain)
}
