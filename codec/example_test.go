package codec_test

import (
	"fmt"

	"github.com/anser-rpc/anser/codec"
)

func Example() {
	type Args struct{ A, B int }
	var json codec.JSON

	payload, err := json.Append(nil, &Args{A: 7, B: 8})
	fmt.Println(string(payload), err)

	var got Args
	fmt.Println(json.Unmarshal(payload, &got), got)
	fmt.Println(json.Unmarshal([]byte(`{"A":1,"A":2}`), &got))
	// Output:
	// {"A":7,"B":8} <nil>
	// <nil> {7 8}
	// json codec: cannot decode into *codec_test.Args: JSON object has the key "A" twice
}
