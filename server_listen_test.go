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

// simplest is the environment variable that turns TestSimplestProgram into the program that it
// tests: its value is the address to listen on.
const simplest = "ANSER_TEST_LISTEN"

// The main function of README's server exits with code 0 and prints nothing after a SIGTERM.
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

// startSimplest starts the program on the unix socket, and returns when it listens. The caller ends
// it and waits for it.
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

// socketPath returns a path for a unix socket; paths of t.TempDir may be too long.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "anser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// A server that was killed can be restarted on its unix socket.
func TestSocketOfAProcessThatWasKilled(t *testing.T) {
	socket := socketPath(t)
	for range 2 {
		program, _ := startSimplest(t, socket)
		if l, err := anser.NewServer(silent).Listen("unix://" + socket); err == nil || !strings.Contains(err.Error(), "served by another process") {
			if err == nil {
				l.Close()
			}
			t.Errorf("a socket that is served: %v", err)
		}
		program.Process.Kill()
		program.Wait()
		if _, err := os.Stat(socket); err != nil {
			t.Fatal(err) // the test would prove nothing
		}
	}
	l, err := anser.NewServer(silent).Listen("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if left, err := filepath.Glob(socket + "*"); err != nil || len(left) > 0 {
		t.Errorf("%v are left behind", left)
	}
}

func TestSocketMistakes(t *testing.T) {
	s := anser.NewServer(silent)
	file := socketPath(t)
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"unix://":                    "use unix:///path",
		"unix://" + file:             "is there and no socket",
		"unix://" + file + "/no/dir": "listen on unix://",
	} {
		if l, err := s.Listen(address); err == nil || !strings.Contains(err.Error(), want) {
			if err == nil {
				l.Close()
			}
			t.Errorf("%s: %v; want %q", address, err, want)
		}
	}
	if b, err := os.ReadFile(file); string(b) != "precious" {
		t.Errorf("the file: %q, %v", b, err)
	}
}
