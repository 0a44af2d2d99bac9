package transcode_test

import (
	"net/url"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/protocols/internal/transcode"
)

// file has a message Query with a field of each kind.
const file = `name: "query.proto" package: "test" syntax: "proto3"
dependency: "google/protobuf/duration.proto" dependency: "google/protobuf/wrappers.proto" dependency: "google/protobuf/struct.proto"
enum_type { name: "Color" value { name: "NONE" number: 0 } value { name: "RED" number: 1 } }
message_type { name: "Query"
  field { name: "name" json_name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "page_size" json_name: "pageSize" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
  field { name: "big" json_name: "big" number: 3 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "ratio" json_name: "ratio" number: 4 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "yes" json_name: "yes" number: 5 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "raw" json_name: "raw" number: 6 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "color" json_name: "color" number: 7 type: TYPE_ENUM type_name: ".test.Color" label: LABEL_OPTIONAL }
  field { name: "tags" json_name: "tags" number: 8 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "inner" json_name: "inner" number: 9 type: TYPE_MESSAGE type_name: ".test.Query" label: LABEL_OPTIONAL }
  field { name: "wait" json_name: "wait" number: 10 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL }
  field { name: "maybe" json_name: "maybe" number: 11 type: TYPE_MESSAGE type_name: ".google.protobuf.BoolValue" label: LABEL_OPTIONAL }
  field { name: "count" json_name: "count" number: 12 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" label: LABEL_OPTIONAL }
  field { name: "left" json_name: "left" number: 13 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "right" json_name: "right" number: 14 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "many" json_name: "many" number: 15 type: TYPE_MESSAGE type_name: ".test.Query" label: LABEL_REPEATED }
  field { name: "free" json_name: "free" number: 16 type: TYPE_MESSAGE type_name: ".google.protobuf.Struct" label: LABEL_OPTIONAL }
  field { name: "waits" json_name: "waits" number: 17 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_REPEATED }
  oneof_decl { name: "side" }
}`

