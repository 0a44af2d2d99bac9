package jsonschema_test

import (
	"encoding/json"
	"testing"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/jsonschema"
)

// schemaText returns the schema of a message in JSON.
func schemaText(t *testing.T, s *contract.Schema, message string, to jsonschema.Direction) (text string, wrapped bool) {
	t.Helper()
	schema, wrapped, err := jsonschema.OfContract(s, message, to)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), wrapped
}

func TestOfContract(t *testing.T) {
	tree := &contract.Schema{Kind: contract.Go, Messages: []contract.Message{
		{Name: "m.Tree", Form: contract.ByName, Doc: "A tree.", Fields: []contract.Field{
			{Name: "Name", Doc: "Its name.", Type: contract.Type{Name: "string"}, Presence: contract.Required},
			{Name: "Children", JSON: "children", Type: contract.Type{Name: "message", Of: "m.Tree", Repeated: true}},
		}},
		{Name: "m.List", Form: contract.InOrder, Fields: []contract.Field{{Name: "value", Type: contract.Type{Name: "int", Repeated: true}}}},
		{Name: "S.M.Args", Form: contract.InOrder, Fields: []contract.Field{{Name: "value", Type: contract.Type{Name: "bool"}}}},
		{Name: "m.Own", Form: contract.Opaque},
	}}
	proto := &contract.Schema{
		Kind: contract.Protobuf,
		Messages: []contract.Message{{Name: "p.M", Fields: []contract.Field{
			{Name: "id", Type: contract.Type{Name: "int64"}},
			{Name: "at", Type: contract.Type{Name: "message", Of: "google.protobuf.Timestamp"}},
			{Name: "a", OneOf: "one", Type: contract.Type{Name: "bool"}},
			{Name: "b", OneOf: "one", Type: contract.Type{Name: "enum", Of: "p.E"}},
		}}},
		Enums: []contract.Enum{{Name: "p.E", Closed: true, Values: []contract.EnumValue{{Name: "X"}, {Name: "Y"}}}},
	}
	for _, c := range []struct {
		schema  *contract.Schema
		message string
		to      jsonschema.Direction
		want    string
		wrapped bool
	}{
		{tree, "m.Tree", jsonschema.Reply, `{"description":"A tree.","type":"object","properties":{"Name":{"description":"Its name.","type":"string"},` +
			`"children":{"type":["array","null"],"items":{"$ref":"#/$defs/m.Tree"}}},"required":["Name"],"$defs":{"m.Tree":` +
			`{"description":"A tree.","type":"object","properties":{"Name":{"description":"Its name.","type":"string"},` +
			`"children":{"type":["array","null"],"items":{"$ref":"#/$defs/m.Tree"}}},"required":["Name"]}}}`, false},
		{tree, "m.List", jsonschema.Request, `{"type":"object","properties":{"value":{"type":["array","null"],"items":{"type":"integer","format":"int64"}}},` +
			`"required":["value"],"additionalProperties":{"not":{}}}`, true},
		{tree, "S.M.Args", jsonschema.Request, `{"type":"object","properties":{"value":{"type":"boolean"}},"additionalProperties":{"not":{}}}`, false},
		{tree, "m.Own", jsonschema.Reply, `{"type":"object","properties":{"value":{}},"required":["value"]}`, true},
		{tree, "", jsonschema.Reply, `{"type":"object"}`, false},
		{proto, "p.M", jsonschema.Request, `{"type":"object","properties":{"id":{"anyOf":[{"type":"integer"},{"type":"string","format":"int64","pattern":"^-?[0-9]+$"}]},` +
			`"at":{"type":"string","format":"date-time"},"a":{"type":"boolean"},"b":{"type":"string","enum":["X","Y"]}},"additionalProperties":{"not":{}},` +
			`"allOf":[{"description":"At most one of the fields of one.","oneOf":[{"required":["a"]},{"required":["b"]},{"not":{"anyOf":[{"required":["a"]},{"required":["b"]}]}}]}]}`, false},
	} {
		if got, wrapped := schemaText(t, c.schema, c.message, c.to); got != c.want || wrapped != c.wrapped {
			t.Errorf("%s: %t\n%s\nwant\n%s", c.message, wrapped, got, c.want)
		}
	}
}
