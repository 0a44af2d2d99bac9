package protocols_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// The versions of the suites.
const (
	connectSuite = "connectrpc.com/conformance"
	connectAt    = "@v1.0.7"
	h2specSuite  = "github.com/summerwind/h2spec"
	h2specAt     = "@v2.2.1+incompatible"
)

// run runs the go command in a folder, outside of the workspace and with what it must fetch.
func run(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, &errOut)
	}
	return strings.TrimSpace(string(out))
}

// suite builds the program of a suite. It also returns the folder of the suite's source.
// It needs further modules where it has no go.mod that names them.
func suite(t *testing.T, module, version, command string, further ...string) (program, source string) {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "mod", "init", "suite")
	run(t, dir, append([]string{"get", module + version}, further...)...)
	program = filepath.Join(dir, "suite")
	run(t, dir, "build", "-o", program, module+command)
	return program, run(t, dir, "list", "-m", "-f", "{{.Dir}}", module)
}

// built builds a program in a copy of a suite, to which files of testdata are added: what they use
// is internal to the suite. Change edits files of the suite.
func built(t *testing.T, source string, add map[string]string, change map[string][2]string, command string) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "conformance")
	if err := os.CopyFS(tree, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	for from, to := range add {
		text, err := os.ReadFile(filepath.Join("testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(tree, to), text)
	}
	for name, edit := range change {
		name = filepath.Join(tree, name)
		text, err := os.ReadFile(name)
		if err != nil || bytes.Count(text, []byte(edit[0])) != 1 {
			t.Fatalf("%s: %q is not there once (%v)", name, edit[0], err)
		}
		os.Chmod(name, 0o644)
		write(t, name, bytes.Replace(text, []byte(edit[0]), []byte(edit[1]), 1))
	}
	if err := os.Chmod(filepath.Join(tree, "go.mod"), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Chmod(filepath.Join(tree, "go.sum"), 0o644)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	edit := []string{"mod", "edit"}
	for _, m := range []string{"", "/grpcstubs", "/protocols"} {
		edit = append(edit, "-require=github.com/anser-rpc/anser"+m+"@v0.0.0", "-replace=github.com/anser-rpc/anser"+m+"="+root+m)
	}
	run(t, tree, edit...)
	program := filepath.Join(t.TempDir(), "program")
	run(t, tree, "build", "-o", program, command)
	return program
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// late matches a case that has failed because the client was too slow: its stream was not open when
// the 200 ms of the case were over, its timeout was used up before it was sent, or it cancelled its
// call after the next response had arrived, half a second after the one before.
var late = regexp.MustCompile(`(?m)^FAILED: ((?:Timeouts|Deadline Propagation|Client Cancellation)/.*):\n(?:\t.*\n)*?\t(?:` +
	`rpc error: code = DeadlineExceeded|server echoed back a timeout|expecting \d response messages but instead got \d)`)

// lateRuns bounds how often late cases are run again.
const lateRuns = 5

// conforms runs Connect's conformance suite and wants all cases to pass. Late cases are run again,
// without the others: the suite's times are fixed, and a busy machine may take longer.
func conforms(t *testing.T, cases int, suite, mode, config, program string) {
	t.Helper()
	var only []string
	for run := 0; ; run++ {
		args := slices.Concat([]string{"--mode", mode, "--conf", config}, only, []string{"--", program})
		out, err := exec.CommandContext(t.Context(), suite, args...).CombinedOutput()
		counted := regexp.MustCompile(`(\d+) passed, (\d+) failed`).FindSubmatch(out)
		if counted == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		passed, _ := strconv.Atoi(string(counted[1]))
		failed, _ := strconv.Atoi(string(counted[2]))
		t.Logf("%s", counted[0])
		if passed+failed != cases {
			t.Errorf("%d cases were run, want %d", passed+failed, cases)
		}
		if err == nil && failed == 0 {
			return
		}
		again := late.FindAllSubmatch(out, -1)
		if failed == 0 || len(again) != failed || run == lateRuns {
			t.Fatalf("%v\n%s", err, out)
		}
		cases, only = failed, nil
		for _, match := range again {
			only = append(only, "--run", string(match[1]))
		}
	}
}

// Connect's conformance suite: every case of a server passes, over Connect, gRPC and
// gRPC-Web, HTTP/1.1 and HTTP/2, with and without TLS, protobuf and JSON, plain and with gzip.
func TestConnectConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the suite")
	}
	program, source := suite(t, connectSuite, connectAt, "/cmd/connectconformance")
	server := built(t, source, map[string]string{
		"service.go.txt": "internal/app/grpcserver/anser.go", "main.go.txt": "cmd/anserserver/main.go",
	}, nil, "./cmd/anserserver")
	conforms(t, 3640, program, "server", "testdata/server.yaml", server)
}

// Connect's conformance suite: every case of a client passes, over gRPC, Connect and gRPC-Web,
// HTTP/1.1 and HTTP/2, with and without TLS and certificates of the client, protobuf and JSON,
// plain and with gzip.
func TestConnectConformanceOfClients(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the suite")
	}
	program, source := suite(t, connectSuite, connectAt, "/cmd/connectconformance")
	client := built(t, source, map[string]string{
		"client.go.txt": "internal/app/grpcclient/anser.go", "../../../stubwire/stubwire.go": "internal/stubwire/stubwire.go",
	}, map[string][2]string{"internal/app/grpcclient/client.go": {"func invoke(", "func stockInvoke("}}, "./cmd/grpcclient")
	conforms(t, 646, program, "client", "testdata/client.yaml", client)
	conforms(t, 3586, program, "client", "testdata/webclient.yaml", client)
}

// h2spec: every case passes.
func TestH2spec(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the suite")
	}
	program, _ := suite(t, h2specSuite, h2specAt, "/cmd/h2spec", "github.com/spf13/cobra@v1.10.2", "github.com/fatih/color@v1.19.0", "golang.org/x/net@v0.61.0")
	// An answer before the end of a request would end what the cases say about the request.
	pages := protocols.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			fmt.Fprintln(w, "hello")
		}
	}))
	_, address := startWith(t, func(*anser.Server) {}, protocols.All(pages))
	host, port, _ := strings.Cut(address, ":")
	out, err := exec.CommandContext(t.Context(), program, "-h", host, "-p", port, "--timeout", "30").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("145 tests, 145 passed, 0 skipped, 0 failed")) {
		_, failures, _ := bytes.Cut(out, []byte("\nFailures:"))
		t.Errorf("%v\n%s", err, failures)
	}
}
