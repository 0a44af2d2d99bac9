package protoprint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/anser-rpc/anser/cmd/anser/internal/protofile"
	"github.com/anser-rpc/anser/cmd/anser/internal/protoprint"
)

// odd has what other files of the repository do not have.
const odd = `syntax = "proto2";

package odd.name;

import "google/protobuf/descriptor.proto";

option java_package = "org.example \"odd\"\n\001é";

// Svc has no methods.
service Svc {}

// M is a message
// with two lines.
message M {
  option deprecated = true;
  // odd is not a package here.
  optional odd kind = 1 [default = B, (note) = { text: "x" list: [1, 2] }];
  required bytes data = 2 [default = "\000\377\"", json_name = "Data"];
  optional double limit = 3 [default = -inf];
  optional float nan = 4 [default = nan];
  repeated group Pair = 5 {
    optional .odd.name.M in = 1;
  }
  oneof one {
    string a = 6;
    group Other = 7 {
      optional int32 x = 1;
    }
  }
  map<int32, .odd.name.M.odd> by = 8;
  reserved 100, 200 to 300;
  reserved "old", "older";
  extensions 1000 to 1999 [declaration = { number: 1000 full_name: ".odd.name.more" type: "string" }, verification = DECLARATION];
  extensions 5000 to max;
  enum odd {
    option allow_alias = true;
    A = 0;
    B = 1 [deprecated = true];
    C = 1;
    MINUS = -5;
    reserved 7, 10 to max;
    reserved "GONE";
  }
  message google {}
  optional google near = 9;
  optional .google.protobuf.FieldOptions far = 10;
  extend M { optional int32 nested = 5000; }
}

message Empty {}

extend M {
  repeated sint64 many = 5001 [packed = true];
}

message Note {
  optional string text = 1;
  repeated int32 list = 2;
}

extend .google.protobuf.FieldOptions {
  optional Note note = 50001;
}
`

const editions = `edition = "2023";

package e;

import "google/protobuf/descriptor.proto";

option features.field_presence = IMPLICIT;
option features.enum_type = CLOSED;

message M {
  int32 a = 1 [features.field_presence = EXPLICIT];
  int32 b = 2 [features.field_presence = LEGACY_REQUIRED];
  M c = 3 [features.message_encoding = DELIMITED];
  repeated int32 d = 4 [features = { repeated_field_encoding: EXPANDED }];
  reserved old, older;
}

enum E {
  option features.enum_type = OPEN;
  Z = 0;
  reserved GONE;
}
`

// What is written compiles, and means the same.
func TestFiles(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	made := t.TempDir()
	for name, text := range map[string]string{"odd.proto": odd, "editions.proto": editions} {
		if err := os.WriteFile(filepath.Join(made, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ imports, pattern string }{
		{made, "*.proto"},
		{filepath.Join(root, "codec/protobuf/internal/testpb"), "*.proto"},
		{filepath.Join(root, "connectstubs/internal/pingpb"), "*.proto"},
		{filepath.Join(root, "internal/test/protocols/librarypb"), "*.proto"},
		{filepath.Join(root, "internal/benchpb"), "*.proto"},
		{filepath.Join(root, "cmd/anser/internal/gen/gentest/shop"), "*.proto"},
		{filepath.Join(root, "cmd/anser/internal/protofile/builtin"), "google/*/*.proto"},
	} {
		files, err := filepath.Glob(filepath.Join(c.imports, c.pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s in %s, %v", c.pattern, c.imports, err)
		}
		set, err := protofile.Compile(t.Context(), []string{c.imports}, files)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := protoprint.Files(&descriptorpb.FileDescriptorSet{File: set.Files})
		if err != nil {
			t.Fatal(err)
		}
		out := t.TempDir()
		var written []string
		for name, text := range texts {
			path := filepath.Join(out, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			written = append(written, path)
		}
		again, err := protofile.Compile(t.Context(), []string{out}, written)
		if err != nil {
			t.Errorf("%s: %v\n%s", c.imports, err, texts[filepath.Base(files[0])])
			continue
		}
		compare(t, set, again, texts)
	}
}

func compare(t *testing.T, before, after *protofile.Set, texts map[string][]byte) {
	t.Helper()
	files := make(map[string]*descriptorpb.FileDescriptorProto)
	for _, f := range after.Files {
		files[f.GetName()] = f
	}
	for _, f := range before.Files {
		if strings.HasPrefix(f.GetName(), "google/protobuf/") {
			continue
		}
		want, got := known(t, before, f), known(t, after, files[f.GetName()])
		want.SourceCodeInfo, got.SourceCodeInfo = nil, nil
		for _, f := range []*descriptorpb.FileDescriptorProto{want, got} { // which protofile adds last
			for _, m := range f.MessageType {
				sortNested(m)
			}
		}
		// As text: the extensions of the two sets are not the same for proto.Equal.
		if prototext.Format(want) != prototext.Format(got) {
			a, b := strings.Split(prototext.Format(want), "\n"), strings.Split(prototext.Format(got), "\n")
			for len(a) > 1 && len(b) > 1 && a[0] == b[0] {
				a, b = a[1:], b[1:]
			}
			t.Errorf("%s has %q, and from what is written %q:\n%s", f.GetName(), a[0], b[0], texts[f.GetName()])
		}
	}
}

// known returns the file with its options as fields, whose order says nothing.
func known(t *testing.T, set *protofile.Set, f *descriptorpb.FileDescriptorProto) *descriptorpb.FileDescriptorProto {
	t.Helper()
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: set.Files})
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	out := new(descriptorpb.FileDescriptorProto)
	if err := (proto.UnmarshalOptions{Resolver: dynamicpb.NewTypes(files)}).Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	withoutEmptyOptions(out.ProtoReflect())
	return out
}

func withoutEmptyOptions(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				withoutEmptyOptions(v.List().Get(i).Message())
			}
		case f.Name() == "options" && proto.Size(v.Message().Interface()) == 0:
			m.Clear(f)
		}
		return true
	})
}

// sortNested puts the messages of maps and groups behind the others: where they are declared says
// nothing.
func sortNested(m *descriptorpb.DescriptorProto) {
	for _, n := range m.NestedType {
		sortNested(n)
	}
	sorted := make([]*descriptorpb.DescriptorProto, 0, len(m.NestedType))
	for _, maps := range []bool{false, true} {
		for _, n := range m.NestedType {
			if n.GetOptions().GetMapEntry() == maps {
				sorted = append(sorted, n)
			}
		}
	}
	m.NestedType = sorted
}

func TestComments(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "odd.proto")
	if err := os.WriteFile(file, []byte(odd), 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := protofile.Compile(t.Context(), []string{dir}, []string{file})
	if err != nil {
		t.Fatal(err)
	}
	texts, err := protoprint.Files(&descriptorpb.FileDescriptorSet{File: set.Files})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"// Svc has no methods.\nservice Svc {}\n", "// M is a message\n// with two lines.\nmessage M {\n", "  // odd is not a package here.\n"} {
		if !strings.Contains(string(texts["odd.proto"]), want) {
			t.Errorf("%q is missing in\n%s", want, texts["odd.proto"])
		}
	}
}
