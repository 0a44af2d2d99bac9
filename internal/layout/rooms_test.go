package layout_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The rooms of the root package are the prefixes of its file names. A file without one of these
// prefixes belongs to the surface, what a user sees of both sides: either to the facade, typed
// functions and options above everything else, or to the base, types that all rooms share.
const (
	facade = "facade"
	base   = "base"
)

var (
	prefixes    = []string{"client", "conn", "server", "session", "stream"}
	facadeFiles = []string{"call.go", "method.go", "method_stream.go", "oneway.go", "option.go", "option_forward.go", "stream.go"}
)

// mayName says which rooms the files of a room may name, besides their own.
var mayName = map[string][]string{
	"conn":    {"stream"}, // a writer and the credit of its streams share a lock
	base:      {"conn"},
	"stream":  {base, "conn"},
	"client":  {base, "conn", "stream"},
	"server":  {base, "conn", "stream", "session"},
	"session": {base, "conn", "stream", "client", "server"}, // a server that calls its clients
	facade:    {base, "conn", "stream", "client", "server", "session"},
}

// largestKnot is the number of files in the largest set of files that all depend on each other.
// These are the files of the server and its sessions. The number may only fall.
const largestKnot = 39

// room returns the room of a file of the root package.
func room(file string) string {
	if slices.Contains(facadeFiles, file) {
		return facade
	}
	prefix, _, _ := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
	if slices.Contains(prefixes, prefix) {
		return prefix
	}
	return base
}

func TestRoomsOfTheRoot(t *testing.T) {
	graph := make(map[string]map[string]bool)
	for _, r := range references(t) {
		from, to := room(r.from), room(r.to)
		if from != to && !slices.Contains(mayName[from], to) {
			t.Errorf("%s: %s may not name %s; move what both need into a file of the base or of conn, or declare an interface where it is used", r, from, to)
		}
		if graph[r.from] == nil {
			graph[r.from] = make(map[string]bool)
		}
		graph[r.from][r.to] = true
	}
	switch knot := components(graph)[0]; {
	case len(knot) > largestKnot:
		t.Errorf("%d files depend on each other in a circle, %d did before: %s", len(knot), largestKnot, strings.Join(knot, " "))
	case len(knot) < largestKnot:
		t.Errorf("only %d files depend on each other in a circle now: lower largestKnot, so that it stays that way", len(knot))
	}
}

// longFiles are the files of more than maxLines lines, each with its reason.
var longFiles = map[string]string{}

const maxLines = 500

func TestLongFilesHaveAReason(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		switch lines, known := bytes.Count(text, []byte("\n")), longFiles[name] != ""; {
		case lines > maxLines && !known:
			t.Errorf("%s has %d lines: cut it, or give it a reason in longFiles", name, lines)
		case lines <= maxLines && known:
			t.Errorf("%s has %d lines and needs no reason any more: take it out of longFiles", name, lines)
		}
	}
}

// reference is a name that a file uses and another file of the package declares.
type reference struct {
	from, to string // files
	name     string
}

func (r reference) String() string { return fmt.Sprintf("%s uses %s of %s", r.from, r.name, r.to) }

// references returns the references between the files of the root package, without duplicates.
func references(t *testing.T) []reference {
	t.Helper()
	fset, files, info := checkRoot(t)
	home := make(map[types.Object]string) // the file that declares an object
	for _, f := range files {
		name := filepath.Base(fset.Position(f.Pos()).Filename)
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if o := info.Defs[id]; o != nil {
					home[o] = name
				}
			}
			return true
		})
	}
	found := make(map[reference]bool)
	for _, f := range files {
		name := filepath.Base(fset.Position(f.Pos()).Filename)
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := info.Uses[id]
			switch x := o.(type) {
			case *types.Func:
				o = x.Origin()
			case *types.Var:
				o = x.Origin()
			}
			if to := home[o]; o != nil && to != "" && to != name {
				found[reference{name, to, id.Name}] = true
			}
			return true
		})
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b reference) int { return strings.Compare(a.String(), b.String()) })
}

// checkRoot parses and type-checks the root package as it is built on Linux, once.
func checkRoot(t *testing.T) (*token.FileSet, []*ast.File, *types.Info) {
	t.Helper()
	checkedRoot.once.Do(func() {
		checkedRoot.fset, checkedRoot.files, checkedRoot.info = typeCheckRoot(t)
	})
	if checkedRoot.info == nil {
		t.Fatal("the root package could not be checked")
	}
	return checkedRoot.fset, checkedRoot.files, checkedRoot.info
}

var checkedRoot struct {
	once  sync.Once
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

func typeCheckRoot(t *testing.T) (*token.FileSet, []*ast.File, *types.Info) {
	t.Helper()
	list := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOWORK=off")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, &stderr)
		}
		return string(out)
	}
	exports := make(map[string]string)
	for line := range strings.Lines(list("-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[path] = file
		}
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range strings.Fields(list("-f", `{{join .GoFiles " "}}`, ".")) {
		f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object), Types: make(map[ast.Expr]types.TypeAndValue)}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	if _, err := config.Check(core, fset, files, info); err != nil {
		t.Fatal(err)
	}
	return fset, files, info
}

// components returns the strongly connected components of a graph, the largest first (Tarjan,
// 1972).
func components(graph map[string]map[string]bool) [][]string {
	index, low := make(map[string]int), make(map[string]int)
	on := make(map[string]bool)
	var stack []string
	var found [][]string
	var visit func(v string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack = append(stack, v)
		on[v] = true
		for w := range graph[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		i := slices.Index(stack, v)
		part := slices.Clone(stack[i:])
		stack = stack[:i]
		for _, w := range part {
			on[w] = false
		}
		slices.Sort(part)
		found = append(found, part)
	}
	for v := range graph {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.SortFunc(found, func(a, b []string) int { return len(b) - len(a) })
	return found
}
