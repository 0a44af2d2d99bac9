package compress_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/snappy"
)

func Example() {
	z := snappy.New()
	message := strings.Repeat("a goose that carries letters, ", 100)
	packed, err := z.Append(nil, []byte(message))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(message), "bytes became", len(packed))

	back, err := z.Decompress(nil, packed, 4<<20)
	fmt.Println(string(back) == message, err)

	_, err = z.Decompress(nil, packed, 1000)
	fmt.Println(errors.Is(err, compress.ErrTooLarge), err)
	// Output:
	// 3000 bytes became 183
	// true <nil>
	// true snappy: the decompressed message exceeds the limit: 1000 bytes
}
