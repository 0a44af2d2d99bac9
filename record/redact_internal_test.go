package record

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

type card struct {
	Number string `json:"number" anser:"secret"`
	Month  int
}

type user struct {
	Name     string
	Password string `json:"password"`
	Cards    []card
	ByName   map[string]*card
	Friend   *user
	card
}

func TestRedact(t *testing.T) {
	h := newHider([]string{"pin", "address.street"}, []string{"Page-Token"})
	for _, test := range []struct{ name, in, want, paths string }{
		{"plain", `{"A": 7, "b":[1, "x" ,{}], "c": null}`, `{"A":7,"b":[1,"x",{}],"c":null}`, ""},
		{
			"names", `{"password":"x","API_KEY":"k","accessToken":"t","Set-Cookie":"c"}`,
			`{"password":"redacted","API_KEY":"redacted","accessToken":"redacted","Set-Cookie":"redacted"}`,
			"m.password m.API_KEY m.accessToken m.Set-Cookie",
		},
		{
			"option", `{"PIN":1234,"pins":1,"address":{"street":"s","town":"t"},"street":"s"}`,
			`{"PIN":0,"pins":1,"address":{"street":"redacted","town":"t"},"street":"s"}`, "m.PIN m.address.street",
		},
		{"public", `{"page_token":"next","token":"x"}`, `{"page_token":"next","token":"redacted"}`, "m.token"},
		{
			"types", `{"secret":{"a":"x","b":[1,2],"c":{"d":true,"e":null,"f":1.5}},"token":"-12","tokens":["x"],"passwd":""}`,
			`{"secret":{"a":"redacted","b":[],"c":{"d":false,"e":null,"f":0}},"token":"0","tokens":[],"passwd":""}`,
			"m.secret m.token m.tokens m.passwd",
		},
		{"empty", `{"secret":null}`, `{"secret":null}`, ""},
		{"array", `[{"token":"a"},{"token":"b"}]`, `[{"token":"redacted"},{"token":"redacted"}]`, "m[*].token"},
		{"escapes", `{"\u0070assword":"a\"b","x\"":"\\","y":"{\"token\":1}"}`, `{"\u0070assword":"redacted","x\"":"\\","y":"{\"token\":1}"}`, "m.password"},
		{"scalar", ` "password" `, `"password"`, ""},
	} {
		var paths []string
		got := h.redact([]byte(test.in), nil, "m", &paths)
		if string(got) != test.want || strings.Join(paths, " ") != test.paths {
			t.Errorf("%s: %s\n%s, want\n%s, %s", test.name, got, paths, test.want, test.paths)
		}
	}
}

func TestRedactByTag(t *testing.T) {
	text, err := json.Marshal(&user{
		Name: "n", Password: "p", Cards: []card{{"1", 2}}, ByName: map[string]*card{"k": {"3", 4}},
		Friend: &user{card: card{"five", 6}}, card: card{"7", 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	got := newHider(nil, nil).redact(text, goSchemas{}.of(reflect.TypeFor[*user]()), "m", &paths)
	want := `{"Name":"n","password":"redacted","Cards":[{"number":"0","Month":2}],"ByName":{"k":{"number":"0","Month":4}},` +
		`"Friend":{"Name":"","password":"","Cards":null,"ByName":null,"Friend":null,"number":"redacted","Month":6},"number":"0","Month":8}`
	if string(got) != want {
		t.Errorf("%s, want\n%s\n%s", got, want, paths)
	}
}

type loop *loop

func TestSchemaOfOddTypes(t *testing.T) {
	type tree struct {
		Left, Right *tree
		*card
	}
	for _, of := range []reflect.Type{reflect.TypeFor[loop](), reflect.TypeFor[tree](), reflect.TypeFor[[]any](), reflect.TypeFor[func()]()} {
		goSchemas{}.of(of)
	}
}

// Whatever valid JSON comes, what goes out is valid, and contains no secret.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{`{"token":[{"a":"hidden"}],"b":"hidde\u006e"}`, `[[],{},"x",{"password":{"x":{"y":"hidden"}}}]`, `{"":{"secret":true}}`} {
		f.Add([]byte(s))
	}
	h := newHider(nil, nil)
	f.Fuzz(func(t *testing.T, in []byte) {
		if !json.Valid(in) {
			return
		}
		var paths []string
		out := h.redact(in, nil, "m", &paths)
		var before, after any
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		if json.Unmarshal(in, &before) != nil {
			return
		}
		if len(paths) == 0 && !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", in, out)
		}
		checkHidden(t, h, after)
	})
}

func checkHidden(t *testing.T, h *hider, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if h.hides(name, "") {
				checkMasked(t, value)
			} else {
				checkHidden(t, h, value)
			}
		}
	case []any:
		for _, value := range v {
			checkHidden(t, h, value)
		}
	}
}

func checkMasked(t *testing.T, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			checkMasked(t, value)
		}
	case []any:
		if len(v) > 0 {
			t.Fatalf("%v is not hidden", v)
		}
	case string:
		if v != "redacted" && v != "0" && v != "" {
			t.Fatalf("%q is not hidden", v)
		}
	case float64:
		if v != 0 {
			t.Fatalf("%v is not hidden", v)
		}
	case bool:
		if v {
			t.Fatal("true is not hidden")
		}
	}
}

func BenchmarkRedact(b *testing.B) {
	text := []byte(`{"Name":"n","password":"p","Cards":[{"number":"1","Month":2}],"Text":"` + strings.Repeat("x", rand.IntN(10)+500) + `"}`)
	h := newHider(nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		var paths []string
		h.redact(text, nil, "m", &paths)
	}
}
