package codec_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/internal/benchpb"
)

type document struct {
	Name  string            `json:"name"`
	Bytes []byte            `json:"bytes"`
	Raw   json.RawMessage   `json:"raw"`
	Map   map[string]string `json:"map"`
	List  []document        `json:"list,omitempty"`
	Any   any               `json:"any"`
	Float float64           `json:"float"`
	Small int8              `json:"small"`
	Next  *document         `json:"next,omitempty"`
	At    time.Time         `json:"at"`
}

func newDocument() *document {
	return &document{
		Name: "<a & b> \u2028 \"quoted\" 变", Bytes: []byte("bytes"), Raw: json.RawMessage(`{"r":1}`),
		Map: map[string]string{"k": "v", "\n": "escaped"}, List: []document{{Name: "inner", Raw: json.RawMessage("1")}},
		Any: map[string]any{"x": []any{1.5, "two", nil, true}}, Float: 1e300, Small: -3,
		Next: &document{Raw: json.RawMessage(`""`)}, At: time.Date(2024, 2, 29, 1, 2, 3, 4, time.UTC),
	}
}

// reckless panics on a peer's bytes, but can be encoded.
type reckless struct{ A int }

func (*reckless) UnmarshalJSON(b []byte) error { panic("reckless") }

// generated looks like a protobuf message.
type generated struct{ A int }

func (*generated) ProtoMessage() {}

func nested(open, inner, close string, n int) []byte {
	return []byte(strings.Repeat(open, n) + inner + strings.Repeat(close, n))
}

func TestJSONConformance(t *testing.T) {
	var whatever any = map[string]any{"a": []any{1.0, "x"}}
	plain := benchpb.FilledPlain()
	plain.Field5 = []uint64{1, math.MaxUint64}
	codectest.Run(t, codectest.Suite{
		Codec:   new(codec.JSON),
		Values:  []any{newDocument(), plain, &whatever, &map[string]int{"a": 1}, &[]string{"a"}, new(int)},
		Misfits: []any{new(chan int), new(func()), new(complex128), &generated{1}, make(chan int)},
		Hostile: []codectest.Input{
			{Name: "45 raw bytes to a struct", Data: []byte{0, 1, 2, 3}, Into: &document{}},
			{Name: "46 nothing", Data: nil, Into: &document{}},
			{Name: "49 arrays nested 65 deep", Data: nested("[", "", "]", 65), Into: new(any)},
			{Name: "49 objects nested 65 deep", Data: nested(`{"a":`, "1", "}", 65), Into: new(any)},
			{Name: "49 arrays nested 100,000 deep", Data: nested("[", "", "]", 100000), Into: new(any)},
			{Name: "49 the same never closed", Data: nested("[", "", "", 100000), Into: new(any)},
			{Name: "49 recursive type", Data: nested(`{"next":`, "{}", "}", 100000), Into: &document{}},
			{Name: "52 key twice", Data: []byte(`{"name":"a","name":"b"}`), Into: &document{}},
			{Name: "52 key twice, unknown", Data: []byte(`{"zzz":1,"zzz":2}`), Into: &document{}},
			{Name: "52 NaN", Data: []byte(`{"float":NaN}`), Into: &document{}},
			{Name: "52 Infinity", Data: []byte(`-Infinity`), Into: new(any)},
			{Name: "52 1e999999", Data: []byte(`1e999999`), Into: new(any)},
			{Name: "52 1e999999 into a field", Data: []byte(`{"float":1e999999}`), Into: &document{}},
			{Name: "53 number of 1 MB", Data: nested("9", "", "", 1<<20), Into: new(any)},
			{Name: "53 number of 1 MB for a type that would take it", Data: nested("9", "", "", 1<<20), Into: new(big.Int)},
			{Name: "57 invalid UTF-8", Data: []byte("{\"name\":\"\xff\"}"), Into: &document{}},
			{Name: "57 half a surrogate pair", Data: []byte(`{"name":"\ud800"}`), Into: &document{}},
			{Name: "61 string for a number", Data: []byte(`{"float":"x"}`), Into: &document{}},
			{Name: "61 number out of range", Data: []byte(`{"small":128}`), Into: &document{}},
			{Name: "61 array for an object", Data: []byte(`[]`), Into: &document{}},
			{Name: "62 a method that panics", Data: []byte(`{}`), Into: &reckless{}},
			{Name: "trailing garbage", Data: []byte(`{}{}`), Into: &document{}},
			{Name: "trailing bracket", Data: []byte(`{}]`), Into: &document{}},
		},
	})
}

