// Release creates the commit and the tags of a version.
//
// The repository contains several modules, which refer to each other by replace directives. A
// published module must not have any: go install rejects them, and go get ignores them. The commit
// of a release has none: each published module requires the others in the released version, with
// their checksums. Only the tags refer to it, and the branch keeps the replace directives.
//
//	release -version v0.1.0 -dry-run               show what would be tagged, and what is missing
//	release -version v0.1.0                        create the commit and the tags in this repository
//	release -version v0.1.0 -dry-run -proxy DIR    also write all modules into a file proxy
//
// Nothing is pushed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

func main() {
	var o options
	flag.StringVar(&o.version, "version", "", "the version to release, such as v0.1.0")
	flag.BoolVar(&o.dryRun, "dry-run", false, "do not change the repository")
	flag.StringVar(&o.proxy, "proxy", "", "a folder to write all modules into, for GOPROXY=file://…")
	flag.StringVar(&o.repo, "repo", ".", "the repository")
	flag.StringVar(&o.revision, "revision", "HEAD", "the commit to release")
	flag.Parse()
	if err := release(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type options struct {
	version, proxy, repo, revision string
	dryRun                         bool
}

// release creates the commit in a clone, and fetches it with its tags after everything has
// succeeded.
func release(out io.Writer, o options) error {
	if o.version == "" || semver.Canonical(o.version) != o.version || semver.Build(o.version) != "" {
		return fmt.Errorf("the version %q is not of the form v1.2.3 or v1.2.3-rc.1: give it with -version", o.version)
	}
	if major := semver.Major(o.version); major != "v0" && major != "v1" {
		return fmt.Errorf("version %s needs module paths that end in /%s: change them first", o.version, major)
	}
	missing, err := unprepared(o)
	if err != nil {
		return err
	}
	if len(missing) > 0 && !o.dryRun {
		return errors.New(strings.Join(missing, "\n"))
	}
	clone, err := os.MkdirTemp("", "anser-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(clone)
	modules, err := prepare(o, clone)
	if err != nil {
		return err
	}
	if err := o.takeOver(clone, modules); err != nil {
		return err
	}
	report(out, o, modules, missing)
	return nil
}

// unprepared lists what must be done before the release, in addition to the work of this program.
func unprepared(o options) (missing []string, err error) {
	changes, err := git(o.repo, "show", o.revision+":CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	if !regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(o.version) + `( |$)`).MatchString(changes) {
		missing = append(missing, fmt.Sprintf("CHANGELOG.md has no heading \"## %s\": rename Unreleased, and commit", o.version))
	}
	if status, err := git(o.repo, "status", "--porcelain"); err != nil {
		return nil, err
	} else if status != "" {
		missing = append(missing, "there are changes that are not committed: commit or remove them")
	}
	if tags, err := git(o.repo, "tag", "--list", o.version, "*/"+o.version); err != nil {
		return nil, err
	} else if tags != "" {
		missing = append(missing, fmt.Sprintf("the version %s has been tagged: choose the next one", o.version))
	}
	return missing, nil
}

// prepare creates the commit of the release in a clone, and returns its modules in the order of
// their requirements.
func prepare(o options, clone string) ([]*published, error) {
	revision, err := git(o.repo, "rev-parse", "--verify", o.revision+"^{commit}")
	if err != nil {
		return nil, err
	}
	repo, err := filepath.Abs(o.repo)
	if err != nil {
		return nil, err
	}
	if _, err := git(repo, "clone", "--quiet", "--shared", "--no-checkout", repo, clone); err != nil {
		return nil, err
	}
	if _, err := git(clone, "checkout", "--quiet", "--detach", strings.TrimSpace(revision)); err != nil {
		return nil, err
	}
	modules, err := load(clone, o.version)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := m.requirePublished(modules, o.version); err != nil {
			return nil, err
		}
	}
	if err := commit(clone, "release "+o.version); err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := m.seal(clone, o); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return modules, nil
}

// takeOver fetches the commit of the clone into the repository, with its tags.
func (o options) takeOver(clone string, modules []*published) error {
	if o.dryRun {
		return nil
	}
	args := []string{"fetch", "--quiet", "--no-tags", clone}
	for _, m := range modules {
		tag := m.tag(o.version)
		if _, err := git(clone, "tag", "-a", "-m", m.path+" "+o.version, tag); err != nil {
			return err
		}
		args = append(args, "refs/tags/"+tag+":refs/tags/"+tag)
	}
	_, err := git(o.repo, args...)
	return err
}

func report(out io.Writer, o options, modules []*published, missing []string) {
	push := "git push --atomic origin"
	for _, m := range modules {
		fmt.Fprintf(out, "%s@%s %s\n", m.path, o.version, m.sum)
		push += " " + m.tag(o.version)
	}
	for _, what := range missing {
		fmt.Fprintln(out, "before the release:", what)
	}
	if o.dryRun {
		fmt.Fprintf(out, "%d modules; nothing was tagged\n", len(modules))
		return
	}
	fmt.Fprintf(out, "%d modules are tagged; publish them with:\n%s\n", len(modules), push)
}

// git runs a git command in a folder and returns its output.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}

// commit commits everything in the clone, as the author of its last commit if git has no other
// identity.
func commit(clone, message string, flags ...string) error {
	args := append([]string{"commit", "--quiet", "--all", "-m", message}, flags...)
	if _, err := git(clone, "var", "GIT_COMMITTER_IDENT"); err != nil {
		args = append([]string{"-c", "user.name=anser", "-c", "user.email=anser@localhost"}, args...)
	}
	_, err := git(clone, args...)
	return err
}

// versionOf returns a module in the released version.
func (o options) versionOf(m *published) module.Version {
	return module.Version{Path: m.path, Version: o.version}
}
