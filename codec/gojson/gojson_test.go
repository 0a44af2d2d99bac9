package gojson_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/gojson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type document struct {
	Name   string            `json:"name"`
	Bytes  []byte            `json:"bytes"`
	Raw    json.RawMessage   `json:"raw"`
	Map    map[string]string `json:"map"`
	List   []document        `json:"list,omitempty"`
	Any    any               `json:"any"`
	Float  float64           `json:"float"`
	Small  int8              `json:"small"`
	Next   *document         `json:"next,omitempty"`
	At     time.Time         `json:"at"`
	Quoted int               `json:"quoted,string"`
	Pair   [2]int            `json:"pair"`
	Large  uint64            `json:"large"`
}

func newDocument() *document {
	return &document{
		Name: "<a & b> \u2028 \"quoted\" 变", Bytes: []byte("bytes"), Raw: json.RawMessage(`{"r":1}`), Map: map[string]string{"k": "v", "\n": "escaped"},
		List: []document{{Name: "inner", Raw: json.RawMessage("1")}}, Any: map[string]any{"x": []any{1.5, "two", nil, true}}, Float: 1e300, Small: -3,
		Next: &document{Raw: json.RawMessage(`""`)}, At: time.Date(2024, 2, 29, 1, 2, 3, 4, time.UTC), Quoted: 7, Pair: [2]int{1, 2}, Large: 1<<64 - 1,
	}
}

type reckless struct{ A int }

func (*reckless) UnmarshalJSON([]byte) error { panic("reckless") }

type generated struct{ A int }

func (*generated) ProtoMessage() {}

func nested(open, inner, end string, n int) []byte {
	return []byte(strings.Repeat(open, n) + inner + strings.Repeat(end, n))
}

func hostile() []codectest.Input {
	in := func(name, data string, into any) codectest.Input {
		return codectest.Input{Name: name, Data: []byte(data), Into: into}
	}
	return []codectest.Input{
		in("45 raw bytes to a struct", "\x00\x01\x02\x03", &document{}),
		in("46 nothing", "", &document{}),
		{Name: "49 arrays nested 65 deep", Data: nested("[", "", "]", 65), Into: new(any)},
		{Name: "49 arrays nested 100,000 deep", Data: nested("[", "", "]", 100000), Into: new(any)},
		{Name: "49 the same never closed", Data: nested("[", "", "", 100000), Into: new(any)},
		{Name: "49 recursive type", Data: nested(`{"next":`, "{}", "}", 100000), Into: &document{}},
		in("52 key twice", `{"name":"a","name":"b"}`, &document{}),
		in("52 key twice, escaped", `{"name":"a","n\u0061me":"b"}`, &document{}),
		in("52 NaN", `{"float":NaN}`, &document{}),
		in("52 Infinity", `-Infinity`, new(any)),
		in("52 1e999999", `1e999999`, new(any)),
		in("52 1e999999 into a field", `{"float":1e999999}`, &document{}),
		{Name: "53 number of 1 MB", Data: nested("9", "", "", 1<<20), Into: new(any)},
		{Name: "53 number of 1 MB for a type that would take it", Data: nested("9", "", "", 1<<20), Into: new(big.Int)},
		in("57 invalid UTF-8", "{\"name\":\"\xff\"}", &document{}),
		in("57 half a surrogate pair", `{"name":"\ud800"}`, &document{}),
		in("61 string for a number", `{"float":"x"}`, &document{}),
		in("61 number out of range", `{"small":128}`, &document{}),
		in("61 array for an object", `[]`, &document{}),
		in("62 a method that panics", `{}`, &reckless{}),
		in("trailing garbage", `{}{}`, &document{}),
		in("trailing bracket", `{}]`, &document{}),
	}
}

func TestConformance(t *testing.T) {
	codectest.Run(t, codectest.Suite{
		Codec:   gojson.New(),
		Values:  []any{newDocument(), &map[string]int{"a": 1}, &[]string{"a"}, new(int)},
		Misfits: []any{new(chan int), new(func()), new(complex128), &generated{1}, make(chan int)},
		Hostile: hostile(),
	})
	if c := gojson.New(); c.ID() != codec.JSONID || c.Name() != "json" {
		t.Error(c.ID(), c.Name())
	}
}

