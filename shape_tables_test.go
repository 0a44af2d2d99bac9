package anser_test

import (
	"slices"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract"
)

const depotContract = `{"kind":"flatbuffers",
"services":[{"name":"Depot","methods":[{"name":"Get","request":"Query","reply":"Crate"},{"name":"Drop","request":"Query","oneway":true}]}],
"messages":[{"name":"Query","fields":[{"name":"name","number":1,"type":{"name":"string"}}]},
{"name":"Size","form":"struct","fields":[{"name":"width","type":{"name":"float"}}]},
{"name":"Content","form":"union","fields":[{"name":"Crate","number":1,"type":{"name":"message","of":"Crate"}},
{"name":"Query","number":2,"type":{"name":"message","of":"Query"}},{"name":"Size","number":3,"type":{"name":"message","of":"Size"}}]},
{"name":"Crate","fields":[{"name":"weight","number":1,"type":{"name":"double"},"default":"1.5"},{"name":"limit","number":2,"type":{"name":"double"},"default":"NaN"},
{"name":"old","number":3,"type":{"name":"int"},"deprecated":true},{"name":"sealed","number":4,"type":{"name":"bool"}},
{"name":"place","number":5,"type":{"name":"enum","of":"Place"},"default":"1"},{"name":"places","number":6,"type":{"name":"enum","of":"Place","repeated":true}},
{"name":"size","number":7,"type":{"name":"message","of":"Size"}},{"name":"inner","number":8,"type":{"name":"message","of":"Crate","repeated":true}},
{"name":"content","number":10,"type":{"name":"message","of":"Content"}}]}],
"enums":[{"name":"Place","type":"byte","values":[{"name":"Yard","number":0},{"name":"Hall","number":1}]}]}`

// Methods with a contract of FlatBuffers are described in its JSON.
func TestTablesAreDescribed(t *testing.T) {
	source := contract.NewSource(depotContract)
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	if err := anser.Handle(s, "Depot.Get", mul, anser.Contract(source)); err != nil {
		t.Fatal(err)
	}
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	var list anser.MethodList
	if err := c.Call(t.Context(), anser.MethodsName, new(anser.None), &list, anser.Codec(new(codec.JSON))); err != nil {
		t.Fatal(err)
	}
	request, reply := list.Methods[0].Request, list.Methods[0].Reply
	if request.Type != "table Query" || string(request.JSON) != `{"name":""}` || request.Others != nil {
		t.Errorf("the request is %+v, %s", request, request.JSON)
	}
	const want = `{"weight":1.5,"limit":"nan","sealed":false,"place":"Hall","places":["Yard"],"size":{"width":0},"inner":null,` +
		`"content_type":"Query","content":{"name":""}}`
	if reply.Type != "table Crate" || string(reply.JSON) != want {
		t.Errorf("the reply is %s, %s", reply.Type, reply.JSON)
	}
	if !slices.Equal(reply.Others, []string{"width"}) {
		t.Errorf("the other keys are %v", reply.Others)
	}
}
