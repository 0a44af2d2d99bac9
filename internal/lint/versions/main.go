// Versions makes all modules of the repository require the same version of each dependency.
// go.work builds every module with the highest version that any of them requires; without this
// check a user of one module would build it with versions that no test has used.
//
//	versions FILE…         report differences between the go.mod files, and fail if there are any
//	versions -apply FILE…  require the highest version everywhere, and tidy all modules
//
// The highest version in use is the right one. A go.mod file can exempt one requirement with the
// comment "own version: REASON" on its line, or itself with a line "// versions of its own:
// REASON" at the top. Exceptions are not reported, and no other module is raised to their
// versions.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

func main() {
	apply := flag.Bool("apply", false, "require the highest version everywhere")
	flag.Parse()
	if err := run(*apply, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

// rounds is how often -apply starts again: a raised version can require higher ones of others.
const rounds = 10

func run(apply bool, names []string) error {
	different, err := compare(names)
	if err != nil {
		return err
	}
	if !apply {
		if len(different) == 0 {
			return nil
		}
		return report(different)
	}
	for range rounds {
		if err := raise(different); err != nil {
			return err
		}
		for _, name := range names { // including unchanged modules that require a changed one
			if err := goCommand(filepath.Dir(name), "mod", "tidy"); err != nil {
				return fmt.Errorf("%s: go mod tidy: %w", name, err)
			}
		}
		if different, err = compare(names); err != nil || len(different) == 0 {
			return err
		}
	}
	return report(different)
}

func report(different []requirement) error {
	for _, r := range different {
		fmt.Printf("%s requires %s %s, others %s\n", r.file, r.path, r.version, r.highest)
	}
	return fmt.Errorf("%d requirements differ: make deps raises those that are behind, the others need a reason", len(different))
}

// requirement is a line of a go.mod file.
type requirement struct {
	file, path, version string
	own                 bool   // the file has an exception
	highest             string // in all files; set by compare
}

// read returns the requirements of the files, except of files with an exception, and except of
// modules that a replace directive finds in the repository.
func read(names []string) ([]requirement, error) {
	var all []requirement
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if excepted(data) {
			continue
		}
		f, err := modfile.Parse(name, data, nil)
		if err != nil {
			return nil, err
		}
		for _, r := range f.Require {
			local := slices.ContainsFunc(f.Replace, func(p *modfile.Replace) bool {
				return p.Old.Path == r.Mod.Path && p.New.Version == ""
			})
			if !local {
				all = append(all, requirement{file: name, path: r.Mod.Path, version: r.Mod.Version, own: own(r)})
			}
		}
	}
	return all, nil
}

// excepted reports whether a go.mod file has an exception with a reason.
func excepted(data []byte) bool {
	for line := range bytes.Lines(data) {
		reason, found := bytes.CutPrefix(line, []byte("// versions of its own: "))
		if found && len(bytes.TrimSpace(reason)) > 0 {
			return true
		}
	}
	return false
}

// own reports whether the line of a requirement has an exception with a reason.
func own(r *modfile.Require) bool {
	for _, c := range r.Syntax.Suffix {
		if _, reason, found := strings.Cut(c.Token, "own version: "); found && strings.TrimSpace(reason) != "" {
			return true
		}
	}
	return false
}

// compare returns the requirements that differ from the highest version, in the order of the
// files.
func compare(names []string) ([]requirement, error) {
	all, err := read(names)
	if err != nil {
		return nil, err
	}
	exceptions := make(map[string]bool) // path@version
	for _, r := range all {
		if r.own {
			exceptions[r.path+"@"+r.version] = true
		}
	}
	highest := make(map[string]string)
	for _, r := range all {
		if !exceptions[r.path+"@"+r.version] && (highest[r.path] == "" || semver.Compare(r.version, highest[r.path]) > 0) {
			highest[r.path] = r.version
		}
	}
	var different []requirement
	for _, r := range all {
		if r.highest = highest[r.path]; !r.own && r.version != r.highest {
			different = append(different, r)
		}
	}
	return different, nil
}

// raise updates outdated requirements. It lowers none: a dependency requires the higher version.
func raise(different []requirement) error {
	edits := make(map[string][]string)
	for _, r := range different {
		if semver.Compare(r.version, r.highest) < 0 {
			edits[r.file] = append(edits[r.file], "-require="+r.path+"@"+r.highest)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		fmt.Println(name, strings.Join(edits[name], " "))
		if err := goCommand(filepath.Dir(name), append([]string{"mod", "edit"}, edits[name]...)...); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs the go command in a folder, outside of the workspace.
func goCommand(folder string, arguments ...string) error {
	cmd := exec.Command("go", arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	return cmd.Run()
}
