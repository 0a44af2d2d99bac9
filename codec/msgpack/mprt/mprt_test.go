package mprt_test

import (
	"math"
	"testing"

	"github.com/anser-rpc/anser/codec/msgpack/mprt"
)

// written returns a reader of what f writes.
func written(f func(w *mprt.Writer)) mprt.Reader {
	var w mprt.Writer
	f(&w)
	return mprt.NewReader(w.B)
}

// What is appended is read again, at the borders of every form.
func TestNumbers(t *testing.T) {
	for _, n := range []int64{
		0, 1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64,
		-1, -32, -33, math.MinInt8, math.MinInt8 - 1, math.MinInt16, math.MinInt16 - 1, math.MinInt32, math.MinInt32 - 1, math.MinInt64,
	} {
		r := written(func(w *mprt.Writer) { w.Int(n) })
		if got := r.Int(); got != n || r.Unusual() || r.Len() != 0 {
			t.Errorf("%d is read as %d", n, got)
		}
		r = written(func(w *mprt.Writer) { w.Uint(uint64(n)) })
		if got := r.Uint(); got != uint64(n) || r.Unusual() || r.Len() != 0 {
			t.Errorf("%d is read as %d", uint64(n), got)
		}
	}
	for _, n := range []float64{0, 1.5, math.Inf(-1), math.MaxFloat64} {
		r := written(func(w *mprt.Writer) { w.Float32(float32(n)); w.Float64(n) })
		if a, b := r.Float32(), r.Float64(); a != float32(n) || b != n || r.Unusual() {
			t.Errorf("%v is read as %v and %v", n, a, b)
		}
	}
}

// A Reader ends at the end of the data, whatever a length says.
func TestLengthsBehindTheData(t *testing.T) {
	for _, data := range []string{
		"", "\x8f", "\xde\xff\xff", "\xdf\xff\xff\xff\xff", "\x9f", "\xdc\xff\xff", "\xdd\xff\xff\xff\xff",
		"\xbf", "\xd9\xff", "\xda\xff\xff", "\xdb\xff\xff\xff\xff", "\xc4\xff", "\xc5\xff\xff", "\xc6\xff\xff\xff\xff", "\xcf\x00", "\xcb\x00", "\xca", "\xc7\xff",
	} {
		for name, read := range map[string]func(r *mprt.Reader){
			"Map": func(r *mprt.Reader) { r.Map() }, "Array": func(r *mprt.Reader) { r.Array() }, "String": func(r *mprt.Reader) { _ = r.String() },
			"Bytes": func(r *mprt.Reader) { r.Bytes(nil) }, "Int": func(r *mprt.Reader) { r.Int() }, "Float64": func(r *mprt.Reader) { r.Float64() },
			"Float32": func(r *mprt.Reader) { r.Float32() }, "Skip": func(r *mprt.Reader) { r.Skip(nil) }, "Bool": func(r *mprt.Reader) { r.Bool() },
		} {
			r := mprt.NewReader([]byte(data))
			if read(&r); !r.Unusual() {
				t.Errorf("%s of %x is taken", name, data)
			}
		}
	}
}
