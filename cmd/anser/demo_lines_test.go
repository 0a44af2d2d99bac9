package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// grpcurl builds the command that internal/clients pins, and returns its folder.
func grpcurl(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "grpcurl"), "github.com/fullstorydev/grpcurl/cmd/grpcurl")
	build.Dir, build.Env = "../../internal/clients", append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// Each line that a demo prints for a user to try works as it is printed.
func TestDemoLines(t *testing.T) {
	t.Parallel()
	path := grpcurl(t) + string(os.PathListSeparator) + os.Getenv("PATH")
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--every", "0s")
	address := strings.Fields(p.line("all protocols except net/rpc's gob at"))[8]
	var lines []string
	for line := p.line("try:"); ; line = p.line("") {
		text, found := strings.CutPrefix(strings.TrimSpace(line), "try:  ")
		if !found {
			break
		}
		lines = append(lines, text)
	}
	tried := make(map[string]string) // output by the first word that identifies a line
	for _, line := range lines {
		if strings.HasPrefix(line, "http") {
			if strings.HasSuffix(line, "/") && tried["the console"] == "" { // the first of two pages at /
				tried["the console"] = fetch(t, line) + fetch(t, line+"api/system")
				continue
			}
			tried[line[strings.LastIndexByte(line, '/'):]] = fetch(t, line)
			continue
		}
		if strings.Contains(line, " top") {
			line += " --once --timeout 2m" // otherwise a user ends it, and 3 s are little on a busy machine
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = append(p.Env, "PATH="+path) // p.Env makes the test binary the command
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s\n%v\n%s", line, err, out)
		}
		name := filepath.Base(strings.Fields(line)[0])
		if strings.HasSuffix(name, ".test") || name == "anser" {
			name = "anser " + strings.Fields(line)[1]
		}
		tried[name] = string(out)
	}
	if len(lines) != 13 || len(tried) != 13 {
		t.Fatalf("the lines are\n%s", strings.Join(lines, "\n"))
	}
	for name, want := range map[string]string{
		"anser ls": "arith-3", "anser call": `"C": 56`, "curl": `{"C":56}`, "grpcurl": `"C": "56"`, "/openapi": "<title>", "/mcp": "arith_Arith_Mul",
		"/metrics":  `anser_client_calls_total{code="OK",method="Arith.Mul",target="etcd://`,
		"anser top": "Arith.Mul", "anser tail": "server", "anser replay": "compared with the recording", "anser explain": "balancer  p2c", "/": "/front</a>",
		"the console": "<title>Anser console</title>",
	} {
		if !strings.Contains(tried[name], want) {
			t.Errorf("%s gives %q, want %q", name, tried[name], want)
		}
	}
	var description struct{ Paths map[string]any }
	err := json.Unmarshal([]byte(fetch(t, "http://"+address+"/openapi.json")), &description)
	for _, path := range []string{"/Arith.Add", "/Arith.Mul", "/Posts.Query", "/Front.Page"} {
		if description.Paths[path] == nil {
			t.Errorf("/openapi.json has no %s (%v): %v", path, err, description.Paths)
		}
	}
	// The same address speaks Anser, and the answer says which instance has given it.
	if out := run(t, "call", address, "Front.Page", `{"posttype": "golang"}`, "--trailers"); !strings.Contains(out, "Draining without an error") {
		t.Error(out)
	}
	if _, code := p.signal(os.Interrupt); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
	expectEmpty(t, tmp)
}

// fetch gets a page as a browser does.
func fetch(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/html, */*;q=0.8")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
	return string(body)
}

// A demo whose usual port is taken takes another one and says so. One that the user has chosen must
// be free.
func TestDemoPortTaken(t *testing.T) { // not parallel: other demos take the usual port, and leave it
	const usual = "127.0.0.1:8970"
	if l, err := net.Listen("tcp", usual); err == nil {
		defer l.Close()
	}
	p := start(t, t.TempDir(), "demo", "--listen", "127.0.0.1:0")
	if line := p.line("all protocols except net/rpc's gob at"); !strings.Contains(line, "because "+usual+" is taken: --serve") {
		t.Error(line)
	}
	if _, code := p.signal(os.Interrupt); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
	chosen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer chosen.Close()
	p = start(t, t.TempDir(), "demo", "--listen", "127.0.0.1:0", "--serve", chosen.Addr().String())
	if _, code := p.wait(); code != 1 || !strings.Contains(p.errOut.String(), "choose another address with --serve") {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
}
