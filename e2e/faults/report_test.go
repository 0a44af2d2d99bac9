package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A row replaces its former result and no other; what was lost, broken or not run stands in the report.
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
		"| a bar | **lost** |", "| a bar | **broken** |", "| a bar | **not run** |", // in the order of the rows
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
		t.Errorf("the row stands there %d times", n)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`{"name": "something else"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeInto(other, kill); err == nil {
		t.Error("a file of something else was overwritten")
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
			t.Errorf("row %q: its name has to be its own, and it needs a fault, a bar and something to run", r.name)
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
