package project_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/project"
)

// checkout is the folder of this repository.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The tests of a new project pass, and the code is vetted and formatted.
func TestNewProjectsWork(t *testing.T) {
	for _, kind := range []project.Kind{project.Plain, project.Proto, project.Interface} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			folder, err := project.Make(t.Context(), dir, project.Options{
				Name: "order-history", Module: "example.com/shop/orders", Kind: kind, Version: "v0.0.0", Replace: checkout(t),
			})
			if err != nil {
				t.Fatal(err)
			}
			if folder != filepath.Join(dir, "order-history") {
				t.Errorf("the folder is %s", folder)
			}
			for _, command := range []string{"go vet ./...", "go test ./...", "gofmt -l .", "go mod tidy -diff"} {
				words := strings.Fields(command)
				c := exec.CommandContext(t.Context(), words[0], words[1:]...)
				c.Dir, c.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
				out, err := c.CombinedOutput()
				if err != nil || command == "gofmt -l ." && len(out) > 0 {
					t.Errorf("%s: %v\n%s", command, err, out)
				}
				if command == "go test ./..." && !strings.Contains(string(out), "ok  \texample.com/shop/orders/service") {
					t.Errorf("no test ran:\n%s", out)
				}
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("there is more than the project: %v, %v", entries, err)
			}
			if kind == project.Plain {
				serveAndCall(t, folder)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "taken", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		o    project.Options
		want string
	}{
		{project.Options{Name: "Orders"}, "is not a name for a project"},
		{project.Options{Name: "a/b"}, "is not a name for a project"},
		{project.Options{Name: ""}, "is not a name for a project"},
		{project.Options{Name: "func"}, "is a keyword of Go"},
		{project.Options{Name: "log"}, "is a package of Go's library"},
		{project.Options{Name: "orders", Module: "a b"}, "is not a path for a module"},
		{project.Options{Name: "taken"}, "exists and is not empty"},
		{project.Options{Name: "orders", Version: "v0.0.0", Replace: filepath.Join(dir, "none")}, "go mod tidy"},
	} {
		test.o.Kind = project.Plain
		if _, err := project.Make(t.Context(), dir, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.o, err, test.want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("something is left: %v, %v", entries, err)
	}
}

// serveAndCall runs the server of a project and its client, and stops the server.
func serveAndCall(t *testing.T, folder string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "bin/", "./cmd/...")
	build.Dir, build.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	server := exec.CommandContext(t.Context(), filepath.Join(folder, "bin", "order-history-server"), "-listen", "127.0.0.1:0")
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(log).ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSpace(line), "serving OrderHistory on ")
	if err != nil || !ok {
		t.Fatalf("the server says %q, %v", line, err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder, "bin", "order-history"), "-server", address, "tea").CombinedOutput()
	if err != nil || string(out) != "item 1: tea\n" {
		t.Errorf("the client says %q, %v", out, err)
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}