func query(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	fd := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal([]byte(file), fd); err != nil {
		t.Fatal(err)
	}
	_, _, _ = new(durationpb.Duration), new(wrapperspb.BoolValue), new(structpb.Struct) // in GlobalFiles
	made, err := protodesc.NewFile(fd, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return made.Messages().ByName("Query")
}

var text = protobuf.NewJSON()

// Path, query and body set the fields that they name, and nothing else.
func TestFill(t *testing.T) {
	m := query(t)
	for name, row := range map[string]struct {
		rule       transcode.Rule
		path, body string
		query      string
		want       string // the message in JSON, or "! " with a part of the error
	}{
		"path":                  {transcode.Rule{Template: "/q/{name}"}, "/q/a%20b", "", "", `{"name":"a b"}`},
		"path, nested":          {transcode.Rule{Template: "/q/{inner.inner.page_size}"}, "/q/7", "", "", `{"inner":{"inner":{"pageSize":7}}}`},
		"path, bad number":      {transcode.Rule{Template: "/q/{page_size}"}, "/q/x", "", "", `! page_size: it is not a number`},
		"path, number too big":  {transcode.Rule{Template: "/q/{page_size}"}, "/q/2147483648", "", "", `! page_size`},
		"path, enum":            {transcode.Rule{Template: "/q/{color}"}, "/q/RED", "", "", `{"color":"RED"}`},
		"path, duration":        {transcode.Rule{Template: "/q/{wait}"}, "/q/1.5s", "", "", `{"wait":"1.500s"}`},
		"path over body":        {transcode.Rule{Template: "/q/{name}", Body: "*"}, "/q/path", `{"name":"body","yes":true}`, "", `{"name":"path","yes":true}`},
		"body, field":           {transcode.Rule{Template: "/q/{name}", Body: "inner"}, "/q/x", `{"name":"y"}`, "pageSize=3", `{"name":"x","pageSize":3,"inner":{"name":"y"}}`},
		"path over body field":  {transcode.Rule{Template: "/q/{inner.name}", Body: "inner"}, "/q/x", `{"name":"y","yes":true}`, "", `{"inner":{"name":"x","yes":true}}`},
		"body, scalar":          {transcode.Rule{Template: "/q", Body: "page_size"}, "/q", `5`, "", `{"pageSize":5}`},
		"body, list":            {transcode.Rule{Template: "/q", Body: "tags"}, "/q", `["a","b"]`, "", `{"tags":["a","b"]}`},
		"body breaks out":       {transcode.Rule{Template: "/q", Body: "page_size"}, "/q", `5,"name":"x"`, "", `! no JSON`},
		"body, empty":           {transcode.Rule{Template: "/q", Body: "*"}, "/q", ``, "", `{}`},
		"body, bad":             {transcode.Rule{Template: "/q", Body: "*"}, "/q", `{`, "", `! json`},
		"body, twice":           {transcode.Rule{Template: "/q", Body: "*"}, "/q", `{"name":"a","name":"b"}`, "", `! `},
		"body without":          {transcode.Rule{Template: "/q"}, "/q", `{}`, "", `! takes no body`},
		"query":                 {transcode.Rule{Template: "/q"}, "/q", "", "name=a&page_size=2&yes=true&color=1&big=18446744073709551615&ratio=-1e3", `{"name":"a","pageSize":2,"big":"18446744073709551615","ratio":-1000,"yes":true,"color":"RED"}`},
		"query, bytes":          {transcode.Rule{Template: "/q"}, "/q", "", "raw=_-8", `{"raw":"/+8="}`},
		"query, padded":         {transcode.Rule{Template: "/q"}, "/q", "", "raw=" + url.QueryEscape("/+8="), `{"raw":"/+8="}`},
		"query, repeated":       {transcode.Rule{Template: "/q"}, "/q", "", "tags=a&tags=b&tags=", `{"tags":["a","b",""]}`},
		"query, nested":         {transcode.Rule{Template: "/q"}, "/q", "", "inner.name=a&inner.inner.tags=b&inner.inner.tags=c", `{"inner":{"name":"a","inner":{"tags":["b","c"]}}}`},
		"query, wrapper":        {transcode.Rule{Template: "/q"}, "/q", "", "maybe=false&count=9&wait=2s&waits=1s&waits=3s", `{"wait":"2s","maybe":false,"count":"9","waits":["1s","3s"]}`},
		"query, NaN":            {transcode.Rule{Template: "/q"}, "/q", "", "ratio=NaN", `{"ratio":"NaN"}`},
		"query, hexadecimal":    {transcode.Rule{Template: "/q"}, "/q", "", "ratio=0x10", `! ratio`},
		"query, unknown":        {transcode.Rule{Template: "/q"}, "/q", "", "nam=a", `! no field "nam"`},
		"query, case":           {transcode.Rule{Template: "/q"}, "/q", "", "Name=a", `! no field "Name"`},
		"query, twice":          {transcode.Rule{Template: "/q"}, "/q", "", "name=a&name=b", `! occurs 2 times`},
		"query, two names":      {transcode.Rule{Template: "/q"}, "/q", "", "page_size=1&pageSize=2", `! two names`},
		"query, of the path":    {transcode.Rule{Template: "/q/{name}"}, "/q/a", "", "name=b", `! set by the path`},
		"query, of the body":    {transcode.Rule{Template: "/q", Body: "inner"}, "/q", "{}", "inner.name=b", `! set by the body`},
		"query, whole body":     {transcode.Rule{Template: "/q", Body: "*"}, "/q", "{}", "name=b", `! takes no parameters`},
		"query, message":        {transcode.Rule{Template: "/q"}, "/q", "", "inner=1", `! not a value`},
		"query, inside list":    {transcode.Rule{Template: "/q"}, "/q", "", "many.name=1", `! not a message with fields`},
		"query, struct":         {transcode.Rule{Template: "/q"}, "/q", "", "free=1", `! not a value`},
		"query, inside a value": {transcode.Rule{Template: "/q"}, "/q", "", "wait.seconds=1", `! not a message with fields`},
		"query, oneof":          {transcode.Rule{Template: "/q"}, "/q", "", "left=1&right=2", `! exclude each other`},
		"query, bool":           {transcode.Rule{Template: "/q"}, "/q", "", "yes=1", `! neither true nor false`},
		"query, enum":           {transcode.Rule{Template: "/q"}, "/q", "", "color=red", `! not a value of test.Color`},
		"query, no text":        {transcode.Rule{Template: "/q"}, "/q", "", "name=%FF", `! not UTF-8`},
		"query, no base64":      {transcode.Rule{Template: "/q"}, "/q", "", "raw=!", `! not base64`},
		"query, no duration":    {transcode.Rule{Template: "/q"}, "/q", "", "wait=x", `! not a google.protobuf.Duration`},
		"query, deep":           {transcode.Rule{Template: "/q"}, "/q", "", strings.Repeat("inner.", 40) + "name=x", `! no field`},
		"query, empty":          {transcode.Rule{Template: "/q"}, "/q", "", "=1", `! no field ""`},
	} {
		t.Run(name, func(t *testing.T) {
			row.rule.Method = "POST"
			b, err := transcode.Bind(row.rule, m, m)
			if err != nil {
				t.Fatal(err)
			}
			r := new(transcode.Router[int])
			if err := r.Add("POST", b.Template, 0); err != nil {
				t.Fatal(err)
			}
			_, values, ok, _ := r.Match("POST", row.path)
			if !ok {
				t.Fatalf("%s does not match", row.path)
			}
			params, err := url.ParseQuery(row.query)
			if err != nil {
				t.Fatal(err)
			}
			got := dynamicpb.NewMessage(m)
			err = b.Fill(text, got, &transcode.Request{Body: []byte(row.body), Query: params, Values: values})
			if part, fails := strings.CutPrefix(row.want, "! "); fails || err != nil {
				if !fails || err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %v, want %s", err, row.want)
				}
				return
			}
			want := dynamicpb.NewMessage(m)
			if err := protojson.Unmarshal([]byte(row.want), want); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, want) && !strings.Contains(row.want, "NaN") {
				t.Errorf("the message is %v, want %v", got, want)
			}
		})
	}
}

