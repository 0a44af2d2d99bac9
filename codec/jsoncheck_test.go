package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/benchpb"
)

func TestCheckJSON(t *testing.T) {
	many := func(more ...string) string {
		for i := range 100 {
			more = append(more, fmt.Sprintf("k%d", i))
		}
		for i, k := range more {
			more[i] = strconv.Quote(k) + ":1"
		}
		return "{" + strings.Join(more, ",") + "}"
	}
	for _, test := range []struct{ in, want string }{
		{`{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}`, ""},
		{`{"a":1,"b":{"x":{"y":1}},"a":1}`, `"a" twice`},
		{`[{"a":[{"b":1,"c":2,"b":3}]}]`, `"b" twice`},
		{`{"":1,"":2}`, `"" twice`},
		{`{"a":1,"\u0061":2}`, `"a" twice`},
		{`{"\n":1,"\u000A":2}`, `twice`},
		{`{"/":1,"\/":2}`, `twice`},
		{`{"😀":1,"\uD83D\ude00":2}`, `twice`},
		{`{"a" : 1, "a"	: 2}`, `"a" twice`},
		{`{"a":"b","b":"a","c":"b"}`, ""},
		{`{"a":1,"A":2}`, ""},
		{many(), ""},
		{many("k50"), `"k50" twice`},
		{strings.Repeat("1", 512), ""},
		{"-" + strings.Repeat("1", 512), "513 characters"},
		{`{"n":` + strings.Repeat("1", 600) + `}`, "600 characters"},
		{`"` + strings.Repeat("1", 600) + `"`, ""},
		{`"\uD83D\uDE00"`, ""},
		{`"\uD83D"`, "surrogate"},
		{`"\uDE00\uD83D"`, "surrogate"},
		{`"\uD83Dx\uDE00"`, "surrogate"},
		{`"\uD83D\u0041"`, "surrogate"},
		{`"\u00"`, "escape"},
		{`"\u00zz"`, "escape"},
		{`"\`, "escape"},
		{`"abc`, "inside a string"},
		{`"abc\"`, "inside a string"},
		{"\"\xc3\"", "UTF-8"},
		{"]", "unmatched"},
		{"", ""},
	} {
		err := codec.CheckJSON([]byte(test.in))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("CheckJSON(%.80s) = %v, want %q", test.in, err, test.want)
		}
	}
}

func TestCheckJSONAllocatesNothing(t *testing.T) {
	data, err := new(codec.JSON).Append(nil, &map[string]any{"a": 1, "b": []any{"c", map[string]any{"d": 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { err = codec.CheckJSON(data) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

// FuzzCheckJSON compares the keys with the result of encoding/json.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":1,"\u0061":2}`, `{"a":{"b":1},"b":["a","a",{"c":{}}]}`, `{"\"\\\/\b\f\n\r\t":"\ud83d\ude00"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := codec.CheckJSON(data)
		if err != nil && !strings.Contains(err.Error(), "twice") || !json.Valid(data) {
			return
		}
		if twice := keyTwice(t, json.NewDecoder(bytes.NewReader(data))); twice != (err != nil) {
			t.Errorf("a key occurs twice: %v, but CheckJSON says %v", twice, err)
		}
	})
}

// keyTwice reads tokens until the end and reports whether an object has a key twice.
func keyTwice(t *testing.T, d *json.Decoder) bool {
	type level struct {
		keys map[string]bool // nil for an array
		key  bool            // the next token is a key
	}
	d.UseNumber() // of any size
	var open []level
	twice := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return twice
		}
		if err != nil {
			t.Fatalf("json.Valid accepts a token that the decoder does not: %v", err)
		}
		if end, ok := token.(json.Delim); ok && (end == '}' || end == ']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 && open[n-1].keys != nil {
			l := &open[n-1]
			if l.key {
				k := token.(string)
				twice = twice || l.keys[k]
				l.keys[k] = true
			}
			l.key = !l.key
			if !l.key {
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{keys: map[string]bool{}, key: true})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}

func BenchmarkCheckJSON(b *testing.B) {
	data, err := new(codec.JSON).Append(nil, benchpb.FilledPlain())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := codec.CheckJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}
