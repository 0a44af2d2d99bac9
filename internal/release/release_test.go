package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

const repo = "../.."

// The published modules can be installed, and README's first program is complete: everything is
// published into a file proxy, from which a user with an empty folder installs it.
func TestReadmeFromThePublishedModules(t *testing.T) {
	o := options{version: "v0.0.0-test." + fmt.Sprint(time.Now().UnixNano()), dryRun: true, repo: repo, proxy: t.TempDir(), revision: workingTree(t)}
	var out bytes.Buffer
	if err := release(&out, o); err != nil {
		t.Fatal(err)
	}
	u := newUser(t, o)
	u.run("go", "mod", "init", "example.com/hello")
	u.run("go", "get", "github.com/anser-rpc/anser@"+o.version)
	address := freeAddress(t)
	programs := readmePrograms(t, address)
	for _, name := range []string{"server", "client"} {
		u.write(filepath.Join(name, "main.go"), programs[name])
	}
	u.run("go", "mod", "tidy")
	u.run("go", "build", "-o", "bin/", "./server", "./client")
	u.run("go", "install", "github.com/anser-rpc/anser/cmd/anser@"+o.version)

	server := exec.Command(filepath.Join(u.dir, "bin", "server"))
	var log bytes.Buffer
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	if got := u.run("bin/client"); got != "56\n" {
		t.Errorf("README's client prints %q, want 56; the server says %s", got, &log)
	}
	if got := u.run("bin/anser", "call", address, "Arith.Mul", `{"A": 7, "B": 8}`); !strings.Contains(got, `"C": 56`) {
		t.Errorf("anser call prints %q", got)
	}
	if got := u.run("bin/anser", "version"); !strings.Contains(got, o.version) {
		t.Errorf("anser version prints %q, want the version %s", got, o.version)
	}
	server.Process.Signal(os.Interrupt)
	if err := server.Wait(); err != nil {
		t.Errorf("README's server ends with %v after an interrupt: %s", err, &log)
	}
}

// Every module is published without replace directives, with the others in the same version.
func TestPublishedModules(t *testing.T) {
	o := options{version: "v0.9.9-rc.1", dryRun: true, repo: repo, proxy: t.TempDir(), revision: workingTree(t)}
	var out bytes.Buffer
	if err := release(&out, o); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(o.proxy, func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".mod" {
			return err
		}
		seen++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := modfile.Parse(name, text, nil)
		if err != nil {
			return err
		}
		for _, r := range f.Replace {
			t.Errorf("%s replaces %s", f.Module.Mod.Path, r.Old.Path)
		}
		for _, r := range f.Require {
			if strings.HasPrefix(r.Mod.Path, "github.com/anser-rpc/") && r.Mod.Version != o.version {
				t.Errorf("%s requires %s", f.Module.Mod.Path, r.Mod)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 || strings.Count(out.String(), "@"+o.version+" h1:") != seen {
		t.Errorf("%d modules were published:\n%s", seen, &out)
	}
}

func TestTagsReachTheRelease(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	mustGit(t, repo, "clone", "--quiet", "--shared", mustAbs(t, repo), clone)
	o := options{version: "v0.1.0", repo: clone, revision: "HEAD"}
	for _, kv := range [][2]string{{"user.name", "test"}, {"user.email", "test@localhost"}} {
		mustGit(t, clone, "config", kv[0], kv[1])
	}
	var out bytes.Buffer
	heading := regexp.MustCompile(`(?m)^## v0\.1\.0`).MatchString(mustGit(t, clone, "show", "HEAD:CHANGELOG.md"))
	if err := release(&out, o); !heading && (err == nil || !strings.Contains(err.Error(), "CHANGELOG.md has no heading")) {
		t.Fatalf("a release that CHANGELOG.md does not know: %v", err)
	}
	if !heading {
		name := filepath.Join(clone, "CHANGELOG.md")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append([]byte("## v0.1.0\n\n"), text...), 0o644); err != nil {
			t.Fatal(err)
		}
		mustGit(t, clone, "commit", "--quiet", "--all", "-m", "changelog: v0.1.0")
		if err := release(&out, o); err != nil {
			t.Fatal(err)
		}
	}
	for _, tag := range []string{"v0.1.0", "cmd/anser/v0.1.0", "registry/etcd/v0.1.0"} {
		mod := mustGit(t, clone, "show", tag+":cmd/anser/go.mod")
		if strings.Contains(mod, "=>") || !strings.Contains(mod, "github.com/anser-rpc/anser v0.1.0") {
			t.Errorf("%s has cmd/anser/go.mod:\n%s", tag, mod)
		}
	}
	if err := release(&out, o); err == nil || !strings.Contains(err.Error(), "has been tagged") {
		t.Errorf("the same release again: %v", err)
	}
}

func TestVersionsThatAreNone(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v1", "v1.2", "v1.2.3+meta", "v01.2.3", "v2.0.0", "latest"} {
		if err := release(new(bytes.Buffer), options{version: version, dryRun: true, repo: repo, revision: "HEAD"}); err == nil {
			t.Errorf("version %q was taken", version)
		}
	}
}

// workingTree returns a commit with the working tree's changes to tracked files.
func workingTree(t *testing.T) string {
	t.Helper()
	// The command locks the index, which others may do at the same time.
	index, err := exec.Command("git", "-C", repo, "rev-parse", "--path-format=absolute", "--git-path", "index").Output()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "index")
	data, err := os.ReadFile(strings.TrimSpace(string(index)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, data, 0o600); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=test", "-c", "user.email=test@localhost"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+copied)
		var why bytes.Buffer
		cmd.Stderr = &why
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, &why)
		}
		return strings.TrimSpace(string(out))
	}
	git("add", "--update")
	tree := git("write-tree")
	if tree == git("rev-parse", "HEAD^{tree}") {
		return "HEAD"
	}
	return git("commit-tree", "-p", "HEAD", "-m", "the working tree", tree)
}

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// readmePrograms returns the two complete programs of README, with another address.
func readmePrograms(t *testing.T, address string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 2 {
		t.Fatalf("README.md has %d whole programs, want a server and a client", len(blocks))
	}
	programs := make(map[string]string)
	for i, name := range []string{"server", "client"} {
		programs[name] = strings.Replace(string(blocks[i][1]), "127.0.0.1:8972", address, 1)
	}
	return programs
}