// The answer is the reply or one of its fields, which has a value in any case.
func TestReply(t *testing.T) {
	m := query(t)
	for _, row := range []struct{ field, reply, want string }{
		{"", `{"name":"a"}`, `{"name":"a"}`},
		{"name", `{"name":"a"}`, `"a"`},
		{"name", `{}`, `""`},
		{"tags", `{"tags":["a"]}`, `["a"]`},
		{"tags", `{}`, `[]`},
		{"inner", `{"inner":{"name":"a"}}`, `{"name":"a"}`},
		{"inner", `{}`, `{}`},
		{"left", `{"right":1}`, `0`},
		{"many", `{"many":[{},{"yes":true}]}`, `[{},{"yes":true}]`},
		{"wait", `{"wait":"2s"}`, `"2s"`},
	} {
		b, err := transcode.Bind(transcode.Rule{Method: "GET", Template: "/q", ResponseBody: row.field}, m, m)
		if err != nil {
			t.Fatal(err)
		}
		reply := dynamicpb.NewMessage(m)
		if err := protojson.Unmarshal([]byte(row.reply), reply); err != nil {
			t.Fatal(err)
		}
		got, kind, err := b.Reply(text, reply)
		if err != nil || strings.NewReplacer(" ", "", "\n", "").Replace(string(got)) != row.want || kind != "application/json" {
			t.Errorf("%s of %s is %s, %v, want %s", row.field, row.reply, got, err, row.want)
		}
	}
}

// A rule that does not fit the messages is a mistake of the contract.
func TestBindMistakes(t *testing.T) {
	m := query(t)
	for part, r := range map[string]transcode.Rule{
		"has no body":                  {Method: "GET", Template: "/q", Body: "*"},
		"no field \"nothing\" for the": {Method: "POST", Template: "/q", Body: "nothing"},
		"the body of the answer":       {Method: "GET", Template: "/q", ResponseBody: "nothing"},
		"has no field \"nothing\"":     {Method: "GET", Template: "/q/{nothing}"},
		"has no field \"pageSize\"":    {Method: "GET", Template: "/q/{pageSize}"},
		"field \"tags\"":               {Method: "GET", Template: "/q/{tags}"},
		"field \"inner\"":              {Method: "GET", Template: "/q/{inner}"},
		"set by the body":              {Method: "POST", Template: "/q/{name}", Body: "name"},
		"not a message with fields":    {Method: "GET", Template: "/q/{name.x}"},
		"path template":                {Method: "GET", Template: "q"},
	} {
		if _, err := transcode.Bind(r, m, m); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%+v: %v, want %s", r, err, part)
		}
	}
}

