package protofile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/protofile"
)

// folder writes files into a new folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// head are the first lines of a file in each version of the language.
var heads = map[string]string{
	"proto2": `syntax = "proto2";`, "proto3": `syntax = "proto3";`,
	"2023": `edition = "2023";`, "2024": `edition = "2024";`,
}

const body = `
package shop;
import "anser/options.proto";
import "google/api/annotations.proto";
import "google/protobuf/empty.proto";
import "google/rpc/status.proto";
// Shop sells.
service Shop {
  // Get gets.
  rpc Get(Thing) returns (Thing) { option (google.api.http) = { get: "/things/{name}" }; option idempotency_level = NO_SIDE_EFFECTS; }
  rpc Note(Thing) returns (google.protobuf.Empty) { option (anser.oneway) = true; }
}
message Thing { map<string, int32> counts = 2; repeated Thing more = 3; repeated google.rpc.Status status = 4; }
`

func TestEveryVersionOfTheLanguage(t *testing.T) {
	for version, head := range heads {
		t.Run(version, func(t *testing.T) {
			dir := folder(t, map[string]string{"api/shop.proto": head + body})
			set, err := protofile.Compile(t.Context(), []string{dir}, []string{filepath.Join(dir, "api/shop.proto")})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(set.Names, []string{"api/shop.proto"}) {
				t.Errorf("the names are %v", set.Names)
			}
			schema, err := set.Schema()
			if err != nil {
				t.Fatal(err)
			}
			s := schema.Service("shop.Shop")
			if s == nil || s.Doc != "Shop sells." || s.At.Line != 8 {
				t.Fatalf("the service is %+v", s)
			}
			if get := s.Method("Get"); !get.Idempotent || get.Doc != "Get gets." || get.At.String() != "api/shop.proto:10:3" {
				t.Errorf("Get is %+v", get)
			}
			if !s.Method("Note").Oneway {
				t.Error("Note is not oneway")
			}
			seen := make(map[string]bool)
			for _, f := range set.Files {
				for _, in := range f.GetDependency() {
					if !seen[in] {
						t.Errorf("%s comes before %s, which it imports", f.GetName(), in)
					}
				}
				seen[f.GetName()] = true
			}
		})
	}
}

// Each mistake is reported with its place and what to do.
func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		stableOnly       bool
	}{
		{name: "syntax", text: "message A { string = 1; }", want: "a.proto:2:"},
		{name: "unknown type", text: "message A { B b = 1; }", want: "a.proto:2:13"},
		{name: "number twice", text: "message A { int32 a = 1; int32 b = 1; }", want: "a.proto:2:"},
		{name: "name twice", text: "message A { int32 a = 1; int32 a = 2; }", want: "a.proto:2:"},
		{name: "defined twice", text: "message A {} message A {}", want: "a.proto:2:"},
		{name: "missing import", text: `import "b.proto";`, want: `import "b.proto" is in none of the import paths`},
		{name: "import elsewhere", text: `import "deep/b.proto";`, want: "add -I "},
		{name: "cycle", text: `import "cycle.proto";`, want: "cycl"},
		{name: "option", text: "message A { option nothing = 1; }", want: "a.proto:2:"},
		{name: "two mistakes", text: "message A { B b = 1;\n C c = 2; }", want: "a.proto:3:"},
	} {
		for _, version := range []string{"proto3", "2024"} {
			t.Run(test.name+"/"+version, func(t *testing.T) {
				dir := folder(t, map[string]string{
					"up/in/a.proto":     heads[version] + "\n" + test.text,
					"up/in/cycle.proto": heads[version] + "\n" + `import "a.proto";`,
					"up/deep/b.proto":   heads[version],
				})
				_, err := protofile.Compile(t.Context(), []string{filepath.Join(dir, "up/in")}, []string{filepath.Join(dir, "up/in/a.proto")})
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("the error is %v, want one with %q", err, test.want)
				}
				for line := range strings.SplitSeq(err.Error(), "\n") {
					if !strings.HasPrefix(line, filepath.Join(dir, "up/in")) {
						t.Errorf("the line %q does not begin with the file", line)
					}
				}
			})
		}
	}
}

func TestFilesOutsideOfTheImportPaths(t *testing.T) {
	dir := folder(t, map[string]string{"a/x.proto": heads["proto3"], "b/y.proto": heads["proto3"]})
	_, err := protofile.Compile(t.Context(), []string{filepath.Join(dir, "a")}, []string{filepath.Join(dir, "b/y.proto")})
	if err == nil || !strings.Contains(err.Error(), "is in none of the import paths") {
		t.Errorf("a file outside: %v", err)
	}
	if _, err = protofile.Compile(t.Context(), []string{filepath.Join(dir, "none")}, nil); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("an import path that does not exist: %v", err)
	}
}

// The options can be imported by programs, too: both copies of the file are the same.
func TestOptionsAreThoseOfTheLibrary(t *testing.T) {
	ours, err := os.ReadFile("builtin/anser/options.proto")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile("../../../../contract/anser/options.proto")
	if err != nil {
		t.Fatal(err)
	}
	if string(ours) != string(theirs) {
		t.Error("builtin/anser/options.proto and contract/anser/options.proto differ: copy one to the other")
	}
}
