package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/reliability.md")

// The page shows what the file of results holds.
func TestPageIsCurrent(t *testing.T) {
	text, err := os.ReadFile("../../docs/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	const page = "../../docs/reliability.md"
	if *update {
		if err := os.WriteFile(page, d.markdown(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, d.markdown()) {
		t.Error("docs/reliability.md differs from what docs/reliability.json says: go test ./e2e/faults -run Page -update")
	}
}

// A row replaces only its own former result; the report lists rows that were lost, broken or not
// run.
func TestWriteInto(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reliability.json")
	named := func(name string) *result {
		r := &result{Row: name, Fault: "a fault", Bar: "a bar", State: held, Seconds: 1, Began: time.Unix(0, 0).UTC()}
		r.machine = machine{Commit: "abc", Go: "go1.26", CPUs: 2}
		return r
	}
	restart, kill := named("restart"), named("kill")
	restart.none("failed calls", 3)
	restart.State = restart.judge()
	kill.within("back after", 2*time.Second, time.Second, true)
	kill.fact("calls", 1234567, "")
	kill.State = kill.judge()
	missing := named("half-open")
	missing.State, missing.Why = notRun, "no root"
	for _, r := range []*result{restart, missing, named("kill"), kill} {
		if err := writeInto(file, r); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".md")
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{
		"| a bar | – | **lost** |", "| a bar | – | **broken** |", "| a bar | – | **not run** |", // in the order of the rows
		"## kill", "A fault: **lost**", "| back after | 2 s | at most 1s: **lost** |", "| calls | 1,234,567 |", "commit abc, go1.26",
		"## restart", "| failed calls | 3 | 0: **broken** |", "## half-open", "**not run**, no root",
	} {
		i := strings.Index(string(text[at:]), want)
		if i < 0 {
			t.Fatalf("there is no %q where it is expected:\n%s", want, text)
		}
		at += i
	}
	if n := strings.Count(string(text), "## kill"); n != 1 {
		t.Errorf("the file contains the row %d times", n)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`{"name": "something else"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeInto(other, kill); err == nil {
		t.Error("a file of something else was overwritten")
	}
}

// Other frameworks have columns next to Anser's, with their own limits; a row without one is
// unchanged.
func TestReportOfPeers(t *testing.T) {
	made := func(peer, row, state string) *result {
		return &result{Row: row, Peer: peer, Fault: "a fault", Bar: "a bar", State: state}
	}
	ours, grpc, rpcx := made("", "kill", held), made("grpc-go", "kill", lost), made("rpcx", "kill", broken)
	ours.fact("calls", 10, "")
	ours.timed("failed", 1, "", "at most 2", true)
	grpc.fact("calls", 11, "")
	grpc.timed("a figure of its own", 3, "s", "", false)
	grpc.timed("failed", 5, "", "at most 4", false)
	rpcx.none("failed", 7)
	rpcx.Errors, rpcx.Why = []string{"its error"}, "it crashed\nand more"
	alone, missing := made("", "registry-killed", held), made("grpc-go", "idle-tcp", notRun)
	alone.fact("calls", 12, "")
	missing.Why = "it broke off"
	d := document{Rows: []*result{missing, rpcx, alone, grpc, ours}}
	d.sort()
	text := string(d.markdown())
	at := 0
	for _, want := range []string{
		"| fault | requirement | load | anser | grpc-go | rpcx |\n|---|---|---|---|---|---|\n",
		"| [a fault](#kill) | a bar | – | **held** | lost | broken |\n",
		"| [a fault](#registry-killed) | a bar | – | **held** | – | – |\n",
		"| [a fault](#idle-tcp) | a bar | – | **–** | not run | – |\n",
		"A fault: **held**; with grpc-go **lost**; with rpcx **broken**, it crashed.\n",
		"| | anser | grpc-go | rpcx | requirement |\n|---|---|---|---|---|\n",
		"| calls | 10 | 11 |  |  |\n",
		"| a figure of its own |  | 3 s |  |  |\n",
		"| failed | 1: **held** | 5, at most 4: **lost** | 7, 0: **broken** | at most 2 |\n",
		"Errors with rpcx:\n\n- `its error`\n", "\nPhases of", "\ngrpc-go: Phases of", "\nrpcx: Phases of",
		"## registry-killed\n\nA fault: **held**.\n\n| | | requirement |\n|---|---|---|\n| calls | 12 |  |\n",
		"## idle-tcp\n\nA fault: with grpc-go **not run**, it broke off.\n",
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("there is no %q where it is expected:\n%s", want, text)
		}
		at += i
	}
}

// What a row could not be played for is a bug with Anser, and with a peer one of its own only
// where it crashed.
func TestFailed(t *testing.T) {
	trouble := errors.New("trouble")
	ended := func(said string) error {
		return errors.Join(trouble, crashed{errors.New("it crashed"), "client", said})
	}
	crash := ended("2026/11/22 a line before\npanic: an index out of range\n\ngoroutine 1 [running]:\n\t/a/path.go:1\n")
	for _, c := range []struct {
		peer        string
		err         error
		state, text string
	}{
		{"", trouble, broken, "trouble"},
		{"", crash, broken, "trouble\nit crashed"},
		{"rpcx", trouble, notRun, "trouble"},
		{"rpcx", crash, broken, "client crashed: panic: an index out of range"},
		{"rpcx", ended("killed"), broken, "client crashed"},
	} {
		if state, text := (&result{Peer: c.peer}).failed(c.err); state != c.state || text != c.text {
			t.Errorf("%q, %v: %s, %q, want %s, %q", c.peer, c.err, state, text, c.state, c.text)
		}
	}
}

func TestJudge(t *testing.T) {
	r := new(result)
	r.fact("calls", 1, "")
	r.within("first", time.Second, time.Second, true)
	if got := r.judge(); got != held {
		t.Errorf("in time: %s", got)
	}
	r.within("second", 0, time.Second, false)
	if got := r.judge(); got != lost || r.Figures[2].text() != "never" {
		t.Errorf("never: %s, %s", got, r.Figures[2].text())
	}
	r.none("failed calls", 1)
	r.none("others", 0)
	if got := r.judge(); got != broken {
		t.Errorf("a promise missed: %s", got)
	}
}

func TestRowsAreNamed(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range rows() {
		if r.name == "" || r.fault == "" || r.bar == "" || r.run == nil || seen[r.name] {
			t.Errorf("row %q: want a unique name, a fault, a bar and a function", r.name)
		}
		seen[r.name] = true
	}
	if some, err := choose("stop, kill"); err != nil || len(some) != 2 || some[0].name != "stop" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := choose("kill,nonsense"); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("a row that there is not: %v", err)
	}
}
