package contract_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// compiled is the descriptor of a file with every kind of field, as text.
const compiled = `
name: "shop.proto" package: "shop" syntax: "proto3"
message_type {
	name: "Order"
	field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "id" }
	field { name: "line_items" number: 2 type: TYPE_MESSAGE type_name: ".shop.Order.Item" label: LABEL_REPEATED json_name: "lineItems" }
	field { name: "note" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "note" proto3_optional: true oneof_index: 1 }
	field { name: "card" number: 4 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "card" oneof_index: 0 }
	field { name: "cash" number: 5 type: TYPE_BOOL label: LABEL_OPTIONAL json_name: "cash" oneof_index: 0 }
	field { name: "state" number: 6 type: TYPE_ENUM type_name: ".shop.State" label: LABEL_OPTIONAL json_name: "state" }
	field { name: "prices" number: 7 type: TYPE_MESSAGE type_name: ".shop.Order.PricesEntry" label: LABEL_REPEATED json_name: "prices" }
	field { name: "parent" number: 8 type: TYPE_MESSAGE type_name: ".shop.Order" label: LABEL_OPTIONAL json_name: "parent" }
	oneof_decl { name: "payment" }
	oneof_decl { name: "_note" }
	nested_type { name: "Item" field { name: "count" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "count" } }
	nested_type {
		name: "PricesEntry" options { map_entry: true }
		field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "key" }
		field { name: "value" number: 2 type: TYPE_DOUBLE label: LABEL_OPTIONAL json_name: "value" }
	}
	reserved_range { start: 9 end: 12 }
	reserved_name: "total"
}
message_type { name: "Nothing" }
enum_type { name: "State" value { name: "STATE_UNKNOWN" number: 0 } value { name: "STATE_PAID" number: 1 } }
service {
	name: "Shop"
	method { name: "Get" input_type: ".shop.Order" output_type: ".shop.Order" options { idempotency_level: NO_SIDE_EFFECTS } }
	method { name: "Watch" input_type: ".shop.Order" output_type: ".shop.Order" server_streaming: true }
	method { name: "Empty" input_type: ".shop.Nothing" output_type: ".shop.Nothing" }
}
`