// user is a user with a file proxy and an empty folder.
type user struct {
	t   *testing.T
	dir string
	env []string
}

func newUser(t *testing.T, o options) *user {
	t.Helper()
	u := &user{t: t, dir: t.TempDir(), env: os.Environ()}
	proxies := "file://" + filepath.ToSlash(o.proxy)
	if next := goEnv(t, "GOPROXY"); next != "" {
		proxies += "," + next
	}
	u.env = append(u.env, "GOPROXY="+proxies, "GONOSUMDB=github.com/anser-rpc/*,"+goEnv(t, "GONOSUMDB"), "GOWORK=off",
		"GOFLAGS=", "GOBIN="+filepath.Join(u.dir, "bin"))
	t.Cleanup(func() { forget(t, goEnv(t, "GOMODCACHE"), o.version) })
	return u
}

func (u *user) write(name, content string) {
	u.t.Helper()
	name = filepath.Join(u.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		u.t.Fatal(err)
	}
}

// run runs a command in the folder and returns its output.
func (u *user) run(name string, args ...string) string {
	u.t.Helper()
	if strings.HasPrefix(name, "bin/") {
		name = filepath.Join(u.dir, filepath.FromSlash(name))
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		u.t.Fatalf("%s: %v\n%s%s", cmd, err, out, &errs)
	}
	return string(out)
}

// forget removes the modules of a version that was never published from the module cache.
func forget(t *testing.T, cache, version string) {
	for _, top := range []string{filepath.Join(cache, "github.com", "anser-rpc"), filepath.Join(cache, "cache", "download", "github.com", "anser-rpc")} {
		filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !strings.Contains(d.Name(), version) {
				return nil
			}
			filepath.WalkDir(name, func(name string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					os.Chmod(name, 0o755)
				}
				return nil
			})
			if err := os.RemoveAll(name); err != nil {
				t.Error(err)
			}
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		})
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bufio.NewReader(bytes.NewReader(out)).ReadLine()
	return string(line)
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustAbs(t *testing.T, name string) string {
	t.Helper()
	abs, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
