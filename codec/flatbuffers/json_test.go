package flatbuffers_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/flatbuffers"
	"github.com/anser-rpc/anser/codec/flatbuffers/internal/testfb"
)

func schema(t testing.TB) *flatbuffers.Schema {
	s, err := flatbuffers.ParseSchema(testfb.Schema)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// personJSON is what flatc 25.12.19 makes of the same buffer with --json --strict-json, but for
// blanks and for "1.0" in place of 1.
const personJSON = `{"name":"变","age":-7,"photo":[112,104,111,116,111,255],"names":["a","b"],"scores":[1,-1152921504606846976],` +
	`"path":[{"x":1,"y":2},{"x":3,"y":0}],"home":{"street":"Main","number":5},` +
	`"friends":[{"name":"Bob","age":0,"color":"Blue"},` +
	`{"name":"Cem","age":0,"thing_type":"Person","thing":{"name":"Dee","age":0,"color":0},"color":0}],` +
	`"thing_type":"Address","thing":{"street":"Side"},"color":"Blue","at":{"x":5,"y":0},"happy":true}`

func TestJSON(t *testing.T) {
	s := schema(t)
	out, err := s.ToJSON([]byte("> "), "testfb.Person", table().Table().Bytes)
	if err != nil || string(out) != "> "+personJSON {
		t.Fatalf("%s, %v", out, err)
	}
	data, err := s.FromJSON("testfb.Person", []byte(personJSON))
	if err != nil {
		t.Fatal(err)
	}
	got := new(testfb.Person)
	if err := newCodec(t).Unmarshal(data, got); err != nil || !equal(got, object()) {
		t.Errorf("%v, %v", read(got), err)
	}
}

// What is absent has its default, as in a buffer; names and numbers are also taken in other forms.
func TestJSONForms(t *testing.T) {
	s := schema(t)
	for text, want := range map[string]string{
		`{}`: `{}`,
		`{"age": 18, "color": "Red", "happy": false, "unknown": [{}]}`:     `{}`,
		`{"age": "-3", "color": "2", "name": null, "happy": 1}`:            `{"age":-3,"color":"Blue","happy":true}`,
		`{"at": {"x": "nan", "y": "-inf"}, "name": "a\"\\\n\u0001\u2028"}`: `{"name":"a\"\\\n\u0001\u2028","at":{"x":"nan","y":"-inf"}}`,
		`{"thing_type": "Address", "thing": {"street": ""}, "names": []}`:  `{"names":[],"thing_type":"Address","thing":{"street":""}}`,
	} {
		data, err := s.FromJSON("testfb.Person", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want = strings.ReplaceAll(want, `\u2028`, "\u2028")
		if out, err := s.ToJSON(nil, "testfb.Person", data); err != nil || string(out) != want {
			t.Errorf("%s: %s, %v, want %s", text, out, err, want)
		}
	}
}

func TestJSONMistakes(t *testing.T) {
	s := schema(t)
	for text, want := range map[string]string{
		``:                      "EOF",
		`{} {}`:                 "behind the JSON text",
		`[]`:                    "it is an array: want an object for table testfb.Person",
		`{"age": "x"}`:          `age: "x" is not an int`,
		`{"age": 2147483648}`:   `age: "2147483648" is not an int`,
		`{"age": 1.5}`:          `age: "1.5" is not an int`,
		`{"name": 5}`:           "name: it is a number: want a text",
		`{"photo": [1, 256]}`:   `photo: [1]: "256" is not a ubyte`,
		`{"color": "Pink"}`:     `color: "Pink" is not a value of testfb.Color: it has`,
		`{"home": {}}`:          "home: street: it is required but missing",
		`{"thing": {}}`:         "the member thing_type is missing: it is one of",
		`{"path": [{"x": []}]}`: "path: [0]: x: it is an array: want a number",
		strings.Repeat(`{"friends":[`, 70) + strings.Repeat(`]}`, 70): "deeper than 64",
	} {
		_, err := s.FromJSON("testfb.Person", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
	if _, err := s.FromJSON("testfb.None", []byte(`{}`)); err == nil {
		t.Error("a table that is not there was taken")
	}
	if _, err := s.ToJSON(nil, "testfb.Person", []byte("some text that is not a table")); err == nil {
		t.Error("some text was taken")
	}
}

func FuzzJSON(f *testing.F) {
	s := schema(f)
	f.Add([]byte(personJSON))
	f.Fuzz(func(t *testing.T, text []byte) {
		data, err := s.FromJSON("testfb.Person", text)
		if err != nil {
			return
		}
		out, err := s.ToJSON(nil, "testfb.Person", data)
		if err != nil {
			t.Fatalf("what was built is refused: %v", err)
		}
		again, err := s.FromJSON("testfb.Person", out)
		if err != nil {
			t.Fatalf("%s is refused: %v", out, err)
		}
		if back, err := s.ToJSON(nil, "testfb.Person", again); err != nil || !bytes.Equal(back, out) {
			t.Fatalf("%s came back as %s, %v", out, back, err)
		}
	})
}
