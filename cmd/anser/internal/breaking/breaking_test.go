package breaking_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/breaking"
	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
	"github.com/anser-rpc/anser/cmd/anser/internal/kiss"
	"github.com/anser-rpc/anser/cmd/anser/internal/protofile"
	"github.com/anser-rpc/anser/contract"
)

// ofProto compiles the body of a file.
func ofProto(t *testing.T, head, body string) *contract.Schema {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.proto")
	if err := os.WriteFile(file, []byte(head+"\npackage p;\n"+body), 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := protofile.Compile(t.Context(), []string{dir}, []string{file})
	if err != nil {
		t.Fatal(err)
	}
	s, err := set.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ofKiss(t *testing.T, text string) *contract.Schema {
	t.Helper()
	f, err := kiss.Parse("a.kiss", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Schema()
}

// rule is a change and what it breaks, in one direction and in the other.
type rule struct {
	name      string
	old, new  string
	there     breaking.Level // "": there is no change
	text      string         // of the first change
	backwards breaking.Level
}

func (r rule) check(t *testing.T, before, after *contract.Schema) {
	t.Helper()
	for _, s := range []*contract.Schema{before, after} {
		if changes := breaking.Compare(s, s); len(changes) > 0 {
			t.Errorf("a contract differs from itself: %+v", changes)
		}
	}
	first := func(a, b *contract.Schema) breaking.Change {
		if changes := breaking.Compare(a, b); len(changes) > 0 {
			return changes[0]
		}
		return breaking.Change{}
	}
	there, back := first(before, after), first(after, before)
	if there.Level != r.there || !strings.Contains(there.Path+": "+there.Text, r.text) {
		t.Errorf("the change is %+v, want %q with %q", there, r.there, r.text)
	}
	if back.Level != r.backwards {
		t.Errorf("backwards the change is %+v, want %q", back, r.backwards)
	}
}

const (
	same   = breaking.Level("")
	wire   = breaking.Wire
	json   = breaking.JSON
	source = breaking.Source
	fine   = breaking.Fine
)

func TestProtobuf(t *testing.T) {
	for _, r := range []rule{
		{"comment", "message M { int32 a = 1; }", "// A comment.\nmessage M { int32 a = 1; }", same, "", same},
		{"field added", "message M { int32 a = 1; }", "message M { int32 a = 1; int32 b = 2; }", fine, "p.M.b: the field is new", wire},
		{"field removed", "message M { int32 a = 1; int32 b = 2; }", "message M { int32 a = 1; }", wire, "its number 2 is not reserved", fine},
		{"number reserved", "message M { int32 a = 1; int32 b = 2; }", "message M { int32 a = 1; reserved 2; }", json, `add "reserved "b";"`, wire},
		{"number and name reserved", "message M { int32 a = 1; int32 b = 2; }", `message M { int32 a = 1; reserved 2; reserved "b"; }`, source, "old programs read it as absent", wire},
		{"reserved number freed", "message M { reserved 2; }", "message M {}", wire, "no longer reserved", same},
		{"renamed", "message M { int32 a = 1; }", "message M { int32 b = 1; }", json, "p.M.a: the field is called b now", json},
		{"json name", "message M { int32 a = 1; }", `message M { int32 a = 1 [json_name = "x"]; }`, json, "called x in JSON", json},
		{"renumbered", "message M { int32 a = 1; }", "message M { int32 a = 2; }", wire, "not reserved", wire},
		{"int32 to int64", "message M { int32 a = 1; }", "message M { int64 a = 1; }", json, "the encodings are the same", json},
		{"int32 to bool", "message M { int32 a = 1; }", "message M { bool a = 1; }", json, "", json},
		{"int32 to sint32", "message M { int32 a = 1; }", "message M { sint32 a = 1; }", wire, "misread each other", wire},
		{"int32 to string", "message M { int32 a = 1; }", "message M { string a = 1; }", wire, "", wire},
		{"string to bytes", "message M { string a = 1; }", "message M { bytes a = 1; }", json, "", json},
		{"fixed32 to sfixed32", "message M { fixed32 a = 1; }", "message M { sfixed32 a = 1; }", json, "", json},
		{"fixed32 to fixed64", "message M { fixed32 a = 1; }", "message M { fixed64 a = 1; }", wire, "", wire},
		{"enum to int32", "message M { E a = 1; } enum E { A = 0; }", "message M { int32 a = 1; } enum E { A = 0; }", json, "", json},
		{"string repeated", "message M { string a = 1; }", "message M { repeated string a = 1; }", json, "repeated now", wire},
		{"number repeated", "message M { int32 a = 1; }", "message M { repeated int32 a = 1; }", wire, "packed", wire},
		{"packed", "message M { repeated int32 a = 1; }", "message M { repeated int32 a = 1 [packed = false]; }", same, "", same},
		{"optional", "message M { int32 a = 1; }", "message M { optional int32 a = 1; }", source, "can be told now", source},
		{"into a new oneof", "message M { optional int32 a = 1; }", "message M { oneof o { int32 a = 1; } }", source, "", source},
		{"into a oneof", "message M { int32 a = 1; oneof o { int32 b = 2; } }", "message M { oneof o { int32 b = 2; int32 a = 1; } }", wire, "into the oneof o", wire},
		{"oneof renamed", "message M { oneof o { int32 a = 1; int32 b = 2; } }", "message M { oneof x { int32 a = 1; int32 b = 2; } }", source, "called x", source},
		{"key of a map", "message M { map<string, int32> a = 1; }", "message M { map<int32, int32> a = 1; }", wire, "", wire},
		{"message removed", "message M {} message N {}", "message M {}", source, "p.N: the message was removed", fine},
		{"message inside renamed", "message M { N n = 1; } message N { int32 a = 1; }", "message M { O n = 1; } message O { int32 a = 1; }", source, "", source},
		{"message inside replaced", "message M { N n = 1; } message N { int32 a = 1; }", "message M { O n = 1; } message O { string a = 1; }", wire, "p.N.a", wire},
		{"enum value added", "enum E { A = 0; }", "enum E { A = 0; B = 1; }", fine, "the value is new", wire},
		{"enum value reserved", "enum E { A = 0; B = 1; }", "enum E { A = 0; reserved 1; }", source, "", fine},
		{"enum value renamed", "enum E { A = 0; B = 1; }", "enum E { A = 0; C = 1; }", json, "called C now", json},
		{"enum value renumbered", "enum E { A = 0; B = 1; }", "enum E { A = 0; B = 2; }", wire, "keep the number", wire},
		{"service removed", "message M {} service S { rpc A(M) returns (M); }", "message M {}", wire, "p.S: the service was removed", fine},
		{"method removed", "message M {} service S { rpc A(M) returns (M); rpc B(M) returns (M); }", "message M {} service S { rpc A(M) returns (M); }", wire, "p.S.B: the method was removed", fine},
		{"stream", "message M {} service S { rpc A(M) returns (M); }", "message M {} service S { rpc A(M) returns (stream M); }", wire, "was a call and is a stream of the server", wire},
		{"request", "message M { int32 a = 1; } message N { int32 a = 1; } service S { rpc A(M) returns (M); }", "message M { int32 a = 1; } message N { int32 a = 1; } service S { rpc A(N) returns (M); }", source, "takes p.N in place of p.M", source},
		{"idempotent", "message M {} service S { rpc A(M) returns (M); }", "message M {} service S { rpc A(M) returns (M) { option idempotency_level = IDEMPOTENT; } }", fine, "idempotent now", wire},
	} {
		t.Run(r.name, func(t *testing.T) {
			const head = `syntax = "proto3";`
			r.check(t, ofProto(t, head, r.old), ofProto(t, head, r.new))
		})
	}
}

func TestProto2(t *testing.T) {
	for _, r := range []rule{
		{"required", "message M { optional int32 a = 1; }", "message M { required int32 a = 1; }", wire, "required now", wire},
		{"required added", "message M {}", "message M { required int32 a = 1; }", wire, "make it optional", wire},
		{"default", "message M { optional int32 a = 1; }", "message M { optional int32 a = 1 [default = 3]; }", wire, "the default is 3, and was the zero value", wire},
	} {
		t.Run(r.name, func(t *testing.T) {
			const head = `syntax = "proto2";`
			r.check(t, ofProto(t, head, r.old), ofProto(t, head, r.new))
		})
	}
}

func TestByNameAndPosition(t *testing.T) {
	for _, r := range []rule{
		{"field added", "@message:M{ int a:1; }", "@message:M{ int a:1; int b:2; }", fine, "M.b: the field is new", wire},
		{"renumbered", "@message:M{ int a:1; int b:2; }", "@message:M{ int a:2; int b:1; }", same, "", same},
		{"wider", "@message:M{ int a:1; }", "@message:M{ long a:1; }", source, "the type is int64, and was int32", wire},
		{"unsigned", "@message:M{ int a:1; }", "@message:M{ uint a:1; }", wire, "", wire},
		{"type", "@message:M{ int a:1; }", "@message:M{ string a:1; }", wire, "cannot decode", wire},
		{"array", "@message:M{ int a:1; }", "@message:M{ int[] a:1; }", wire, "", wire},
		{"argument added", "@service:S{ int f(int a); }", "@service:S{ int f(int a, int b); }", wire, "there are 2 values, and were 1", wire},
		{"argument renamed", "@service:S{ int f(int a); }", "@service:S{ int f(int b); }", json, "called b now", json},
		{"result", "@service:S{ int f(int a); }", "@service:S{ string f(int a); }", wire, "", wire},
		{"function removed", "@service:S{ int f(int a); int g(int a); }", "@service:S{ int f(int a); }", wire, "S.g", fine},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, ofKiss(t, r.old), ofKiss(t, r.new)) })
	}
}

