package layout_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLinked is the maximum number of packages of other modules linked by a program that imports
// only the root package.
const maxLinked = 34

func TestCoreIsLight(t *testing.T) {
	if !slices.ContainsFunc(sources(t), func(s source) bool { return s.path == "." }) {
		t.Log("there is no root package to weigh yet")
		return
	}
	linked := slices.DeleteFunc(linkedBy(t, core), func(path string) bool { return path == core || strings.HasPrefix(path, core+"/") })
	if len(linked) > maxLinked {
		t.Errorf("the root package links %d packages of other modules: want %d at most\n%s",
			len(linked), maxLinked, strings.Join(linked, "\n"))
	}
}

// forbidden are trees that may be used only in modules of their own, not in the core.
var forbidden = []string{"go.etcd.io", "google.golang.org/grpc", "go.opentelemetry.io/otel/sdk"}

func TestCoreLinksNoHeavyTree(t *testing.T) {
	for _, path := range linkedBy(t, "./...") {
		for _, tree := range forbidden {
			if path == tree || strings.HasPrefix(path, tree+"/") {
				t.Errorf("the core module links %s: put what needs it into a module of its own", path)
			}
		}
	}
}

// linkedBy returns the packages beyond the standard library linked by a program with these
// packages. Only the core's go.mod applies: in a workspace other modules would raise its versions.
func linkedBy(t *testing.T, packages string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", packages)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, &stderr)
	}
	return strings.Fields(string(out))
}

// aService is a program with a server and a client whose methods are known when it is compiled.
const aService = `package main

import (
	"context"
	"log"

	"github.com/anser-rpc/anser"
)

type args struct{ A, B int }

const add anser.Method[args, int] = "Arith.Add"

func main() {
	s := anser.NewServer()
	err := add.Handle(s, func(_ context.Context, in *args) (*int, error) { return new(in.A + in.B), nil })
	if err != nil {
		log.Fatal(err)
	}
	go s.ListenAndServe("127.0.0.1:8972")
	c, err := anser.Dial("127.0.0.1:8972")
	if err != nil {
		log.Fatal(err)
	}
	log.Println(add.Call(context.Background(), c, &args{1, 2}))
}
`

// withProtocols is a server of all protocols.
const withProtocols = `package main

import (
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

func main() {
	log.Fatal(anser.NewServer(protocols.All()).ListenAndServe("127.0.0.1:8972"))
}
`

// The linker leaves out the methods that a program does not use, unless a function of the program
// looks for methods by numbers, or by names that are no constants, as text/template does. Then it
// keeps all exported methods of all types, which made these programs a sixth larger.
// Server.Register needs that, and a program without it must not pay for it.
func TestUnusedMethodsAreNotLinked(t *testing.T) {
	for name, source := range map[string]struct{ module, text string }{
		"service": {".", aService}, "protocols": {"protocols", withProtocols},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, "main.go")
			if err := os.WriteFile(program, []byte(source.text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(dir, "program"), program)
			cmd.Dir = filepath.Join(root, source.module)
			cmd.Env = append(os.Environ(), "GOWORK=off")
			out, err := cmd.CombinedOutput() // what refers to what
			if err != nil {
				t.Fatalf("%s: %v\n%s", cmd, err, out[:min(len(out), 2000)])
			}
			if !bytes.Contains(out, []byte("main.main -> "+core+".NewServer")) {
				t.Fatalf("this test no longer understands the output of the linker: %s", out[:min(len(out), 2000)])
			}
			names := regexp.MustCompile(`\S+ <ReflectMethod>`).FindAllString(string(out), -1)
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				t.Errorf("%s looks for methods: use constant names, or keep it from programs that do not need it", name)
			}
		})
	}
}
