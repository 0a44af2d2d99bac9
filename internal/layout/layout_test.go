package layout_test

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A rule lists the packages of this repository that a package may import, except in tests. "x/**"
// is every package below x, and "**" is every package. Internal packages of a part are not listed:
// the compiler restricts their use.
type rule struct {
	packages string
	may      []string
	standard bool // nothing from outside but the standard library
}

// The parts that everything above the root package may use.
var (
	leaves = []string{"balance", "registry", "codec", "codec/**", "compress", "compress/**", "contract", "contract/**", "wire"}
	above  = append([]string{".", "internal/**"}, leaves...)
)

// rules is the architecture: commands and extensions import the root package, the root package
// imports the leaves, and a leaf imports nothing. The first matching rule applies. A package
// without a rule fails the test, so a new part of the repository starts with a line here.
var rules = []rule{
	{packages: "wire", standard: true},
	{packages: "codec", standard: true},
	{packages: "codec/gob", may: []string{"codec", "internal/gobwire"}},
	{packages: "codec/codectest/calltest", may: above},
	{packages: "codec/tuple", may: []string{"codec", "codec/**"}},
	{packages: "codec/protobuf/**", may: []string{"codec", "codec/protobuf/pbrt"}},
	{packages: "codec/protobuf", may: []string{"codec", "codec/protobuf/pbrt"}},
	{packages: "codec/msgpack", may: []string{"codec", "codec/msgpack/mprt"}},
	{packages: "codec/**", may: []string{"codec"}},
	{packages: "contract", standard: true},
	{packages: "contract/**", may: []string{"contract"}},
	{packages: "compress"},
	{packages: "compress/all", may: []string{"compress", "compress/**"}},
	{packages: "compress/**", may: []string{"compress"}},
	{packages: "registry", standard: true},
	{packages: "registry/embedded", may: []string{"registry", "registry/etcd"}},
	{packages: "registry/internal/regtest", may: []string{"registry", "internal/authority", "internal/awake"}},
	{packages: "registry/registrytest", may: []string{"registry", "internal/awake"}},
	{packages: "registry/**", may: []string{"registry", "internal/servers"}},
	{packages: "balance", may: []string{"registry"}, standard: true},
	{packages: "balance/**", may: []string{"balance", "registry"}},
	{packages: "internal/test/**", may: []string{"**"}},
	{packages: "internal/wirepeer", may: []string{"wire"}},
	{packages: "internal/lastknown", may: []string{"registry"}},                                                                // it saves instances
	{packages: "internal/cluster", may: []string{"balance", "registry", "internal/loglimit", "internal/mono"}, standard: true}, // not the root package: it knows no calls
	{packages: "internal/benchpb", may: []string{"codec/protobuf/pbrt"}},                                                       // its messages have generated code
	{packages: "internal/conformance", may: []string{"codec/protobuf", "codec/protobuf/pbrt"}},
	{packages: "internal/rawjson", may: []string{"codec"}},
	{packages: "internal/introspect", may: above},                               // it calls servers
	{packages: "internal/semconv", may: []string{"wire"}},                       // codes have their names there
	{packages: "internal/jsonschema", may: []string{"contract", "internal/**"}}, // it describes messages of contracts
	{packages: "internal/**", may: []string{"internal/**"}},

	{packages: ".", may: append([]string{"internal/**"}, leaves...)},

	{packages: "ansertest", may: above},
	{packages: "auth", may: above},
	{packages: "auth/**", may: append([]string{"auth"}, above...)},
	{packages: "interceptor/ratelimit/redis", may: append([]string{"interceptor/ratelimit"}, above...)},
	{packages: "interceptor/**", may: above},
	{packages: "telemetry", may: above},
	{packages: "route", may: above},
	{packages: "fanout", may: above},
	{packages: "filetransfer", may: above},
	{packages: "netrpc", may: above},
	{packages: "grpcstubs", may: above},
	{packages: "connectstubs", may: above},
	{packages: "connectstubs/internal/**"},
	{packages: "netrpc/jsonrpc", may: append([]string{"netrpc"}, above...)},
	{packages: "protocols", may: append([]string{"netrpc", "netrpc/jsonrpc"}, above...)},
	{packages: "protocols/internal/h2", may: []string{"internal/**"}}, // bytes and connections, not Anser
	{packages: "protocols/internal/**", may: above},
	{packages: "mcp", may: append([]string{"protocols"}, above...)},
	{packages: "telemetry/**", may: append([]string{"telemetry"}, above...)},
	{packages: "admin", may: append([]string{"telemetry"}, above...)},
	{packages: "record", may: above},
	{packages: "transport/**", may: above},
	{packages: "gateway", may: append([]string{"protocols", "route", "auth", "auth/jwt", "interceptor/**", "record", "transport/**"}, above...)},
	{packages: "gateway/**", may: above},
	{packages: "console", may: append([]string{"console/ui"}, above...)},
	{packages: "console/**", may: above},

	{packages: "cmd/**", may: []string{"**"}},
	{packages: "examples/**", may: []string{"**"}},
	{packages: "arena/**", may: []string{"**"}},
	{packages: "e2e/**", may: []string{"**"}},
	{packages: "e2e", may: []string{"**"}},
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		if s.program() {
			continue // it is never imported, so it may import anything
		}
		for _, f := range s.files {
			for _, spec := range f.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if err := checkImport(s.path, path); err != nil {
					t.Errorf("%s: %v", s.fset.Position(spec.Pos()), err)
				}
			}
		}
		if _, err := ruleFor(s.path); err != nil {
			t.Error(err)
		}
	}
}