func ofFlatBuffers(t *testing.T, text string) *contract.Schema {
	t.Helper()
	s, err := fbs.Parse("a.fbs", []byte("namespace p;\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Contract()
}

func TestFlatBuffers(t *testing.T) {
	for _, r := range []rule{
		{"comment", "table T { a:int; }", "/// A table.\ntable T { a:int; }", same, "", same},
		{"field appended", "table T { a:int; }", "table T { a:int; b:int; }", fine, "p.T.b: the field is new", wire},
		{"field inserted", "table T { a:int; b:int; }", "table T { c:int; a:int; b:int; }", wire, "p.T.a: the field has the number 2, and had 1", wire},
		{"field inserted with ids", "table T { a:int (id: 0); }", "table T { b:int (id: 1); a:int (id: 0); }", fine, "p.T.b", wire},
		{"fields reordered", "table T { a:int; b:int; }", "table T { b:int; a:int; }", wire, "add new ones at the end", wire},
		{"fields reordered with ids", "table T { a:int; b:int; }", "table T { b:int (id: 1); a:int (id: 0); }", same, "", same},
		{"field removed", "table T { a:int; b:int; }", "table T { a:int; }", wire, "keep it, and mark it as deprecated", fine},
		{"field deprecated", "table T { a:int; b:int; }", "table T { a:int; b:int (deprecated); }", source, "p.T.b: the field is deprecated", fine},
		{"renamed", "table T { a:int; }", "table T { b:int; }", json, "p.T.a: the field is called b now", json},
		{"default", "table T { a:int; }", "table T { a:int = 1; }", wire, "the default is 1, and was the zero value", wire},
		{"default null", "table T { a:int; }", "table T { a:int = null; }", wire, "the default is null, and was the zero value", wire},
		{"required", "table T { a:string; }", "table T { a:string (required); }", wire, "required now", wire},
		{"required added", "table T { a:string; }", "table T { a:string; b:string (required); }", wire, "the new field is required", wire},
		{"type", "table T { a:int; }", "table T { a:long; }", wire, "deprecate the field and add another one", wire},
		{"vector", "table T { a:int; }", "table T { a:[int]; }", wire, "", wire},
		{"int to enum", "enum E:int { A } table T { a:int; }", "enum E:int { A } table T { a:E; }", json, "the numbers are the same", json},
		{"int to another enum", "enum E:byte { A } table T { a:int; }", "enum E:byte { A } table T { a:E; }", wire, "", wire},
		{"table renamed", "table A { x:int; } table T { a:A; }", "table B { x:int; } table T { a:B; }", source, "", source},
		{"table replaced", "table A { x:int; } table T { a:A; }", "table B { x:string; } table T { a:B; }", wire, "p.A.x", wire},
		{"union member appended", "table A {} table B {} union U { A }", "table A {} table B {} union U { A, B }", fine, "the member of the union is new", wire},
		{"union member inserted", "table A {} table B {} union U { A }", "table A {} table B {} union U { B, A }", wire, "p.U.A: the member of the union has the number 2, and had 1", wire},
		{"union member inserted with a number", "table A {} table B {} union U { A }", "table A {} table B {} union U { B = 2, A = 1 }", fine, "p.U.B", wire},
		{"union for a table", "table A {} union U { A } table T { a:A; }", "table A {} union U { A } table T { a:U; }", wire, "", wire},
		{"enum value appended", "enum E:int { A }", "enum E:int { A, B }", fine, "the value is new", wire},
		{"enum value inserted", "enum E:int { A, B }", "enum E:int { A, C, B }", wire, "p.E.B: the value is 2, and was 1", wire},
		{"enum value removed", "enum E:int { A, B }", "enum E:int { A }", wire, "old programs may send it", fine},
		{"enum value renamed", "enum E:int { A, B }", "enum E:int { A, C }", json, "called C now", json},
		{"default by another name", "enum E:int { A, B } table T { e:E = B; }", "enum E:int { A, C } table T { e:E = C; }", json, "called C now", json},
		{"enum type", "enum E:int { A }", "enum E:short { A }", wire, "the underlying type is short", wire},
		{"enum of bits", "enum E:ubyte { A = 1 }", "enum E:ubyte (bit_flags) { A = 0 }", wire, "the values are bits", wire},
		{"struct field appended", "struct S { a:int; }", "struct S { a:int; b:int; }", wire, "use a table", wire},
		{"struct field renamed", "struct S { a:int; }", "struct S { b:int; }", json, "called b now", json},
		{"struct alignment", "struct S { a:int; }", "struct S (force_align: 8) { a:int; }", wire, "alignment", wire},
		{"struct to table", "struct S { a:int; }", "table S { a:int; }", wire, "is a message with numbered fields, and was a struct", wire},
		{"method removed", "table T {} rpc_service S { A(T):T; B(T):T; }", "table T {} rpc_service S { A(T):T; }", wire, "p.S.B: the method was removed", fine},
		{"stream", "table T {} rpc_service S { A(T):T; }", "table T {} rpc_service S { A(T):T (streaming: \"server\"); }", wire, "was a call and is a stream of the server", wire},
		{"idempotent", "table T {} rpc_service S { A(T):T; }", "table T {} rpc_service S { A(T):T (idempotent); }", fine, "idempotent now", wire},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, ofFlatBuffers(t, r.old), ofFlatBuffers(t, r.new)) })
	}
}
