package codectest_test

import (
	"testing"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
)

func ExampleRun() {
	type Args struct{ A, B int }
	_ = func(t *testing.T) { // your test function
		codectest.Run(t, codectest.Suite{
			Codec:   new(codec.JSON),
			Values:  []any{&Args{A: 7, B: 8}},
			Misfits: []any{new(chan int)},
			Hostile: []codectest.Input{{Name: "wrong type", Data: []byte(`{"A":"x"}`), Into: new(Args)}},
		})
	}
	// Output:
}
