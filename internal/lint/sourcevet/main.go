// Sourcevet runs what go vet runs on packages and their tests, as certain systems compile them:
//
//	sourcevet -for darwin/arm64,windows/amd64 PATTERN…
//
// It reads all that they import from source, in place of compiling it first: that is several times
// less work, most of it for modules of others. Cgo is off.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	systems := flag.String("for", "", "GOOS/GOARCH of each `system`, with commas between them")
	flag.Parse()
	failed := false
	for system := range strings.SplitSeq(*systems, ",") {
		n, faults, err := check(system, flag.Args())
		if err != nil {
			fmt.Fprintf(os.Stderr, "sourcevet: %s: %v\n", system, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages\n", system, n)
		for _, fault := range faults {
			failed = true
			fmt.Println(fault)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the number of packages, and what the compiler and go vet would say about them. Of
// what they import only the compiler counts.
func check(system string, patterns []string) (n int, faults []string, err error) {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return 0, nil, fmt.Errorf("this is not GOOS/GOARCH")
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Env:   append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
		Tests: true,
	}, patterns...)
	if err != nil {
		return 0, nil, err
	}
	if len(loaded) == 0 {
		return 0, nil, fmt.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			faults = append(faults, fmt.Sprintf("%s: %v", p.ID, e))
		}
	})
	if len(faults) > 0 {
		return len(loaded), faults, nil
	}
	graph, err := checker.Analyze(vet.Suite, loaded, nil)
	if err != nil {
		return 0, nil, err
	}
	for _, a := range graph.Roots {
		if a.Err != nil {
			return 0, nil, fmt.Errorf("%s of %s: %w", a.Analyzer, a.Package, a.Err)
		}
		for _, d := range a.Diagnostics {
			faults = append(faults, fmt.Sprintf("%s: %s", a.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	slices.Sort(faults)
	return len(loaded), slices.Compact(faults), nil // a package and its tests have files in common
}
