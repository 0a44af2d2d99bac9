package layout_test

import (
	"bytes"
	"os"
	"os/exec"
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
