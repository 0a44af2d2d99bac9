package zstd_test

import (
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/compress/zstd"
)

func Example() {
	message := strings.Repeat("a goose that carries letters, ", 100)
	z := zstd.New()
	packed, err := z.Append(nil, []byte(message))
	fmt.Println(z.Name(), len(packed) < len(message)/2, err)

	back, err := z.Decompress(nil, packed, 4<<20)
	fmt.Println(string(back) == message, err)
	// Output:
	// zstd true <nil>
	// true <nil>
}