func file(t *testing.T, text string) protoreflect.FileDescriptor {
	t.Helper()
	d := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal([]byte(text), d); err != nil {
		t.Fatal(err)
	}
	f, err := protodesc.NewFile(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFromProtobuf(t *testing.T) {
	s := protocontract.FromFiles(file(t, compiled))
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	order := s.Message("shop.Order")
	got := map[string]contract.Field{}
	for _, f := range order.Fields {
		got[f.Name] = f
	}
	for name, want := range map[string]contract.Field{
		"id":         {Name: "id", Number: 1, Type: contract.Type{Name: "string"}},
		"line_items": {Name: "line_items", JSON: "lineItems", Number: 2, Type: contract.Type{Name: "message", Of: "shop.Order.Item", Repeated: true}},
		"note":       {Name: "note", Number: 3, Type: contract.Type{Name: "string"}, Presence: contract.Explicit},
		"card":       {Name: "card", Number: 4, Type: contract.Type{Name: "string"}, OneOf: "payment"},
		"state":      {Name: "state", Number: 6, Type: contract.Type{Name: "enum", Of: "shop.State"}},
		"prices":     {Name: "prices", Number: 7, Type: contract.Type{Name: "double", Key: "string"}},
		"parent":     {Name: "parent", Number: 8, Type: contract.Type{Name: "message", Of: "shop.Order"}},
	} {
		f := got[name]
		f.At = contract.Position{}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("field %s is %+v, want %+v", name, f, want)
		}
	}
	if want := []contract.Range{{From: 9, To: 11}}; !reflect.DeepEqual(order.Reserved, want) {
		t.Errorf("the reserved ranges are %v, want %v", order.Reserved, want)
	}
	get, watch := s.Service("shop.Shop").Method("Get"), s.Service("shop.Shop").Method("Watch")
	if !get.Idempotent || get.Stream() || !watch.ServerStream || watch.ClientStream || watch.Idempotent {
		t.Errorf("the methods are %+v and %+v", get, watch)
	}
}

func TestOnlyHasWhatTheServiceUses(t *testing.T) {
	two := strings.Replace(compiled, "message_type { name: \"Nothing\" }", `
		message_type { name: "Nothing" } message_type { name: "Unused" }
		enum_type { name: "Unused2" value { name: "X" number: 0 } }`, 1)
	s := protocontract.FromFiles(file(t, two)).Only("shop.Shop")
	if s.Message("shop.Unused") != nil || s.Enum("shop.Unused2") != nil {
		t.Error("the schema of one service has types that it does not use")
	}
	if s.Message("shop.Order.Item") == nil || s.Enum("shop.State") == nil || s.Message("shop.Nothing") == nil {
		t.Error("the schema of one service lacks types that it uses")
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := contract.NewSource(string(text)).Schema()
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("JSON changes the schema: %v\n%+v\n%+v", err, again, s)
	}
	if protocontract.FromFiles(file(t, two)).Only("shop.Other") != nil {
		t.Error("there is a schema of a service that does not exist")
	}
}

// Changes that the other side notices change the fingerprint, others do not.
func TestFingerprint(t *testing.T) {
	print := func(text, method string) string {
		return protocontract.FromFiles(file(t, text)).Fingerprint("shop.Shop", method)
	}
	for _, test := range []struct {
		name, old, new string
		same           bool
	}{
		{"number", "number: 2 type: TYPE_MESSAGE", "number: 12 type: TYPE_MESSAGE", false},
		{"type", `name: "id" number: 1 type: TYPE_STRING`, `name: "id" number: 1 type: TYPE_BYTES`, false},
		{"type inside", "TYPE_INT32", "TYPE_SINT32", false},
		{"value of a map", "TYPE_DOUBLE", "TYPE_FLOAT", false},
		{"name", `name: "card"`, `name: "carte"`, false},
		{"oneof", ` json_name: "cash" oneof_index: 0`, ` json_name: "cash"`, false},
		{"value of an enum", `{ name: "STATE_PAID" number: 1 }`, `{ name: "STATE_PAID" number: 2 }`, false},
		{"name of a message", `Item"`, `Position"`, true},
		{"reserved", "end: 12", "end: 13", true},
		{"another method", `name: "Watch" input_type: ".shop.Order"`, `name: "Watch" input_type: ".shop.Nothing"`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(compiled, test.old) {
				t.Fatal("the file has no such text")
			}
			before, after := print(compiled, "Get"), print(strings.ReplaceAll(compiled, test.old, test.new), "Get")
			if (before == after) != test.same || len(before) != 16 {
				t.Errorf("the fingerprints are %s and %s", before, after)
			}
		})
	}
	if print(compiled, "Get") == print(compiled, "Watch") {
		t.Error("a call has the fingerprint of a stream with the same messages")
	}
	if got := print(compiled, "None"); got != "" {
		t.Errorf("the fingerprint of no method is %q", got)
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`{"kind":"go","messages":[{"name":"A"},{"name":"A"}]}`, "message A is defined twice"},
		{`{"kind":"go","messages":[{}]}`, "a message has no name"},
		{`{"kind":"go","messages":[{"name":"A"}],"enums":[{"name":"A"}]}`, "enum A is defined twice, first as message"},
		{`{"kind":"go","messages":[{"name":"A","fields":[{"name":"f","type":{"name":"message","of":"B"}}]}]}`, "field A.f has the type B"},
		{`{"kind":"go","services":[{"name":"S","methods":[{"name":"M","request":"A","reply":"A"}]}]}`, `takes "A"`},
		{`{"kind":"go","messages":[{"name":"A"}],"services":[{"name":"S","methods":[{"name":"M","request":"A"}]}]}`, `returns ""`},
		{`{"kind":"go","messages":[{"name":"A"}],"services":[{"name":"S","methods":[{"name":"M","request":"A","oneway":true}]}]}`, ""},
		{`[]`, "cannot unmarshal"},
	} {
		_, err := contract.Parse([]byte(test.text))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.text, err, test.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"kind":"go","messages":[{"name":"A","fields":[{"name":"f","type":{"name":"message","of":"A"}}]}],"services":[{"name":"S","methods":[{"name":"M","request":"A","reply":"A"}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := contract.Parse(text)
		if err != nil {
			return
		}
		for _, v := range s.Services {
			part := s.Only(v.Name)
			for _, m := range v.Methods {
				if a, b := s.Fingerprint(v.Name, m.Name), part.Fingerprint(v.Name, m.Name); a != b || a == "" {
					t.Errorf("the fingerprint of %s is %q in the whole schema and %q in its part", m.Name, a, b)
				}
			}
		}
	})
}

func ExampleSchema_Fingerprint() {
	s, err := contract.Parse([]byte(`{
		"kind": "go",
		"services": [{"name": "Echo", "methods": [{"name": "Say", "request": "Text", "reply": "Text"}]}],
		"messages": [{"name": "Text", "form": "names", "fields": [{"name": "S", "type": {"name": "string"}}]}]
	}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Fingerprint("Echo", "Say"))
	// Output: 604870ad416827b7
}
