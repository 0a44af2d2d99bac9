package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
)

// demoSummary is what "demo --json" prints, and nothing else.
type demoSummary struct {
	Seconds   float64 `json:"seconds"`
	Calls     int64   `json:"calls"`
	Errors    int64   `json:"errors"`
	CallsPerS float64 `json:"calls_per_s"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Services  int     `json:"services"`
	Instances int     `json:"instances"`
	Restarts  int     `json:"restarts"`
	Registry  string  `json:"registry"`
	Steps     []struct {
		Step     string  `json:"step"`
		Instance string  `json:"instance"`
		At       float64 `json:"at_s"`
		Seconds  float64 `json:"seconds"`
		Calls    int64   `json:"calls"`
		Errors   int64   `json:"errors"`
		Showed   string  `json:"showed"`
	} `json:"steps"`
}

// forLonger tries a demo of the given length, and longer ones if it was too short, as on a machine
// that is paused for seconds. try fails the test for errors unrelated to time, and returns what
// else was missing.
func forLonger(t *testing.T, length time.Duration, try func(length time.Duration) (missing []string)) {
	t.Helper()
	for n := range 3 {
		missing := try(length)
		if len(missing) == 0 {
			return
		}
		if length *= 3; n == 2 || t.Failed() {
			t.Fatal(strings.Join(missing, "\n"))
		}
		t.Log(strings.Join(missing, "\n"))
	}
}

// untold returns the words that are missing in the text.
func untold(said string, words ...string) (missing []string) {
	for _, word := range words {
		if !strings.Contains(said, word) {
			missing = append(missing, fmt.Sprintf("%q was not told:\n%s", word, said))
		}
	}
	return missing
}

func TestDemo(t *testing.T) {
	t.Parallel()
	forLonger(t, 6*time.Second, func(length time.Duration) []string { return demo(t, length) })
}

func demo(t *testing.T, length time.Duration) (missing []string) {
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--for", length.String(), "--json", "--listen", "127.0.0.1:0")
	out, code := p.wait()
	said := p.errOut.String()
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, said)
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	var sum demoSummary
	if err := d.Decode(&sum); err != nil || d.More() {
		t.Fatalf("not one object: %v\n%s", err, out)
	}
	if sum.Errors != 0 || sum.Services != 3 || sum.Instances != 9 {
		t.Errorf("%+v\n%s", sum, said)
	}
	if sum.Seconds < length.Seconds() || sum.Calls > 0 && (sum.CallsPerS <= 0 || sum.P50 <= 0) || sum.P99 < sum.P50 || !strings.HasPrefix(sum.Registry, "etcd://127.0.0.1:") {
		t.Errorf("%+v", sum)
	}
	for i, s := range sum.Steps {
		if s.Errors != 0 || s.Showed == "" || s.At < 0 || i > 0 && s.At < sum.Steps[i-1].At {
			t.Errorf("step %d: %+v", i, s)
		}
		for _, line := range untold(said, "begins    "+s.Instance, "ends      "+s.Instance, s.Step+": "+s.Showed) {
			t.Error(line)
		}
	}
	expectEmpty(t, tmp)
	if sum.Calls < 100 || sum.Restarts < 2 {
		missing = append(missing, fmt.Sprintf("%+v", sum))
	}
	return append(missing, untold(said, "killed", "draining", "drained", "SIGKILL", "SIGTERM")...)
}

// Steps that take longer: a slow instance gets few calls, and the registry comes back with its
// data. No call fails.
func TestDemoSteps(t *testing.T) {
	t.Parallel()
	// The registry comes back to its port, which no other process may take meanwhile.
	address := servers.Address(t)
	forLonger(t, 10*time.Second, func(length time.Duration) []string { return demoSteps(t, address, length) })
}

func demoSteps(t *testing.T, address string, length time.Duration) (missing []string) {
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--json", "--listen", address, "--every", "1s", "--steps", "outage,slow", "--for", length.String())
	out, code := p.wait()
	said := p.errOut.String()
	var sum demoSummary
	if err := json.Unmarshal([]byte(out), &sum); err != nil || code != 0 || sum.Errors != 0 || sum.Instances != 9 || sum.Restarts != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, said)
	}
	performed := make(map[string]string)
	for _, s := range sum.Steps {
		performed[s.Step] = s.Showed
		if s.Calls == 0 {
			missing = append(missing, fmt.Sprintf("no call during %+v", s))
		}
	}
	if len(performed) != 2 || !strings.Contains(performed["outage"], "it has 3 services again") || !strings.Contains(performed["slow"], "200 ms") {
		missing = append(missing, fmt.Sprintf("%+v\n%s", sum, said))
	}
	expectEmpty(t, tmp)
	return append(missing, untold(said, "stopped", "started")...)
}

// An instance of another version gets about the share set by the rules, and a paused one is
// ejected and comes back. No call fails.
func TestDemoSteers(t *testing.T) {
	t.Parallel()
	forLonger(t, 12*time.Second, func(length time.Duration) []string { return demoSteers(t, length) })
}

// demoSteers runs a demo and returns what was wrong.
func demoSteers(t *testing.T, length time.Duration) (wrong []string) {
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--json", "--listen", "127.0.0.1:0", "--every", "1s", "--steps", "canary,freeze", "--for", length.String(), "--rate", "200")
	out, code := p.wait()
	said := p.errOut.String()
	var sum demoSummary
	if err := json.Unmarshal([]byte(out), &sum); err != nil || code != 0 || sum.Errors != 0 || sum.Instances != 9 || sum.Restarts != 0 {
		wrong = append(wrong, fmt.Sprintf("exit code %d, %v\n%s%s", code, err, out, said))
	}
	performed := make(map[string]string)
	for _, s := range sum.Steps {
		performed[s.Step] = s.Showed
	}
	var one, all float64
	var service string
	if _, err := fmt.Sscanf(performed["canary"], "version 2.0 got %f of the %f calls to %s", &one, &all, &service); err != nil {
		wrong = append(wrong, fmt.Sprintf("canary: %q: %v", performed["canary"], err))
	}
	if share := one / all; !(share > 0.01 && share < 0.22) { // an equal share is 0.25
		wrong = append(wrong, fmt.Sprintf("canary: %q", performed["canary"]))
	}
	if s := performed["freeze"]; !strings.HasPrefix(s, "ejected after ") || !strings.Contains(s, " after it was resumed") || strings.Contains(s, "not back") {
		wrong = append(wrong, fmt.Sprintf("freeze: %q", s))
	}
	expectEmpty(t, tmp)
	return append(wrong, untold(said, "10 % of the calls to version 2.0", "drained", "the split is removed", "SIGSTOP", "ejected", "SIGCONT", "restored")...)
}

// A step that takes longer than the remaining time is skipped.
func TestDemoSkipsAStep(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "demo", "--json", "--listen", "127.0.0.1:0", "--every", "500ms", "--steps", "freeze", "--for", "5s")
	out, code := p.wait()
	if code != 0 || !strings.Contains(out, `"steps":[]`) || !strings.Contains(p.errOut.String(), "skipped") {
		t.Errorf("exit code %d\n%s%s", code, out, p.errOut.String())
	}
}

// An interrupt ends a demo in the middle of a step.
func TestDemoInterruptedInAStep(t *testing.T) {
	for _, step := range []string{"canary", "slow", "freeze", "outage"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--every", "2s", "--steps", step)
			p.line("begins")
			if out, code := p.signal(os.Interrupt); code != 0 || !strings.Contains(out, "none failed") {
				t.Errorf("exit code %d\n%s%s", code, out, p.errOut.String())
			}
			expectEmpty(t, tmp)
		})
	}
}

func TestDemoUnknownStep(t *testing.T) {
	p := start(t, t.TempDir(), "demo", "--steps", "kill,flood")
	if _, code := p.wait(); code != 2 || !strings.Contains(p.errOut.String(), `no step "flood": use some of kill, restart, canary, slow, freeze, outage`) {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
}

// The other commands work during a demo, which exits cleanly when it is interrupted.
func TestBesideDemo(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--every", "0s", "--rate", "20")
	at := strings.Fields(p.line("registry"))[2]
	p.line("ready")
	// The effect of a write to the connection of a killed instance.
	if err := p.Process.Signal(syscall.SIGPIPE); err != nil {
		t.Fatal(err)
	}

	var list struct {
		Services []struct {
			Name      string
			Instances []struct{ ID, Address, State string }
		}
	}
	out := run(t, "ls", "--registry", at, "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Services) != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range list.Services {
		if len(s.Instances) != 3 || s.Instances[0].ID != s.Name+"-1" {
			t.Errorf("%+v", s)
		}
	}
	if out := run(t, "ls", "--registry", at); !strings.Contains(out, "arith-3") {
		t.Error(out)
	}
	if out := run(t, "call", "arith", "Arith.Mul", `{"A": 7, "B": 8}`, "--registry", at); out != "{\n  \"C\": 56\n}\n" {
		t.Error(out)
	}
	if out := run(t, "call", at+"/front", "Front.Page", `{"posttype": "golang"}`); !strings.Contains(out, "Draining without an error") {
		t.Error(out)
	}
	if out := run(t, "describe", "posts", "Posts.Query", "--registry", at); !strings.Contains(out, `"surl": ""`) {
		t.Error(out)
	}
	p.line("SERVICE") // a table
	p.line("front-3")
	rest, code := p.signal(os.Interrupt)
	if code != 0 || !strings.Contains(rest, "none failed; 0 instances killed, 0 restarted") {
		t.Errorf("exit code %d\n%s%s", code, rest, p.errOut.String())
	}
	expectEmpty(t, tmp)
}

// A stock client and a stock server of rpcx are among the members, and none of their calls fails
// when instances are killed and restarted.
func TestDemoRPCX(t *testing.T) {
	t.Parallel()
	program, tmp := filepath.Join(t.TempDir(), "member"), t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./rpcx/member")
	build.Dir, build.Env = "../../examples/coming", append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	forLonger(t, 6*time.Second, func(length time.Duration) (missing []string) {
		p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--rpcx", program, "--steps", "kill,restart", "--for", length.String())
		p.line("a stock client calls arith through the gateway")
		rest, code := p.wait()
		if code != 0 || !strings.Contains(rest, "none failed") {
			t.Errorf("exit code %d\n%s%s", code, rest, p.errOut.String())
		}
		last := rest[max(0, strings.LastIndex(rest, "SERVICE  INSTANCE")):]
		for _, member := range []string{"rpcx-server", "rpcx-client"} {
			if calls := regexp.MustCompile(member + ` +\S+ +up +([0-9.]+)`).FindStringSubmatch(last); calls == nil || calls[1] == "0" {
				missing = append(missing, member+" has no calls:\n"+last)
			}
		}
		return missing
	})
	expectEmpty(t, tmp)
	p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--rpcx", program+"-none")
	if _, code := p.wait(); code != 1 || !strings.Contains(p.errOut.String(), "the program with the members of rpcx") {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
}

// No process started by a demo outlives it, however it ends.
func TestDemoKilled(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "demo", "--listen", "127.0.0.1:0")
	p.line("ready")
	if _, code := p.signal(os.Kill); code != -1 {
		t.Errorf("exit code %d", code)
	}
}

// An interrupt during the start of the demo also ends it.
func TestDemoInterruptedEarly(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--listen", "127.0.0.1:0")
	p.line("registry")
	if out, code := p.signal(os.Interrupt); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, out, p.errOut.String())
	}
	expectEmpty(t, tmp)
}

// A demo whose output is no longer read ends as if it were interrupted.
func TestDemoUnread(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--every", "500ms")
	p.line("ready")
	p.stdout.Close()
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
	expectEmpty(t, tmp)
}
