package command_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/command"
)

const shopProto = "syntax = \"proto3\";\npackage shop;\nservice Shop { rpc Buy(Thing) returns (Thing); }\nmessage Thing { string name = 1; }\n"

// project makes a new module with a contract the working directory.
func project(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	put(t, "go.mod", "module example.com/m\n")
	put(t, "shop.proto", shopProto)
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGen(t *testing.T) {
	project(t)
	run(t, "gen", "--check").expect(t, 1, "missing  shop.anser.go", "missing  shop.pb.go", "out of date: run anser gen")
	run(t, "gen").expect(t, 0, "new     shop.anser.go", "new     shop.pb.go")
	run(t, "gen").expect(t, 0, "3 files are up to date.")
	run(t, "gen", "--check").expect(t, 0, "3 files are up to date.")
	put(t, "shop.proto", strings.Replace(shopProto, "name", "title", 1))
	run(t, "gen", "shop.proto", "--check").expect(t, 1, "differs  shop.anser.go", "differs  shop.codec.go", "differs  shop.pb.go")
	put(t, "shop.proto", strings.Replace(shopProto, "string", "sting", 1))
	run(t, "gen").expect(t, 1, "shop.proto:4:17: ")
	run(t, "gen", "--check", "--watch").expect(t, 2, "exclude each other")
}

// The help names all files that can be imported from anywhere.
func TestGenHelp(t *testing.T) {
	r := run(t, "gen", "--help")
	r.expect(t, 0, "google/protobuf", "google/api/field_behavior.proto", "google/rpc/error_details.proto")
	root := "../protofile/builtin"
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if !strings.Contains(r.out, "  "+filepath.ToSlash(name)+"\n") {
			t.Errorf("%s is not in\n%s", name, r.out)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGenConfiguration(t *testing.T) {
	project(t)
	put(t, "anser.gen.yaml", "- inputs: [shop.proto]\n  out: a/b\n- inputs: [.]\n  separate: true\n")
	run(t, "gen").expect(t, 0, "new     a/b/shop.pb.go", "new     manser/shop.anser.go", "new     shop.pb.go")
	run(t, "gen", "--out", "x").expect(t, 2, "anser.gen.yaml says what to generate")
	put(t, "anser.gen.yaml", "- input: [shop.proto]\n")
	run(t, "gen").expect(t, 2, `unknown field "input"`)
	put(t, "anser.gen.yaml", "- out: x\n")
	run(t, "gen").expect(t, 2, "entry 1 has no inputs")
	run(t, "gen", "--config", "other.yaml").expect(t, 2, "no such file")
	run(t, "gen", ".", "--config", "anser.gen.yaml").expect(t, 2, "exclude each other")
}

func TestGenWatch(t *testing.T) {
	project(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	var out, errOut bytes.Buffer
	go func() { done <- command.Run(ctx, []string{"gen", "--watch"}, strings.NewReader(""), &out, &errOut) }()
	has := func(text string) {
		t.Helper()
		for by := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			code, err := os.ReadFile("shop.pb.go")
			if err == nil && bytes.Contains(code, []byte(text)) {
				return
			}
			if time.Now().After(by) {
				t.Fatalf("the code has no %s", text)
			}
		}
	}
	has("GetName()")
	put(t, "shop.proto", "syntax = \"proto3\"; message {") // a mistake does not end it
	put(t, "shop.proto", strings.Replace(shopProto, "name", "otherName", 1))
	has("GetOtherName()")
	stop()
	if code := <-done; code != 0 {
		t.Errorf("the exit code is %d: %s", code, errOut.String())
	}
}

func TestNew(t *testing.T) {
	clone, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	run(t, "new", "orders", "--proto", "--interface").expect(t, 2, "exclude each other")
	run(t, "new", "Orders", "--replace", clone).expect(t, 2, `"Orders" is not a name for a project`)
	run(t, "new").expect(t, 2, "arguments are missing")
	run(t, "new", "orders", "--proto", "--replace", clone).expect(t, 0, "orders is ready", "cd orders", "make test")
	run(t, "gen", "orders/api", "-I", "orders", "--check").expect(t, 0, "3 files are up to date.")
	run(t, "new", "orders", "--replace", clone).expect(t, 1, "orders exists and is not empty")
	// A command that is built with -trimpath does not know its clone.
	if r := run(t, "new", "parcels"); r.code != 0 {
		r.expect(t, 2, "say with --replace in which folder Anser is")
	}
}