func TestJSONTakes64Levels(t *testing.T) {
	var v any
	if err := new(codec.JSON).Unmarshal(nested("[", "", "]", codec.MaxJSONDepth), &v); err != nil {
		t.Error(err)
	}
}

func TestJSONWritesPlainText(t *testing.T) {
	v := map[string]string{"a": "<b> & c"}
	out, err := new(codec.JSON).Append([]byte("1"), &v)
	if err != nil || string(out) != `1{"a":"<b> & c"}` {
		t.Errorf("Append = %s, %v", out, err)
	}
}

func TestJSONRefusesWhatHasNoJSON(t *testing.T) {
	c, nan := new(codec.JSON), math.NaN()
	if _, err := c.Append(nil, &nan); err == nil || !strings.Contains(err.Error(), "*float64") {
		t.Errorf("NaN: %v", err)
	}
	type loop struct{ Next *loop }
	l := new(loop)
	l.Next = l
	var unsupported *json.UnsupportedValueError
	if _, err := c.Append(nil, l); !errors.As(err, &unsupported) {
		t.Errorf("a value that contains itself: %v", err)
	}
	// An encoder can be reused after a failure.
	if out, err := c.Append(nil, new(int)); err != nil || string(out) != "0" {
		t.Errorf("Append after a failure = %q, %v", out, err)
	}
}

func TestJSONFits(t *testing.T) {
	type hidden struct {
		_ chan int
		F func() `json:"-"`
	}
	type embedded struct{ hidden }
	type tree struct{ Kids []*tree }
	for _, test := range []struct {
		v    any
		want bool
	}{
		{new(string), true},
		{new(hidden), true},
		{new(embedded), true},
		{new(tree), true},
		{new(any), true},
		{new(time.Time), true},
		{new(big.Int), true},
		{new(map[int8]bool), true},
		{new(map[time.Time]bool), true},
		{new(map[float64]bool), false},
		{new(map[string]func()), false},
		{new(struct{ C chan int }), false},
		{new(struct{ E error }), false},
		{new(struct{ M *generated }), false},
		{new([]generated), false},
		{new([4]complex64), false},
		{new(struct{ hidden *int }), true},
		{struct{}{}, false},
		{"text", false},
	} {
		if got := new(codec.JSON).Fits(test.v); got != test.want {
			t.Errorf("Fits(%T) = %v, want %v", test.v, got, test.want)
		}
	}
}

func TestJSONSaysWhyATypeDoesNotFit(t *testing.T) {
	c := new(codec.JSON)
	for _, test := range []struct {
		v    any
		want string
	}{
		{&struct{ A []func() }{}, "field A[]: there is no JSON for func()"},
		{&struct{ E error }{}, "field E: error is an interface"},
		{&map[complex64]int{}, "keys that are neither text nor integers"},
		{&[]*generated{}, "use the JSON codec of codec/protobuf"},
	} {
		if _, err := c.Append(nil, test.v); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Append(%T) = %v, want %q", test.v, err, test.want)
		}
		if err := c.Unmarshal([]byte("{}"), test.v); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Unmarshal(%T) = %v, want %q", test.v, err, test.want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	c := new(codec.JSON)
	doc, err := c.Append(nil, newDocument())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{doc, nested("[", "", "]", 70), []byte(`{"name":"\ud83d\ude00","name":1}`), []byte(`1e999999`)} {
		f.Add(seed)
	}
	codectest.Fuzz(f, c, &document{}, &benchpb.Plain{}, new(any), new(map[string]json.Number), &reckless{})
}

func TestJSONAllocations(t *testing.T) {
	codectest.Ceiling(t, new(codec.JSON), benchpb.FilledPlain(), 0, 15)
}

func BenchmarkJSON(b *testing.B) {
	codectest.Bench(b, new(codec.JSON), benchpb.FilledPlain())
}
