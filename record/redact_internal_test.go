package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/anser-rpc/anser/codec/protobuf"
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
			`{"secret":{},"token":"0","tokens":[],"passwd":""}`,
			"m.secret m.token m.tokens m.passwd",
		},
		{"empty", `{"secret":null}`, `{"secret":null}`, ""},
		{"array", `[{"token":"a"},{"token":"b"}]`, `[{"token":"redacted"},{"token":"redacted"}]`, "m[*].token"},
		{"escapes", `{"\u0070assword":"a\"b","x\"":"\\","y":"{\"a\":1}"}`, `{"\u0070assword":"redacted","x\"":"\\","y":"{\"a\":1}"}`, "m.password"},
		{"JSON in a text", `{"y":"{\"token\": 1, \"b\":2}","z":" [\"{\\\"pin\\\":7}\"]"}`, `{"y":"{\"token\":0,\"b\":2}","z":"[\"{\\\"pin\\\":0}\"]"}`, "m.y m.z"},
		{"a key twice in a text", `{"y":"{\"value\":\"x\",\"value\":\"y\",\"name\":\"token\"}"}`, `{"y":"redacted"}`, "m.y"},
		{
			"names in values", `{"headers":[{"name":"Authorization","value":"Bearer x","n":1},{"value":["x"],"key":"pin"},{"key":"a","value":"b"}]}`,
			`{"headers":[{"name":"Authorization","value":"redacted","n":1},{"value":[],"key":"pin"},{"key":"a","value":"b"}]}`,
			"m.headers[*].value",
		},
		{"a map whose keys are secret", `{"tokens":{"t-123":"ann"}}`, `{"tokens":{}}`, "m.tokens"},
		{"ends of paths in any case", `{"Address":[{"Street":"s"}]}`, `{"Address":[{"Street":"redacted"}]}`, "m.Address[*].Street"},
		{"names with dots", `{"a.b":{"token":1},"address.street":"s"}`, `{"a.b":{"token":0},"address.street":"redacted"}`, `m."a.b".token m."address.street"`},
		{"scalar", ` "password" `, `"password"`, ""},
	} {
		var paths redactedPaths
		got := h.redact([]byte(test.in), nil, "m", &paths)
		if string(got) != test.want || strings.Join(paths.list, " ") != test.paths {
			t.Errorf("%s: %s\n%s, want\n%s, %s", test.name, got, paths.list, test.want, test.paths)
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
	var paths redactedPaths
	got := newHider(nil, nil).redact(text, newGoSchemas().of(reflect.TypeFor[*user]()), "m", &paths)
	want := `{"Name":"n","password":"redacted","Cards":[{"number":"0","Month":2}],"ByName":{"k":{"number":"0","Month":4}},` +
		`"Friend":{"Name":"","password":"","Cards":null,"ByName":null,"Friend":null,"number":"redacted","Month":6},"number":"0","Month":8}`
	if string(got) != want {
		t.Errorf("%s, want\n%s\n%s", got, want, paths.list)
	}
}

type loop *loop

func TestSchemaOfOddTypes(t *testing.T) {
	type tree struct {
		Left, Right *tree
		*card
	}
	for _, of := range []reflect.Type{reflect.TypeFor[loop](), reflect.TypeFor[tree](), reflect.TypeFor[[]any](), reflect.TypeFor[func()]()} {
		newGoSchemas().of(of)
	}
}

// A message can have as many secret fields as it has room for, and as long paths.
func TestRedactManyPaths(t *testing.T) {
	var many, long strings.Builder
	long.WriteString(`{"` + strings.Repeat("x", 100_000) + `":{"a":0`)
	many.WriteString(`{"a":0`)
	for i := range 50_000 {
		fmt.Fprintf(&many, `,"token%d":1`, i)
		fmt.Fprintf(&long, `,"token%d":1`, i)
	}
	for name, text := range map[string]string{"many": many.String() + "}", "long": long.String() + "}}"} {
		var paths redactedPaths
		out := newHider(nil, []string{"a"}).redact([]byte(text), nil, "m", &paths)
		bytes := 0
		for _, path := range paths.list {
			bytes += len(path)
		}
		if strings.Contains(string(out), ":1") || len(paths.list) == 0 || len(paths.list) > maxRedacted || bytes > maxRedacted*20 {
			t.Errorf("%s: %d paths, %d bytes, still there: %t", name, len(paths.list), bytes, strings.Contains(string(out), ":1"))
		}
	}
}

// What is in an interface has tags that the type of the message does not know.
func TestRedactInInterfaces(t *testing.T) {
	type box struct {
		Number string // public
		In     any
		List   []any
	}
	message := &box{
		Number: "1", In: map[string]any{"card": card{"2", 3}},
		List: []any{&box{Number: "4", In: []card{{"5", 6}}}, struct{ Card *card }{&card{"7", 8}}, nil, 9},
	}
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	r := new(Recorder)
	for range 2 { // the type is new, and known
		of, err := r.schemaOf(message)
		if err != nil {
			t.Fatal(err)
		}
		got := newHider(nil, nil).redact(text, of, "m", new(redactedPaths))
		want := `{"Number":"1","In":{"card":{"number":"0","Month":3}},"List":[{"Number":"4","In":[{"number":"0","Month":6}],"List":null},` +
			`{"Card":{"number":"0","Month":8}},null,9]}`
		if string(got) != want {
			t.Errorf("%s, want\n%s", got, want)
		}
	}
	if _, err := r.schemaOf(&box{In: make([]*card, maxVisits+1)}); err != errUnreadable {
		t.Error(err)
	}
}

// protobuf marks fields with debug_redact, also those of extensions and of messages in an Any.
func TestRedactProtobuf(t *testing.T) {
	secret := &descriptorpb.FieldOptions{DebugRedact: proto.Bool(true)}
	text, optional := descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("record/test.proto"), Package: proto.String("record.test"), Syntax: proto.String("proto2"),
		Dependency: []string{"google/protobuf/any.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Card"),
			Field: []*descriptorpb.FieldDescriptorProto{
				{Name: proto.String("card_number"), Number: proto.Int32(1), Type: text, Label: optional, Options: secret},
				{Name: proto.String("holder"), Number: proto.Int32(2), Type: text, Label: optional},
				{Name: proto.String("more"), Number: proto.Int32(3), Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), Label: optional, TypeName: proto.String(".google.protobuf.Any")},
			},
			ExtensionRange: []*descriptorpb.DescriptorProto_ExtensionRange{{Start: proto.Int32(100), End: proto.Int32(200)}},
		}},
		Extension: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("limit"), Number: proto.Int32(100), Type: text, Label: optional, Options: secret, Extendee: proto.String(".record.test.Card"),
		}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	d, x := file.Messages().Get(0), dynamicpb.NewExtensionType(file.Extensions().Get(0))
	if err := errors.Join(protoregistry.GlobalTypes.RegisterMessage(dynamicpb.NewMessageType(d)), protoregistry.GlobalTypes.RegisterExtension(x)); err != nil {
		t.Fatal(err)
	}
	newCard := func() *dynamicpb.Message {
		m := dynamicpb.NewMessage(d)
		m.Set(d.Fields().ByName("card_number"), protoreflect.ValueOfString("1"))
		m.Set(d.Fields().ByName("holder"), protoreflect.ValueOfString("ann"))
		return m
	}
	in, out := newCard(), newCard()
	proto.SetExtension(in, x, "2")
	packed, err := anypb.New(in)
	if err != nil {
		t.Fatal(err)
	}
	out.Set(d.Fields().ByName("more"), protoreflect.ValueOfMessage(packed.ProtoReflect()))
	r := &Recorder{json: protobuf.NewJSON(), hides: newHider(nil, nil)}
	r.hides.packed = r.packedSchema
	of, err := r.schemaOf(out)
	if err != nil {
		t.Fatal(err)
	}
	message, err := r.json.Append(nil, out)
	if err != nil {
		t.Fatal(err)
	}
	got := r.hides.redact(message, of, "m", new(redactedPaths))
	want := `{"cardNumber":"0","holder":"ann","more":{"@type":"type.googleapis.com/record.test.Card","cardNumber":"0","holder":"ann","[record.test.limit]":"0"}}`
	if string(got) != want {
		t.Errorf("%s, want\n%s", got, want)
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
		var paths redactedPaths
		out := h.redact(in, nil, "m", &paths)
		var before, after any
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		if json.Unmarshal(in, &before) != nil {
			return
		}
		if len(paths.list) == 0 && !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", in, out)
		}
		checkHidden(t, h, after)
	})
}

func checkHidden(t *testing.T, h *hider, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if h.hidesName(name) {
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
		var paths redactedPaths
		h.redact(text, nil, "m", &paths)
	}
}
