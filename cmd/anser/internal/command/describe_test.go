package command_test

import (
	"testing"

	"github.com/anser-rpc/anser"
)

func TestDescribe(t *testing.T) {
	at := serve(t)
	run(t, "describe", at).expect(t, 0,
		"METHOD", "KIND", "stream", "Arith.Add", `{"A": 0, "B": 0}`, `{"C": 0}`, "Test.Metadata, Test.Headers")
	run(t, "describe", at, "Arith.Mul").expect(t, 0,
		"idempotent", "request arith.Args", "reply arith.Reply", "anser call "+at+` Arith.Mul '{"A": 0, "B": 0}'`)

	run(t, "describe", at, "Test.Talk").expect(t, 0, "stream: request and reply are those of one message", "request string")
	run(t, "describe", at, "Test.DivMod").expect(t, 0,
		"request (a int, b int)", "reply (q int, r int)", `Test.DivMod '{"a": 0, "b": 0}'`)
	run(t, "describe", at, "Test.Note").expect(t, 0, "oneway: there is no reply", "anser call --oneway "+at+` Test.Note '{"Text": ""}'`)
	run(t, "describe", at).expect(t, 0, "none: oneway")

	var list anser.MethodList
	run(t, "describe", at, "--json").decode(t, &list)
	if len(list.Methods) != 10 || list.Methods[0].Name != "Arith.Add" || !list.Methods[0].Idempotent || list.Methods[0].Stream || !list.Methods[8].Stream {
		t.Errorf("%+v", list)
	}
	var one anser.MethodInfo
	run(t, "describe", at, "Test.Headers", "--json").decode(t, &one)
	if one.Name != "Test.Metadata" || len(one.Aliases) != 1 {
		t.Errorf("%+v", one)
	}
}

func TestDescribeErrors(t *testing.T) {
	none := unused(t)
	run(t, "describe", none).expect(t, 3, "no server is listening at "+none)
	run(t, "describe", serve(t), "Arith.Div").expect(t, 1, `there is no method "Arith.Div": the server has Arith.Add, Arith.Mul`)
	run(t, "describe", serve(t, anser.NoDescribe())).expect(t, 4, "anser.NoDescribe")
	run(t, "describe").expect(t, 2, "arguments are missing")
}
