package cbor_test

import (
	"fmt"

	"github.com/anser-rpc/anser/codec/cbor"
)

func Example() {
	type Args struct{ A, B int64 }
	c := cbor.New()
	payload, err := c.Append(nil, &Args{A: 7, B: 8})
	fmt.Println(c.Name(), err)

	var got Args
	err = c.Unmarshal(payload, &got)
	fmt.Println(got, err)
	// Output:
	// cbor <nil>
	// {7 8} <nil>
}