// Packages of the core module that only test are in internal/test, where they do not look like an
// API, and nothing else is.
func TestTestsAloneAreInOnePlace(t *testing.T) {
	for _, s := range sources(t) {
		if !s.core || s.path == "internal/layout" {
			continue
		}
		tests, err := filepath.Glob(filepath.Join(root, s.path, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		code := slices.ContainsFunc(s.files, func(f *ast.File) bool { return len(f.Decls) > 0 })
		if alone := len(tests) > 0 && !code; alone != match("internal/test/**", s.path) {
			t.Errorf("package %s has %d files of tests, and other code: %v; what only tests is in internal/test, and nothing else is", s.path, len(tests), code)
		}
	}
}

// No implicit registration: codecs, compressors and registries are passed in.
func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		if !s.core {
			continue
		}
		for _, f := range s.files {
			if ast.IsGenerated(f) {
				continue
			}
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: package %s has an init function: pass what it sets up in instead",
						s.fset.Position(d.Pos()), s.path)
				}
			}
		}
	}
}

func ruleFor(path string) (rule, error) {
	for _, r := range rules {
		if match(r.packages, path) {
			return r, nil
		}
	}
	return rule{}, fmt.Errorf("package %s has no rule: say in internal/layout what it may import", path)
}

// checkImport returns an error if the package may not import the path.
func checkImport(pkg, path string) error {
	r, err := ruleFor(pkg)
	if err != nil {
		return nil //nits:ignore nilerr reported once for the package
	}
	ours := path == core || strings.HasPrefix(path, core+"/")
	switch {
	case ours && strings.Contains(relative(path), "/internal/"):
		return nil
	case ours && !slices.ContainsFunc(r.may, func(p string) bool { return match(p, relative(path)) }):
		return fmt.Errorf("%s may not import %s: want one of %q", pkg, relative(path), r.may)
	case !ours && r.standard && !standard(path):
		return fmt.Errorf("%s may not import %s: want the standard library only", pkg, path)
	case pkg == "wire" && (path == "net" || strings.HasPrefix(path, "net/")):
		return fmt.Errorf("wire may not import %s: it works on bytes only", path)
	}
	return nil
}

// match reports whether the pattern of a rule covers the package.
func match(pattern, path string) bool {
	if pattern == "**" {
		return true
	}
	if parent, ok := strings.CutSuffix(pattern, "/**"); ok {
		return strings.HasPrefix(path, parent+"/")
	}
	return path == pattern
}

// standard reports whether the import path belongs to the standard library: its first element has
// no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// The rules reject the imports that they are meant to reject.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		pkg, path string
		ok        bool
	}{
		{"wire", "encoding/binary", true},
		{"wire", "net", false},
		{"wire", "net/http", false},
		{"wire", "github.com/pierrec/lz4/v4", false},
		{"wire", core + "/codec", false},
		{"codec/protobuf", core + "/codec", true},
		{"codec/protobuf", "google.golang.org/protobuf/proto", true},
		{"codec/protobuf", core, false},
		{"codec/protobuf", core + "/codec/msgpack", false},
		{"codec/protobuf", core + "/codec/protobuf/internal/testpb", true},
		{"codec/protobuf", core + "/internal/benchpb", false},
		{"registry/etcd", core + "/registry", true},
		{"registry/etcd", core, false},
		{"balance", core + "/registry", true},
		{"balance", core + "/registry/etcd", false},
		{"registry", core + "/balance", false},
		{".", core + "/balance", true},
		{".", core + "/codec/protobuf", true},
		{".", core + "/registry/etcd", false},
		{".", core + "/interceptor/retry", false},
		{".", core + "/gateway", false},
		{".", core + "/console", false},
		{"interceptor/retry", core, true},
		{"interceptor/retry", core + "/interceptor/breaker", false},
		{"interceptor/retry", core + "/gateway", false},
		{"console/internal/sessions", core, true},
		{"console", core + "/console/internal/sessions", true},
		{"console", core + "/gateway", false},
		{"cmd/anser", core + "/registry/etcd", true},
	} {
		if err := checkImport(c.pkg, c.path); (err == nil) != c.ok {
			t.Errorf("%s imports %s: allowed is %v (%v), want %v", c.pkg, c.path, err == nil, err, c.ok)
		}
	}
	if _, err := ruleFor("utils"); err == nil {
		t.Error("a package without a rule passes")
	}
}
