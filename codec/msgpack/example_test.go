package msgpack_test

import (
	"fmt"

	"github.com/anser-rpc/anser/codec/msgpack"
)

func Example() {
	type Args struct {
		A, B int
		Note string `msgpack:"note"`
	}
	c := msgpack.New()
	payload, err := c.Append(nil, &Args{A: 7, B: 8, Note: "hi"})
	fmt.Printf("%q %v\n", payload, err)

	var got Args
	fmt.Println(c.Unmarshal(payload, &got), got)
	fmt.Println(c.Unmarshal([]byte{0xdd, 0x80, 0, 0, 0}, &got)) // an array of 2^31
	// Output:
	// "\x83\xa1A\a\xa1B\b\xa4note\xa2hi" <nil>
	// <nil> {7 8 hi}
	// msgpack codec: cannot decode into *msgpack_test.Args: MessagePack ends before it is complete, or declares more than there is
}
