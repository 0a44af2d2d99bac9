package protobuf_test

import (
	"fmt"

	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/benchpb"
)

func Example() {
	c := protobuf.New()
	payload, err := c.Append(nil, &benchpb.AddRequest{A: 1, B: 2})
	fmt.Printf("%x %v\n", payload, err)

	got := new(benchpb.AddRequest)
	err = c.Unmarshal(payload, got)
	fmt.Println(got.A, got.B, err)
	// Output:
	// 08011002 <nil>
	// 1 2 <nil>
}
