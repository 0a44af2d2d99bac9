package lz4_test

import (
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/compress/lz4"
)

func Example() {
	message := strings.Repeat("a goose that carries letters, ", 100)
	z := lz4.New()
	packed, err := z.Append(nil, []byte(message))
	fmt.Println(z.Name(), len(packed) < len(message)/2, err)

	back, err := z.Decompress(nil, packed, 4<<20)
	fmt.Println(string(back) == message, err)
	// Output:
	// lz4 true <nil>
	// true <nil>
}
