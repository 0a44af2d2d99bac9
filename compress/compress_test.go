package compress_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	klauspost "github.com/klauspost/compress/zstd"
	pierrec "github.com/pierrec/lz4/v4"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/compress/lz4"
	"github.com/anser-rpc/anser/compress/snappy"
	"github.com/anser-rpc/anser/compress/zstd"
)

// noise returns n incompressible bytes.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// text returns n bytes similar to JSON.
func text(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, `{"id":%d,"name":"user %d","tags":["a","b"],"score":%d.5},`, r.IntN(1e6), r.IntN(1000), r.IntN(100))
	}
	return b.Bytes()[:n]
}

func messages() map[string][]byte {
	return map[string][]byte{
		"empty": {}, "one byte": {7}, "short": []byte("hello, hello, hello, hello"), "noise": noise(1000),
		"text": text(64 << 10), "zeros": make([]byte, 300<<10), "large text": text(5 << 20), "large noise": noise(5 << 20),
	}
}

// each runs f for every algorithm.
func each(t *testing.T, f func(t *testing.T, c compress.Compressor)) {
	for _, c := range all.Compressors() {
		t.Run(c.Name(), func(t *testing.T) { f(t, c) })
	}
}

func pack(t testing.TB, c compress.Compressor, message []byte) []byte {
	t.Helper()
	b, err := c.Append(nil, message)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNumbers(t *testing.T) {
	var got []string
	for _, c := range append([]compress.Compressor{compress.None()}, all.Compressors()...) {
		got = append(got, fmt.Sprint(c.ID(), " ", c.Name()))
		if named, err := all.Named(c.Name()); err != nil || named.ID() != c.ID() {
			t.Errorf("Named(%q) is %v, %v", c.Name(), named, err)
		}
	}
	if want := "0 none, 1 gzip, 2 deflate, 3 snappy, 4 zstd, 5 lz4"; strings.Join(got, ", ") != want {
		t.Errorf("the algorithms are %v, docs/protocol.md says %s", got, want)
	}
	if _, err := all.Named("zip"); err == nil || !strings.Contains(err.Error(), "zstd") {
		t.Errorf("an unknown name: %v, want the names there are", err)
	}
}

func TestRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, c compress.Compressor) {
		for name, want := range messages() {
			head := []byte("head")
			packed, err := c.Append(append(make([]byte, 0, 100), head...), want)
			if err != nil || !bytes.HasPrefix(packed, head) {
				t.Fatalf("%s: Append: %v", name, err)
			}
			got, err := c.Decompress(append(make([]byte, 0, 100), head...), packed[len(head):], len(want))
			if err != nil || !bytes.HasPrefix(got, head) || !bytes.Equal(got[len(head):], want) {
				t.Errorf("%s: %d bytes became %d and %d, %v", name, len(want), len(packed)-len(head), len(got)-len(head), err)
			}
		}
	})
}

// A limit applies to the decompressed bytes: limit-1, limit, limit+1.
func TestLimit(t *testing.T) {
	each(t, func(t *testing.T, c compress.Compressor) {
		for _, n := range []int{1, 100, 64 << 10, 300 << 10} {
			for _, message := range [][]byte{text(n), noise(n), make([]byte, n)} {
				packed := pack(t, c, message)
				for limit, ok := range map[int]bool{n - 1: false, n: true, n + 1: true} {
					got, err := c.Decompress(nil, packed, limit)
					switch {
					case ok && (err != nil || !bytes.Equal(got, message)):
						t.Errorf("%d bytes with the limit %d: %v", n, limit, err)
					case !ok && !errors.Is(err, compress.ErrTooLarge):
						t.Errorf("%d bytes with the limit %d: %v, want ErrTooLarge", n, limit, err)
					}
				}
			}
		}
	})
}

