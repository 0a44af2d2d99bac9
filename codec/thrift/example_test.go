package thrift_test

import (
	"fmt"

	"github.com/anser-rpc/anser/codec/thrift"
	"github.com/anser-rpc/anser/codec/thrift/internal/testthrift"
)

// Address is a struct that the Thrift compiler generated. A client gets the codec with anser.Codec, a server with anser.Codecs.
func Example() {
	c := thrift.Compact()
	payload, err := c.Append(nil, &testthrift.Address{Street: "Main", Number: new(int16(5))})
	fmt.Println(c.Name(), err)

	var got testthrift.Address
	err = c.Unmarshal(payload, &got)
	fmt.Println(got.Street, *got.Number, err)
	// Output:
	// thrift-compact <nil>
	// Main 5 <nil>
}
