package typejson_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/structpb"    // imported by the descriptors
	_ "google.golang.org/protobuf/types/known/timestamppb" // the same

	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/gocontract"
	"github.com/anser-rpc/anser/contract/protocontract"
	"github.com/anser-rpc/anser/protocols/internal/typejson"
)

type node struct {
	I8    int8
	I64   int64
	U32   uint32
	U64   uint64 `json:"u64,string"`
	F32   float32
	F64   float64
	Text  string
	Bytes []byte
	Yes   bool
	When  time.Time
	Maybe *int
	Next  *node
	All   []node
	Times []*time.Time
	Keys  map[string]node
	Ids   map[int64]string
	Any   any
	Anys  []any
}

// descriptor returns that of a Go type.
func descriptor(t testing.TB, of reflect.Type) protoreflect.MessageDescriptor {
	t.Helper()
	s := &contract.Schema{Kind: contract.Go}
	name := gocontract.Message(s, of)
	s.Services = []contract.Service{{Name: "S", Methods: []contract.Method{{Name: "M", Request: name, Reply: name}}}}
	set, err := protocontract.ToFiles(s)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := protodesc.NewFile(set.File[0], protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return fd.Services().Get(0).Methods().Get(0).Input()
}

// What Go writes is read, and what is written from it is read by Go.
func TestJSONOfGo(t *testing.T) {
	d := descriptor(t, reflect.TypeFor[node]())
	one, now := 1, time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	for _, in := range []node{
		{},
		{
			I8: -8, I64: math.MinInt64, U32: math.MaxUint32, U64: 3, F32: 1.5, F64: 0.1, Text: "\u2028<é>\"", Bytes: []byte{0, 255}, Yes: true,
			When: now, Maybe: &one, Next: &node{Text: "next"}, All: []node{{}, {I64: 1}}, Times: []*time.Time{&now},
			Keys: map[string]node{"": {}, "a\n": {Yes: true}}, Ids: map[int64]string{-1: "x"},
			Any: map[string]any{"a": []any{1.0, nil}}, Anys: []any{nil, "x", 2.0},
		},
	} {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		m := dynamicpb.NewMessage(d)
		if err := typejson.Read(text, m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		back, err := typejson.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		in.U64 = 0 // a number in a string is written as a number
		back = []byte(strings.Replace(string(back), `"u64":3`, `"u64":"0"`, 1))
		var out node
		if err := json.Unmarshal(back, &out); err != nil {
			t.Fatalf("%s: %v", back, err)
		}
		again, _ := json.Marshal(out)
		want, _ := json.Marshal(in)
		// An empty list, map or time cannot be told from none.
		if a, b := simple(again), simple(want); a != b {
			t.Errorf("got  %s\nwant %s", a, b)
		}
	}
}

func simple(text []byte) string {
	return strings.NewReplacer("[]", "null", "{}", "null").Replace(string(text))
}

func TestMistakes(t *testing.T) {
	d := descriptor(t, reflect.TypeFor[node]())
	for _, c := range []struct{ text, want string }{
		{`{"I64": "x"}`, "field i64: "},
		{`{"I8": 3000000000}`, "field i8: "},
		{`{"Text": 1}`, "field text: "},
		{`{"Bytes": "?"}`, "field bytes: "},
		{`{"All": {}}`, "field all: "},
		{`{"Keys": []}`, "field keys: "},
		{`{"Ids": {"x": ""}}`, "field key: "},
		{`{"Next": 1}`, "message Node: "},
		{`[1]`, "1 values for Node, which has 18"},
		{`{`, "message Node: unexpected end of JSON input"},
		{strings.Repeat(`{"Next":`, 2000) + "null" + strings.Repeat("}", 2000), "messages are inside each other"},
	} {
		if err := typejson.Read([]byte(c.text), dynamicpb.NewMessage(d)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s: %v, want %q", c.text, err, c.want)
		}
	}
	m := dynamicpb.NewMessage(d)
	m.Set(d.Fields().ByName("f64"), protoreflect.ValueOfFloat64(math.NaN()))
	if _, err := typejson.Append(nil, m); err == nil || !strings.Contains(err.Error(), "field f64 is NaN") {
		t.Errorf("NaN: %v", err)
	}
}

// FuzzAppend checks that a message of any bytes has JSON of which the same message is read, or an
// error, and that the JSON is valid.
func FuzzAppend(f *testing.F) {
	d := descriptor(f, reflect.TypeFor[node]())
	m := dynamicpb.NewMessage(d)
	text := `{"I8":1,"Text":"x","All":[{"Yes":true}],"Keys":{"k":{}},"Ids":{"4":"y"},"Any":[1,{"a":null}],"Anys":[2],"When":"2026-01-02T03:04:05Z"}`
	if err := typejson.Read([]byte(text), m); err != nil {
		f.Fatal(err)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := dynamicpb.NewMessage(d)
		if protobuf.New().Unmarshal(data, m) != nil { // which does not panic
			return
		}
		text, err := typejson.Append(nil, m)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("%x is written as %q", data, text)
		}
		back := dynamicpb.NewMessage(d)
		if err := typejson.Read(text, back); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := typejson.Append(nil, back)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if third := dynamicpb.NewMessage(d); typejson.Read(again, third) != nil || !proto.Equal(back, third) {
			t.Fatalf("%x is written as %q, and then as %q", data, text, again)
		}
	})
}

// FuzzRead checks that any text is read or refused.
func FuzzRead(f *testing.F) {
	d := descriptor(f, reflect.TypeFor[node]())
	f.Add(`{"I8":1,"Text":"x","All":[{"Yes":true}],"Keys":{"k":{}},"Ids":{"4":"y"},"Any":[1,{"a":null}],"Anys":[2],"When":"2026-01-02T03:04:05Z"}`)
	f.Fuzz(func(t *testing.T, text string) {
		m := dynamicpb.NewMessage(d)
		if typejson.Read([]byte(text), m) != nil {
			return
		}
		if _, err := proto.Marshal(m); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