// A message that is truncated at any position, or followed by any byte, is an error.
func TestTruncated(t *testing.T) {
	each(t, func(t *testing.T, c compress.Compressor) {
		packed := pack(t, c, text(2000))
		for n := range packed {
			if _, err := c.Decompress(nil, packed[:n], 1<<20); err == nil {
				t.Errorf("cut off after %d of %d bytes: no error", n, len(packed))
			}
		}
		for _, more := range [][]byte{{0}, packed} {
			if _, err := c.Decompress(nil, append(bytes.Clone(packed), more...), 1<<20); err == nil {
				t.Errorf("%d bytes follow the message: no error", len(more))
			}
		}
	})
}

// If the format has a checksum, a message with a flipped bit is decompressed unchanged or not at
// all.
func TestCorrupted(t *testing.T) {
	each(t, func(t *testing.T, c compress.Compressor) {
		message := text(2000)
		packed := pack(t, c, message)
		sums := 0
		for bit := range 8 * len(packed) {
			broken := bytes.Clone(packed)
			broken[bit/8] ^= 1 << (bit % 8)
			got, err := c.Decompress(nil, broken, 1<<20)
			if errors.Is(err, compress.ErrChecksum) {
				sums++
			}
			if err == nil && !bytes.Equal(got, message) && c.ID() != compress.SnappyID {
				t.Errorf("with bit %d changed another message comes out, without an error", bit)
			}
		}
		if sums == 0 && c.ID() != compress.SnappyID {
			t.Error("no change led to ErrChecksum")
		}
	})
}

// The cost of a declared length before a byte has been decompressed.
func TestDeclaredLengthsAllocateNothing(t *testing.T) {
	for name, in := range map[string]struct {
		c    compress.Compressor
		data string
	}{
		"snappy of 4 GiB":       {snappy.New(), "ffffffff0f00"},
		"snappy of 3 MiB":       {snappy.New(), "808080030000"},
		"zstd content of 3 MiB": {zstd.New(), "28b52ffd" + "a0" + "00003000" + "010000"},
		"zstd window of 2 GiB":  {zstd.New(), "28b52ffd" + "00" + "a8" + "010000"},
		"zstd of 1 TiB":         {zstd.New(), "28b52ffd" + "e0" + "0000000000010000" + "010000"},
		"zstd raw block cut":    {zstd.New(), "28b52ffd" + "00" + "58" + "01ff0f"},
		"lz4 content of 3 MiB":  {lz4.New(), "04224d18" + "6870" + "0000300000000000"},
		"lz4 block of 3 MiB":    {lz4.New(), "04224d18" + "607073" + "0000308000"},
	} {
		data, err := hex.DecodeString(in.data)
		if err != nil {
			t.Fatal(err)
		}
		in.c.Decompress(nil, pack(t, in.c, nil), 0) // fills the pools
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = in.c.Decompress(nil, data, 4<<20)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		t.Logf("%s: %v", name, err)
		if n := after.TotalAlloc - before.TotalAlloc; n > 512<<10 {
			t.Errorf("%s: %d bytes were allocated for %d", name, n, len(data))
		}
	}
}

// bombs are small messages that decompress to large ones.
func TestBombs(t *testing.T) {
	each(t, func(t *testing.T, c compress.Compressor) {
		packed := pack(t, c, make([]byte, 16<<20))
		if _, err := c.Decompress(nil, packed, 1<<20); !errors.Is(err, compress.ErrTooLarge) {
			t.Errorf("%d bytes that become 16 MiB: %v, want ErrTooLarge", len(packed), err)
		}
		nested := pack(t, c, packed)
		got, err := c.Decompress(nil, nested, 1<<20)
		if len(packed) <= 1<<20 && (err != nil || !bytes.Equal(got, packed)) {
			t.Errorf("a compressed message in one: %v, want one layer to be taken off", err)
		}
	})
}

