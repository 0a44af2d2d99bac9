package wire_test

import (
	"fmt"

	"github.com/anser-rpc/anser/wire"
)

// A caller names a method and calls it; the callee parses both frames from the received bytes.
func Example() {
	var stream []byte
	stream = wire.AppendMethod(stream, 1, "Arith.Mul")
	stream = wire.AppendRequest(stream, 1, 0, &wire.Request{
		Method: 1, Codec: 3, Priority: 2, Timeout: 250_000, Payload: []byte(`{"A":7,"B":8}`),
	})

	for len(stream) >= wire.HeaderSize {
		h, err := wire.ParseHeader(stream)
		if err != nil {
			fmt.Println(err)
			return
		}
		end := wire.HeaderSize + int(h.Length)
		if end > len(stream) {
			return // the rest has not arrived yet
		}
		body := stream[wire.HeaderSize:end]
		stream = stream[end:]
		switch h.Type {
		case wire.TypeMethod:
			number, name, err := wire.ParseMethod(body)
			fmt.Println(h.Type, number, name, err)
		case wire.TypeRequest:
			var r wire.Request
			err := wire.ParseRequest(h.Flags, body, &r)
			fmt.Println(h.Type, h.ID, r.Method, string(r.Payload), err)
		}
	}
	// Output:
	// METHOD 1 Arith.Mul <nil>
	// REQUEST 1 1 {"A":7,"B":8} <nil>
}
