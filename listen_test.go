package anser_test

import (
	"bytes"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// simplest is the environment variable that makes TestSimplestProgram the program that it tests: its value is
// the address to listen on.
const simplest = "ANSER_TEST_LISTEN"

// The main function of README's server ends with code 0 and says nothing after a SIGTERM.
func TestSimplestProgram(t *testing.T) {
	if address := os.Getenv(simplest); address != "" {
		s := anser.NewServer(silent)
		anser.Handle(s, "Arith.Mul", mul, anser.Idempotent())
		if err := s.ListenAndServe(address); err != nil {
			log.Fatal(err)
		}
		os.Exit(0)
	}
	socket := socketPath(t)
	program, output := startSimplest(t, socket)
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil || output.Len() > 0 {
		t.Errorf("the program ends with %v and says %q, want code 0 and nothing", err, output)
	}
}

// startSimplest starts the program on the unix socket, and returns when it listens. The caller ends it and waits for it.
func startSimplest(t *testing.T, socket string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program, output := exec.Command(os.Args[0], "-test.run=^TestSimplestProgram$"), new(bytes.Buffer)
	program.Env = append(os.Environ(), simplest+"=unix://"+socket)
	program.Stdout, program.Stderr = output, output
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, "unix://"+socket, anser.Timeout(30*time.Second))
	if r, err := anser.Call[Reply](t.Context(), c, "Arith.Mul", &Args{7, 8}); err != nil || r.C != 56 {
		program.Process.Kill()
		program.Wait()
		t.Fatalf("%v, %v; the program says %q", r, err, output)
	}
	c.Close()
	return program, output
}

// socketPath returns a path for a unix socket, which is shorter than those of t.TempDir may be.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "anser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// The idiom that turns a clean end into a failure is in no document.
func TestDocumentsCheckTheErrorOfServing(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md", "doc.go") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "log.Fatal(s.") {
				t.Errorf("%s: %q ends with code 1 where the server ended well", page, strings.TrimSpace(line))
			}
		}
	}
}