// The formats are compatible with other implementations, in both directions.
func TestOthers(t *testing.T) {
	message := text(100 << 10)
	var gz, zl, lz, linked, sums bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Name, g.Comment, g.Extra = "name", "a comment", []byte("extra")
	z := zlib.NewWriter(&zl)
	l, k, s := pierrec.NewWriter(&lz), pierrec.NewWriter(&linked), pierrec.NewWriter(&sums)
	for _, err := range []error{
		k.Apply(pierrec.BlockSizeOption(pierrec.Block64Kb), pierrec.ConcurrencyOption(1)),
		s.Apply(pierrec.BlockChecksumOption(true), pierrec.BlockSizeOption(pierrec.Block64Kb), pierrec.ConcurrencyOption(1)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []io.WriteCloser{g, z, l, k, s} {
		if _, err := w.Write(message); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e, err := klauspost.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var streamed bytes.Buffer
	e.Reset(&streamed)
	e.Write(message)
	e.Close()
	for name, in := range map[string]struct {
		c    compress.Compressor
		data []byte
	}{
		"gzip": {compress.Gzip(), gz.Bytes()}, "zlib": {compress.Deflate(), zl.Bytes()}, "lz4": {lz4.New(), lz.Bytes()},
		"lz4 in blocks": {lz4.New(), linked.Bytes()}, "lz4 with checksums": {lz4.New(), sums.Bytes()},
		"zstd without a size": {zstd.New(), streamed.Bytes()},
	} {
		if got, err := in.c.Decompress(nil, in.data, len(message)); err != nil || !bytes.Equal(got, message) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := in.c.Decompress(nil, in.data, len(message)-1); !errors.Is(err, compress.ErrTooLarge) {
			t.Errorf("%s over the limit: %v", name, err)
		}
	}
	if r, err := gzip.NewReader(bytes.NewReader(pack(t, compress.Gzip(), message))); err != nil {
		t.Error(err)
	} else if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, message) {
		t.Errorf("gzip there: %v", err)
	}
	if r, err := zlib.NewReader(bytes.NewReader(pack(t, compress.Deflate(), message))); err != nil {
		t.Error(err)
	} else if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, message) {
		t.Errorf("zlib there: %v", err)
	}
	for _, m := range messages() {
		got, err := io.ReadAll(pierrec.NewReader(bytes.NewReader(pack(t, lz4.New(), m))))
		if err != nil || !bytes.Equal(got, m) {
			t.Errorf("lz4 there, %d bytes: %v", len(m), err)
		}
	}
}

// The golden files hold a message in each format; docs/protocol.md §13a refers to them as
// normative.
func TestGolden(t *testing.T) {
	const message = "Anser Anser Anser Anser anser anser: a goose that carries letters, a goose."
	each(t, func(t *testing.T, c compress.Compressor) {
		file := filepath.Join("testdata", c.Name()+".hex")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		for line := range strings.Lines(string(text)) {
			digits, _, _ := strings.Cut(line, "#")
			field, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			data = append(data, field...)
		}
		if got, err := c.Decompress(nil, data, len(message)); err != nil || string(got) != message {
			t.Errorf("%s holds %q, %v", file, got, err)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	each(t, func(t *testing.T, c compress.Compressor) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 20 {
					message := text(100*i + 1000*n + 1)
					packed, err := c.Append(nil, message)
					if err != nil {
						t.Error(err)
					}
					if got, err := c.Decompress(nil, packed, 1<<20); err != nil || !bytes.Equal(got, message) {
						t.Errorf("%d bytes: %v", len(message), err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// Invalid input leaves no state behind in the pools.
func TestAfterBrokenInput(t *testing.T) {
	each(t, func(t *testing.T, c compress.Compressor) {
		message := text(5000)
		packed := pack(t, c, message)
		for n := 0; n < len(packed); n += 7 {
			c.Decompress(nil, packed[:n], 1<<20)
			if got, err := c.Decompress(nil, packed, 1<<20); err != nil || !bytes.Equal(got, message) {
				t.Fatalf("after %d bytes: %v", n, err)
			}
		}
	})
}