// message encodes fields that are texts or messages.
func message(pairs ...any) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = protowire.AppendTag(b, protowire.Number(pairs[i].(int)), protowire.BytesType)
		switch v := pairs[i+1].(type) {
		case string:
			b = protowire.AppendString(b, v)
		case []byte:
			b = protowire.AppendBytes(b, v)
		}
	}
	return b
}

// options are those of a method with a rule.
func options(rule []byte) proto.Message {
	o := new(descriptorpb.MethodOptions)
	o.ProtoReflect().SetUnknown(message(72295728, rule))
	return o
}

func TestRules(t *testing.T) {
	rules, err := transcode.Rules(options(message(1, "ignored", 4, "/v1/{name}", 7, "*", 12, "tags",
		11, message(2, "/v1/a"), 11, message(8, message(1, "REPORT", 2, "/v1/b")), 11, message(8, message(1, "*", 2, "/v1/c"), 7, "inner"))))
	want := []transcode.Rule{{"POST", "/v1/{name}", "*", "tags"}, {"GET", "/v1/a", "", ""}, {"REPORT", "/v1/b", "", ""}, {"*", "/v1/c", "inner", ""}}
	if err != nil || len(rules) != len(want) {
		t.Fatalf("%v, %v", rules, err)
	}
	for i := range want {
		if rules[i] != want[i] {
			t.Errorf("rule %d is %+v, want %+v", i, rules[i], want[i])
		}
	}
	if rules, err := transcode.Rules(new(descriptorpb.MethodOptions)); rules != nil || err != nil {
		t.Errorf("without the annotation: %v, %v", rules, err)
	}
	for part, rule := range map[string][]byte{
		"no path":              message(7, "*"),
		"itself":               message(2, "/a", 11, message(2, "/b", 11, message(2, "/c"))),
		"not a method of HTTP": message(8, message(1, "re port", 2, "/a")),
		`"CONNECT" is no`:      message(8, message(1, "CONNECT", 2, "/a")),
		"unexpected EOF":       {0x12, 0x50, 'x'},
		"google.api.http: \"":  message(8, message(1, "", 2, "/a")),
	} {
		if rules, err := transcode.Rules(options(rule)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, %v", part, rules, err)
		}
	}
}

// Whatever path, query and body say, what is set can be read again as JSON, and nothing panics.
func FuzzFill(f *testing.F) {
	m := query(f)
	var bindings []*transcode.Binding
	for _, r := range []transcode.Rule{
		{Method: "POST", Template: "/q/{inner.name}/{wait}", Body: "tags"},
		{Method: "POST", Template: "/q/{page_size}", Body: "*"},
		{Method: "GET", Template: "/q/{color=**}"},
	} {
		b, err := transcode.Bind(r, m, m)
		if err != nil {
			f.Fatal(err)
		}
		bindings = append(bindings, b)
	}
	f.Add("a", "1.5s", "inner.pageSize=1&many=2", `["x"]`)
	f.Add("7", "RED", "left=1&raw=_-8&maybe=true&ratio=NaN", `{"inner":{}}`)
	f.Fuzz(func(t *testing.T, first, second, params, body string) {
		query, err := url.ParseQuery(params)
		if err != nil {
			return
		}
		for i, b := range bindings {
			values := []string{first, second}[:len(b.Template.Variables())]
			for _, body := range []string{body, ""} {
				got := dynamicpb.NewMessage(m)
				if b.Fill(text, got, &transcode.Request{Body: []byte(body), Query: query, Values: values}) != nil {
					continue
				}
				data, _, err := b.Reply(text, got)
				if err != nil {
					if strings.Contains(err.Error(), "UTF-8") || strings.Contains(err.Error(), "out of range") {
						continue
					}
					t.Fatalf("binding %d: %v cannot be written: %v", i, got, err)
				}
				if err := protojson.Unmarshal(data, dynamicpb.NewMessage(m)); err != nil {
					t.Fatalf("binding %d: %s: %v", i, data, err)
				}
			}
		}
	})
}
