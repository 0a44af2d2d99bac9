package flatbuffers_test

import (
	"fmt"

	"github.com/anser-rpc/anser/codec/flatbuffers"
	"github.com/anser-rpc/anser/codec/flatbuffers/internal/testfb"
)

// AddressT and Address are types that flatc generated with --gen-object-api, and testfb.Schema is the binary schema that it wrote.
// The codec verifies each message by the schema. A client gets it with anser.Codec, a server with anser.Codecs.
func Example() {
	schema, err := flatbuffers.ParseSchema(testfb.Schema)
	if err != nil {
		fmt.Println(err)
		return
	}
	address, err := schema.Table("testfb.Address")
	if err != nil {
		fmt.Println(err)
		return
	}
	c := flatbuffers.New(flatbuffers.Object[testfb.Address, testfb.AddressT](address))
	payload, err := c.Append(nil, &testfb.AddressT{Street: "Main", Number: 5})
	fmt.Println(c.Name(), err)

	var got testfb.AddressT
	fmt.Println(c.Unmarshal(payload, &got), got.Street, got.Number)
	fmt.Println(c.Unmarshal(payload[:8], &got) != nil)
	// Output:
	// flatbuffers <nil>
	// <nil> Main 5
	// true
}
