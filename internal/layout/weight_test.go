package layout_test

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// maxLinked is the most packages of other modules that a program with nothing but the root package
// may link.
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

// forbidden are trees that belong into modules of their own, whatever part of the core wants them.
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

// linkedBy returns the packages beyond the standard library that a program with the packages links.
// The core alone decides: in a workspace other modules would raise its versions.
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
