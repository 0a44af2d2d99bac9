package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/document"
	"github.com/anser-rpc/anser/arena/internal/hosts/hoststest"
	"github.com/anser-rpc/anser/arena/result"
)

func TestList(t *testing.T) {
	code, out, errOut := arena(t, "list")
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errOut)
	}
	expect(t, "the list", out, "PEER", "plain", "MISSING no-such-program", "bytes over net/rpc")
	code, out, _ = arena(t, "list", "--peers", "needy", "--json")
	var peers []map[string]any
	if err := json.Unmarshal([]byte(out), &peers); err != nil || code != 0 || len(peers) != 1 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	if p := peers[0]; p["peer"] != "needy" || p["missing"].([]any)[0] != "no-such-program" || p["built"] != false {
		t.Errorf("%v", p)
	}
	_, out, _ = arena(t, "list", "--peers", "plain", "--long")
	expect(t, "the long list", out, "plain: net/rpc Go standard library, go", "reason       the least that makes a peer", "payloads     64, 581, 65536",
		"mark         for tests only", "keeps several calls")
}

func TestDoctor(t *testing.T) {
	code, out, errOut := arena(t, "doctor")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	expect(t, "the report", out, "needy", "MISSING no-such-program", "to do: apt-get install -y --no-install-recommends no-such-package")
	expect(t, "the standard error", errOut, "missing tools or packages for needy")
	code, out, errOut = arena(t, "doctor", "--build", "--peers", "plain,broken")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	expect(t, "the report", out, "DOES NOT BUILD", "built")
	expect(t, "the standard error", errOut, "what the compiler says")
	if code, out, errOut := arena(t, "doctor", "--install", "--peers", "plain"); code != 0 || !strings.Contains(out, "built") {
		t.Errorf("exit code %d:\n%s\n%s", code, out, errOut)
	}
}

func TestCompare(t *testing.T) {
	write := func(rate float64, spread float64) string {
		row := result.Row{Peer: "plain", Workload: "say", Valid: true, Shape: result.Shape{Callers: 5, Conns: 2, Servers: 1, Clients: 1, Hosts: 1}}
		row.CallsPerSecond, row.CallsPerSecondRange = rate, [2]float64{rate - spread, rate + spread}
		name := filepath.Join(t.TempDir(), "r.json")
		if err := document.Write(name, &result.Document{Schema: 1, Rows: []result.Row{row}}); err != nil {
			t.Fatal(err)
		}
		return name
	}
	a, b := write(100, 5), write(200, 5)
	code, out, errOut := arena(t, "compare", a, b)
	if code != 0 {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
	expect(t, "the comparison", out, "say, 5 callers, 2 connections", "× 2.00  better", "within noise")
	_, out, _ = arena(t, "compare", b, a, "--json")
	var report struct {
		Rows []struct {
			Figures []struct {
				Name  string
				Ratio float64
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Rows[0].Figures[0].Ratio != 0.5 {
		t.Errorf("%v:\n%s", err, out)
	}
	if code, _, errOut := arena(t, "compare", a); code != 2 || !strings.Contains(errOut, "missing arguments") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
	if code, _, errOut := arena(t, "compare", a, "nothing.json"); code != 1 || !strings.Contains(errOut, "nothing.json") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
}

func TestHosts(t *testing.T) {
	hoststest.Lock(t)
	if code, _, errOut := arena(t, "hosts"); code != 2 || !strings.Contains(errOut, "arena hosts up or") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
	code, _, errOut := arena(t, "hosts", "down")
	if os.Geteuid() != 0 {
		if code != 1 || !strings.Contains(errOut, "only root can create: run it with sudo") {
			t.Errorf("exit code %d:\n%s", code, errOut)
		}
		return
	}
	if code != 0 {
		t.Errorf("down: exit code %d:\n%s", code, errOut)
	}
	for _, want := range []string{"are up", "already exist"} {
		if code, out, errOut := arena(t, "hosts", "up"); code != 0 || !strings.Contains(out, want) {
			t.Errorf("up: exit code %d:\n%s\n%s", code, out, errOut)
		}
	}
	if code, out, _ := arena(t, "hosts", "down"); code != 0 || !strings.Contains(out, "no hosts remain") {
		t.Errorf("down: exit code %d:\n%s", code, out)
	}
}

func TestUsage(t *testing.T) {
	if code, out, _ := arena(t, "--help"); code != 0 || !strings.Contains(out, "go run ./arena doctor --install") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, _, errOut := arena(t, "fly"); code != 2 || !strings.Contains(errOut, `unknown command "fly"`) {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
}

func TestReport(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "r.json")
	row := result.Row{Peer: "plain", Language: "go", Workload: "say", Valid: true, Shape: result.Shape{Callers: 5, Conns: 2, Servers: 1, Clients: 1, Hosts: 1}}
	row.CallsPerSecond, row.CPUUS, row.P50US, row.P99US = 1000, 10, 20, 30
	if err := document.Write(name, &result.Document{Schema: 1, Rows: []result.Row{row}}); err != nil {
		t.Fatal(err)
	}
	page, charts, tables := filepath.Join(folder, "r.html"), filepath.Join(folder, "charts"), filepath.Join(folder, "r.md")
	code, out, errOut := arena(t, "report", name, "--html", page, "--svg", charts, "--md", tables)
	if code != 0 || !strings.Contains(out, "the page: "+page) {
		t.Fatalf("exit code %d:\n%s\n%s", code, out, errOut)
	}
	for _, file := range []string{page, filepath.Join(charts, "cpu.svg"), tables} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "plain") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if code, _, errOut := arena(t, "report", name); code != 2 || !strings.Contains(errOut, "set at least one output") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
}