// odd are inputs for which JSON decoders differ.
var odd = []string{
	`{"small":1.5}`, `{"small":"1"}`, `{"name":1}`, `{"name":null}`, `{"pair":[1,2,3]}`, `{"pair":[1]}`, `{"large":-1}`, `{"large":18446744073709551616}`,
	`{"small":1e2}`, `{"small":01}`, `{"small":-}`, `{"float":1.}`, `{"float":.5}`, `{"float":+1}`, `{"float":1e}`, `{"any":tru}`, `{"any":[1,]}`, `{"any":{"a":1,}}`,
	`{"any":[1 2]}`, `{"any":"\x"}`, "{\"name\":\"a\nb\"}", `{"name":"\u12"}`, `{"Name":"case"}`, `{"NAME":"case"}`, `{} x`, `{"bytes":"!!"}`, `{"at":"x"}`,
	`{"quoted":5}`, `{"quoted":"5"}`, `{"quoted":"x"}`, `{"map":{"a":1}}`, `{"unknown":[}`, `{"unknown":tru}`, `{"unknown":01}`, "{\"unknown\":\"\n\"}", `{"unknown":1.}`,
	`{"raw":[1,}`, `{"raw":01}`, ` `, `{"name"}`, `{"name":}`, `{,}`, `{"name":"a",}`, "\x00{}", "{\"small\":\x001}", "{}\x00", "{}\x00\x00x", "{\"name\":\"a\x00b\"}",
	`{"any":-}`, `{"any":1-2}`, `{"unknown":1-2}`, `{"any":"a" "b"}`, `{"a":1 "b":2}`, `{"unknown":truex}`,
}

// same fails if the two codecs disagree about the validity or the value of data.
func same(t *testing.T, data []byte) {
	t.Helper()
	for _, into := range []any{&document{}, new(any)} {
		a, b := reflect.New(reflect.TypeOf(into).Elem()).Interface(), reflect.New(reflect.TypeOf(into).Elem()).Interface()
		ours, standard := gojson.New().Unmarshal(data, a), new(codec.JSON).Unmarshal(data, b)
		if (ours == nil) != (standard == nil) || ours == nil && !reflect.DeepEqual(a, b) {
			t.Errorf("%q into %T: %v, the standard codec %v\n%+v\n%+v", data, into, ours, standard, a, b)
		}
	}
}

func TestSameAsStandard(t *testing.T) {
	for _, in := range odd {
		same(t, []byte(in))
	}
	for _, v := range []any{newDocument(), new("\xff <>&\u2028"), &map[string]float64{"b": 1e21, "a": 1e-7}, new(any), &[]byte{}} {
		ours, err := gojson.New().Append(nil, v)
		standard, err2 := new(codec.JSON).Append(nil, v)
		if err != nil || err2 != nil || string(ours) != string(standard) {
			t.Errorf("%T: %s, %v, the standard codec %s, %v", v, ours, err, standard, err2)
		}
	}
}

type tree struct{ Kids []*tree }

func TestAppendRefusesWhatContainsItself(t *testing.T) {
	kid := &tree{}
	kid.Kids = []*tree{{}, kid}
	m := map[string]any{}
	m["m"] = m
	for _, v := range []any{kid, &m} {
		if _, err := gojson.New().Append(nil, v); err == nil {
			t.Errorf("Append(%T): no error", v)
		}
	}
}

func FuzzSameAsStandard(f *testing.F) {
	for _, in := range odd {
		f.Add([]byte(in))
	}
	f.Fuzz(same)
}

func FuzzUnmarshal(f *testing.F) {
	data, err := gojson.New().Append(nil, newDocument())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	codectest.Fuzz(f, gojson.New(), &document{}, new(any), new(map[string]json.Number), &reckless{})
}

func BenchmarkPlain(b *testing.B) { codectest.Bench(b, gojson.New(), newDocument()) }
