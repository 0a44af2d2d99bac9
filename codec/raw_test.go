package codec_test

import (
	"testing"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/internal/benchpb"
)

type namedBytes []byte

func TestRawConformance(t *testing.T) {
	text, long := []byte("some bytes"), make([]byte, 5000)
	codectest.Run(t, codectest.Suite{
		Codec:   codec.Raw{},
		Values:  []any{&text, &long},
		Misfits: []any{new(string), new(namedBytes), &struct{ A int }{1}, "text"},
	})
}

func TestRawAppendTakesASlice(t *testing.T) {
	out, err := codec.Raw{}.Append([]byte("a"), []byte("b"))
	if err != nil || string(out) != "ab" {
		t.Errorf("Append = %q, %v", out, err)
	}
}

func TestRawReusesMemory(t *testing.T) {
	v := make([]byte, 3, 64)
	first := &v[0]
	if err := (codec.Raw{}).Unmarshal([]byte("longer than before"), &v); err != nil {
		t.Fatal(err)
	}
	if string(v) != "longer than before" || &v[0] != first {
		t.Errorf("got %q, in new memory: %v", v, &v[0] != first)
	}
}

// serialized returns the encoded message of the benchmark workload.
func serialized(t testing.TB) []byte {
	data, err := benchpb.Filled().MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRawAllocations(t *testing.T) {
	data := serialized(t)
	codectest.Ceiling(t, codec.Raw{}, &data, 0, 2)
}

func BenchmarkRaw(b *testing.B) {
	data := serialized(b)
	codectest.Bench(b, codec.Raw{}, &data)
}

var (
	_ codec.Fitter = codec.Raw{}
	_ codec.Fitter = codec.Binary{}
	_ codec.Fitter = (*codec.JSON)(nil)
)
