package protobuf_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/codec/protobuf/internal/testpb"
	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func nested(open, inner, close string, n int) []byte {
	return []byte(strings.Repeat(open, n) + inner + strings.Repeat(close, n))
}

// jsonEqual compares plain values by their JSON.
func jsonEqual(a, b any) bool {
	if _, ok := a.(proto.Message); ok {
		return equal(a, b)
	}
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}

func TestJSONConformance(t *testing.T) {
	texts, numbers := newTexts(), newNumbers()
	type plain struct {
		A int
		B []byte
	}
	value, err := structpb.NewValue(map[string]any{"a": []any{1, nil}})
	if err != nil {
		t.Fatal(err)
	}
	codectest.Run(t, codectest.Suite{
		Codec:   protobuf.NewJSON(),
		Values:  []any{benchpb.Filled(), texts, numbers, newTree(5), value, &plain{1, []byte("b")}, &map[string]any{"x": 1.5}},
		Misfits: []any{new(chan int), new(struct{ M *testpb.Tree }), new([]*testpb.Tree)},
		Equal:   jsonEqual,
		Hostile: []codectest.Input{
			{Name: "45 raw bytes", Data: []byte{1, 2, 3}, Into: &testpb.Texts{}},
			{Name: "46 nothing", Data: nil, Into: &testpb.Texts{}},
			{Name: "46 required fields missing", Data: []byte("{}"), Into: &testpb.Legacy{}},
			{Name: "49 100,000 levels", Data: nested("[", "", "]", 100000), Into: &structpb.Value{}},
			{Name: "49 65 levels in what is ignored", Data: []byte(`{"zzz":` + string(nested("[", "", "]", 65)) + `}`), Into: &testpb.Texts{}},
			{Name: "49 recursive message", Data: nested(`{"kids":[`, "{}", "]}", 100000), Into: &testpb.Tree{}},
			{Name: "52 key twice", Data: []byte(`{"one":"a","one":"b"}`), Into: &testpb.Texts{}},
			{Name: "52 key twice in what is ignored", Data: []byte(`{"zzz":{"a":1,"a":1}}`), Into: &testpb.Texts{}},
			{Name: "52 NaN without quotes", Data: []byte(`{"c":NaN}`), Into: &testpb.Numbers{}},
			{Name: "52 1e999999 for a double", Data: []byte(`{"c":1e999999}`), Into: &testpb.Numbers{}},
			{Name: "52 1e999999 for an integer", Data: []byte(`{"a":1e999999}`), Into: &testpb.Numbers{}},
			{Name: "52 1e999999999999 for an integer", Data: []byte(`{"b":[1e999999999999]}`), Into: &testpb.Numbers{}},
			{Name: "53 number of 1 MB", Data: []byte(`{"a":` + strings.Repeat("1", 1<<20) + `}`), Into: &testpb.Numbers{}},
			{Name: "57 invalid UTF-8", Data: []byte("{\"one\":\"\xff\"}"), Into: &testpb.Texts{}},
			{Name: "61 number for text", Data: []byte(`{"one":1}`), Into: &testpb.Texts{}},
			{Name: "61 list for a message", Data: []byte(`[]`), Into: &testpb.Texts{}},
			{Name: "trailing garbage", Data: []byte(`{}{}`), Into: &testpb.Texts{}},
		},
	})
}

func TestJSONIsProtobufJSON(t *testing.T) {
	c := protobuf.NewJSON()
	out, err := c.Append([]byte("x"), &testpb.Numbers{B: []int64{1}, D: []byte("d")})
	if got := strings.ReplaceAll(string(out), " ", ""); err != nil || got != `x{"b":["1"],"d":"ZA=="}` {
		t.Errorf("Append = %s, %v", got, err)
	}
	m := &testpb.Texts{One: "old"}
	if err := c.Unmarshal([]byte(`{"maybe":"x","notThere":{"a":[1]}}`), m); err != nil || m.GetMaybe() != "x" || m.One != "" {
		t.Errorf("Unmarshal = %v, %v", m, err)
	}
}

func TestJSONRefusesMessagesWithoutUTF8(t *testing.T) {
	if _, err := protobuf.NewJSON().Append(nil, &testpb.Texts{One: "\xff"}); err == nil {
		t.Error("no error")
	}
}

// TestPlainJSONRefusesMessages checks codec.JSON with generated types.
func TestPlainJSONRefusesMessages(t *testing.T) {
	var c codec.JSON
	if _, err := c.Append(nil, &testpb.Texts{}); err == nil || !strings.Contains(err.Error(), "codec/protobuf") {
		t.Error(err)
	}
	if c.Fits(new(testpb.Texts)) {
		t.Error("Fits is true")
	}
}

func FuzzJSON(f *testing.F) {
	c := protobuf.NewJSON()
	for _, v := range []any{benchpb.Filled(), newTexts(), newNumbers(), newTree(3)} {
		data, err := c.Append(nil, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	codectest.Fuzz(f, c, &testpb.Texts{}, &testpb.Numbers{}, &testpb.Tree{}, &testpb.Stamped{}, &structpb.Value{}, new(any))
}

func BenchmarkJSON(b *testing.B) { codectest.Bench(b, protobuf.NewJSON(), benchpb.Filled()) }
