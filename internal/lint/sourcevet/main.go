// Platforms type-checks packages, with their tests, as other systems compile them:
//
//	platforms -for darwin/arm64,windows/amd64 PATTERN…
//
// It reads all that they import from source, in place of compiling it: that is several times less
// work, most of it for modules of others. Cgo is off.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	targets := flag.String("for", "", "GOOS/GOARCH of each `system`, with commas between them")
	flag.Parse()
	failed := false
	for target := range strings.SplitSeq(*targets, ",") {
		n, faults, err := check(target, flag.Args())
		if err != nil {
			fmt.Fprintln(os.Stderr, "platforms:", err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages\n", target, n)
		for _, fault := range faults {
			failed = true
			fmt.Println(fault)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the number of packages and what keeps them from compiling.
func check(target string, patterns []string) (n int, faults []string, err error) {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return 0, nil, fmt.Errorf("%q is not GOOS/GOARCH", target)
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Env:   append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor),
		Tests: true,
	}, patterns...)
	if err != nil {
		return 0, nil, err
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			faults = append(faults, fmt.Sprintf("%s: %v", p.ID, e))
		}
	}
	return len(loaded), faults, nil
}
