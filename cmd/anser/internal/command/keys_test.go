package command

import (
	"encoding/json"
	"testing"

	"github.com/anser-rpc/anser"
)

func TestUnknownKey(t *testing.T) {
	const shape = `{"name":"","list":[{"id":0}],"labels":{"key":{"unit":""}},"deep":null,"empty":{}}`
	for message, want := range map[string]string{
		`{}`: "", `[]`: "", `1`: "", `null`: "",
		`{"name":"a","NAME":"b"}`:         "", // encoding/json accepts it, too
		`{"nmae":"a"}`:                    "the message has the unknown key nmae: did you mean name?",
		`{"zzzzzz":1}`:                    "the message has the unknown key zzzzzz: the keys are deep, empty, labels, list, name",
		`{"list":[{"id":1},{"di":1}]}`:    "the message has the unknown key list[1].di: did you mean id?",
		`{"labels":{"any":{"unit":"x"}}}`: "",
		`{"labels":{"any":{"unti":"x"}}}`: "the message has the unknown key labels.any.unti: did you mean unit?",
		`{"deep":{"a":{"b":1}}}`:          "",
		`{"empty":{"a":1}}`:               "the message has the unknown key empty.a: there are no keys here",
		`{"list":{"a":1},"name":[1]}`:     "", // the server reports the error
	} {
		if got := unknownKey(&anser.Shape{Type: "T", JSON: json.RawMessage(shape)}, []byte(message)); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
	if got := unknownKey(&anser.Shape{Type: "(a T, b int)", JSON: json.RawMessage(`[{"x":0},0]`)}, []byte(`[{"y":1},2,{"z":3}]`)); got != "the message has the unknown key [0].y: the keys are x" {
		t.Error(got)
	}
	message := &anser.Shape{Type: "message a.B", Others: []string{"byName"}, JSON: json.RawMessage(`{"byId":0,"tags":{},"list":[{"unitPrice":0}]}`)}
	for text, want := range map[string]string{
		`{"byId":1,"by_id":1,"byName":"x","by_name":"x","tags":{"any":1},"list":[{"unit_price":1}]}`: "",
		`{"by_nme":"x"}`:              "the message has the unknown key by_nme: did you mean byName?",
		`{"list":[{"unit_prise":1}]}`: "the message has the unknown key list[0].unit_prise: did you mean unitPrice?",
	} {
		if got := unknownKey(message, []byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := unknownKey(&anser.Shape{JSON: json.RawMessage(`null`)}, []byte(`{"y":1}`)); got != "" {
		t.Error(got)
	}
}
