package command_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/document"
	"github.com/anser-rpc/anser/arena/internal/hosts/hoststest"
	"github.com/anser-rpc/anser/arena/result"
)

func rowsOf(t *testing.T, text string) (doc result.Document, rows map[string]*result.Row) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if d.More() {
		t.Errorf("the output is more than one document:\n%s", text)
	}
	rows = make(map[string]*result.Row)
	for i := range doc.Rows {
		rows[doc.Rows[i].Peer] = &doc.Rows[i]
	}
	return doc, rows
}

// longEnough tries measurements of some tenths of a second, and longer ones if these were too
// short, as on a machine that is paused. try fails the test for errors unrelated to time, and
// returns what else is wrong.
func longEnough(t *testing.T, try func(seconds string) (wrong string)) {
	t.Helper()
	wrong := ""
	for _, seconds := range []string{"0.4", "4", "40"} {
		if wrong = try(seconds); wrong == "" || t.Failed() {
			break
		}
		t.Logf("in %s s: %s", seconds, wrong)
	}
	if wrong != "" {
		t.Error(wrong)
	}
}

// A client that says nothing counts as hanging.
func TestRunMute(t *testing.T) {
	got := ""
	// The same time is for the server to start: where it is too short for that, there is a longer
	// one.
	for _, try := range [][2]string{{"3", "the client said nothing within 4s"}, {"60", "the client said nothing within 1m1s"}} {
		timeout, want := try[0], try[1]
		code, out, errOut := arena(t, "run", "--peers", "mute", "--callers", "20", "--conns", "usual", "--calls", "1000", "--rounds", "1",
			"--timeout", timeout, "--no-repeat", "--json", "-")
		_, rows := rowsOf(t, out)
		if code != 0 || rows["mute"].Valid {
			t.Fatalf("exit code %d, %+v:\n%s", code, rows["mute"], errOut)
		}
		if got = rows["mute"].Rounds[0].FirstError; strings.HasPrefix(got, want) {
			return
		}
	}
	t.Error(got)
}

// Every other failure is reported, too, and does not affect the other peers.
func TestRun(t *testing.T) {
	code, out, errOut := arena(t, "run", "--peers", "all,-mute", "--callers", "20", "--conns", "usual", "--calls", "1000", "--rounds", "1",
		"--timeout", "60", "--no-repeat", "--json", "-")
	if code != 1 { // one does not build
		t.Errorf("exit code %d", code)
	}
	expect(t, "the standard error", errOut, "what the compiler says", "exit status 7", "plain: say, 20 callers, 2 connections, 1000 calls, round 1 of 1: ")
	doc, rows := rowsOf(t, out)
	plain := rows["plain"]
	if plain == nil {
		t.Fatalf("plain has no row:\n%s\n%s", out, errOut)
	}
	if !plain.Valid || plain.Errors != 0 || plain.Wrong != 0 || plain.Calls != 1000 || plain.CallsPerSecond <= 0 || plain.SuccessRate != 1 ||
		plain.P50US <= 0 || plain.P99US < plain.P50US || plain.ClientCPUUS <= 0 || plain.ServerCPUUS <= 0 || len(plain.Rounds) != 1 {
		t.Errorf("plain: %+v", plain)
	}
	for name, figure := range map[string]*float64{"wire": plain.WireBytes, "reads": plain.ServerReads, "writes": plain.ClientWrites} {
		if figure == nil || *figure <= 0 {
			t.Errorf("%s of plain are not known", name)
		}
	}
	// The counters are read every 50 ms, which blurs the ends of so short a run: the sizes are for
	// the tests of package measure.
	if s := plain.Shape; s != (result.Shape{Callers: 20, Conns: 2, Payload: 581, Servers: 1, Clients: 1, Hosts: 1, Calls: 1000}) {
		t.Errorf("the shape is %+v", s)
	}
	for name, want := range map[string]string{
		"crashing-client": "the client ended with exit code 3; it said: plain: the client's last words",
		"crashing-server": "the server ended with exit code 5; it said: plain: the server's last words",
		"babbling":        `the client printed "this is not an object\n"`,
		"wrong":           "",
	} {
		row := rows[name]
		if row == nil || row.Valid {
			t.Errorf("%s is valid: %+v", name, row)
		} else if got := row.Rounds[0].FirstError; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if rows["wrong"].Wrong == 0 {
		t.Errorf("the wrong replies are not counted: %+v", rows["wrong"])
	}
	if row := rows["failing"]; !row.Valid || row.Errors == 0 || row.SuccessRate >= 1 || row.Rounds[0].FirstError != "this one failed" {
		t.Errorf("failing: %+v", row)
	}
	if row := rows["rude"]; !row.Valid || !strings.HasPrefix(row.Rounds[0].FirstError, "at SIGTERM the server ended with exit code 4") {
		t.Errorf("rude: %+v", row)
	}
	want := []result.NotRun{{Peer: "needy", Reason: "needs no-such-program"}, {Peer: "broken", Reason: "does not build: exit status 7"}}
	if !slices.Equal(doc.NotRun, want) {
		t.Errorf("not run: %+v", doc.NotRun)
	}
	if got := strings.Join(doc.Command, " "); got != "go run ./arena run --callers=20 --calls=1000 --conns=usual --no-repeat=true --peers=all,-mute --rounds=1 --timeout=60" {
		t.Errorf("the command is %s", got)
	}
	if doc.Schema != result.Schema || doc.Machine.Cores < 1 || doc.Machine.Tools["go"] == "" || doc.Ended.Before(doc.Began) {
		t.Errorf("the document is %+v", doc)
	}
}

// Shapes of every kind, in two rounds that take turns.
func TestRunShapes(t *testing.T) {
	whatever := func(*result.Row) bool { return true }
	for name, c := range map[string]struct {
		args []string
		good func(r *result.Row) bool
	}{
		"each": {[]string{"--conns", "0"}, whatever},
		"add over fresh connections": {[]string{"--workload", "add", "--fresh"}, func(r *result.Row) bool {
			return r.Workload == "add" && r.Shape.Payload == 0 && r.Shape.Fresh
		}},
		"several processes": {[]string{"--servers", "2", "--clients", "2", "--conns", "4"}, whatever},
		"counted, with a window": {[]string{"--calls", "3000", "--window", "5"}, func(r *result.Row) bool {
			return r.Calls == 3000 && r.Shape.Seconds == 0
		}},
		"open loop with a handler that sleeps": {[]string{"--rate", "200", "--sleep-us", "2000"}, func(r *result.Row) bool {
			return r.CallsPerSecond > 100 && r.CallsPerSecond < 250 && r.P50US >= 2000
		}},
		"64 KiB": {[]string{"--payload", "65536"}, func(r *result.Row) bool { return *r.WireBytes >= 65536 }},
	} {
		t.Run(name, func(t *testing.T) {
			longEnough(t, func(seconds string) string {
				args := []string{"run", "--peers", "plain", "--callers", "10", "--conns", "2", "--seconds", seconds, "--rounds", "2", "--no-repeat", "--json", "-"}
				code, out, errOut := arena(t, append(args, c.args...)...)
				if code != 0 {
					t.Fatalf("exit code %d:\n%s", code, errOut)
				}
				doc, rows := rowsOf(t, out)
				r := rows["plain"]
				if len(doc.Rows) != 1 || r.Errors > 0 || r.Wrong > 0 || len(r.Rounds) != 2 || r.CallsPerSecondRange[0] > r.CallsPerSecondRange[1] {
					t.Fatalf("%s\n%s", out, errOut)
				}
				// On a busy machine a client may have come and gone between two looks at its
				// memory.
				if !r.Valid || r.ClientMiB < 1 || r.ServerMiB < 1 || !c.good(r) {
					return out + errOut
				}
				return ""
			})
		})
	}
}

func TestRunShare(t *testing.T) {
	longEnough(t, func(seconds string) string {
		code, out, errOut := arena(t, "run", "--peers", "plain", "--callers", "10", "--seconds", seconds, "--rounds", "1", "--no-repeat", "--rate", "20%", "--trial", seconds)
		if code != 0 {
			t.Fatalf("exit code %d:\n%s", code, errOut)
		}
		expect(t, "the table", out, "say, 10 callers, each with its best connections\n", "mark: plain: for tests only")
		expect(t, "the progress", errOut, "10 callers, 2 connections, trial: ", "10 callers, a connection for each caller, trial: ")
		if !strings.Contains(out, "20 % of its own peak offered\nPEER") { // no call was ever made that it could be a share of
			return out + errOut
		}
		return ""
	})
}

// A run that is interrupted goes on where it was.
func TestResume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopping := &output{onText: func(text string) {
		if strings.Contains(text, "round 1 of 2") {
			cancel()
		}
	}}
	code, _, errOut := arenaWith(t, ctx, stopping, "run", "--peers", "plain,failing", "--callers", "5", "--seconds", "0.3", "--trial", "0.1", "--rounds", "2",
		"--no-repeat", "--json", file)
	if code != 1 || !strings.Contains(errOut, "interrupted: continue with arena run --resume "+file) {
		t.Fatalf("exit code %d:\n%s", code, errOut)
	}
	half, err := document.Read(file)
	if err != nil || len(half.Rows) == 0 || len(half.Rows[0].Rounds) != 1 {
		t.Fatalf("%+v, %v", half, err)
	}
	for _, row := range half.Rows {
		if len(row.Rounds) == 0 {
			t.Errorf("%s has a row without a round", row.Peer)
		}
	}
	if code, _, errOut := arena(t, "run", "--resume", file, "--callers", "6"); code != 2 || !strings.Contains(errOut, "give no other flags") {
		t.Errorf("with another flag: exit code %d:\n%s", code, errOut)
	}
	if code, out, errOut := arena(t, "run", "--resume", file); code != 0 || !strings.Contains(out, "plain") {
		t.Fatalf("exit code %d:\n%s\n%s", code, out, errOut)
	}
	whole, err := document.Read(file)
	if err != nil || len(whole.Rows) != 2 || len(whole.Rows[0].Rounds) != 2 || len(whole.Rows[1].Rounds) != 2 {
		t.Fatalf("%+v, %v", whole, err)
	}
	if whole.Rows[0].Rounds[0].Began != half.Rows[0].Rounds[0].Began || !slices.Equal(whole.Command, half.Command) {
		t.Errorf("the first round was measured again")
	}
	// Figures of two commits or machines do not belong into one document.
	for want, change := range map[string]func(*result.Document){
		"its commit is abc":                  func(d *result.Document) { d.Commit = "abc" },
		"it was measured on another machine": func(d *result.Document) { d.Machine.Cores++ },
		"is not a result of arena run":       func(d *result.Document) { d.Command = []string{"make"} },
		"is unknown to this version":         func(d *result.Document) { d.Command = append(d.Command, "--colour=red") },
	} {
		other := *whole
		change(&other)
		if err := document.Write(file, &other); err != nil {
			t.Fatal(err)
		}
		if code, _, errOut := arena(t, "run", "--resume", file); code != 1 || !strings.Contains(errOut, want) {
			t.Errorf("exit code %d, want an error about %q:\n%s", code, want, errOut)
		}
	}
}

// The suite for CI forgives nothing, and says what it found.
func TestStrict(t *testing.T) {
	code, out, errOut := arena(t, "run", "--suite", "ci", "--peers", "plain")
	if code != 0 {
		t.Errorf("exit code %d:\n%s\n%s", code, out, errOut)
	}
	expect(t, "the table", out, "say, 100 callers, 2 connections\n", "add, 100 callers, 2 connections\n")
	code, _, errOut = arena(t, "run", "--suite", "ci", "--peers", "failing,rude,wrong")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	expect(t, "the standard error", errOut, "faults:", "failing: say, 100 callers, 2 connections: this one failed",
		"rude: say, 100 callers, 2 connections: at SIGTERM", "wrong replies")
}

func TestRunUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"no peer, folder or language is named":    {"--peers", "nobody"},
		`there is no suite "none": use full`:      {"--suite", "none"},
		"--callers and --suite: the suite decide": {"--suite", "ci", "--callers", "5"},
		"--callers 0: it must be at least 1":      {"--callers", "0"},
		"--rounds 0: it must be at least 1":       {"--rounds", "0"},
		"--rate fast: use calls per second":       {"--rate", "fast"},
		"--conns many: use best, all, usual":      {"--conns", "many"},
		"--conns 2 and --suite: the suite decide": {"--suite", "full", "--conns", "2"},
		"--trial 0: it must be more than 0":       {"--trial", "0"},
		"--timeout 0":                             {"--timeout", "0"},
		"--warmup -1":                             {"--warmup", "-1"},
		"--servers, --clients and --hosts":        {"--servers", "0"},
		"unknown flag: --colour":                  {"--colour"},
		`"x" is an unexpected argument`:           {"x"},
	} {
		if code, _, errOut := arena(t, append([]string{"run"}, args...)...); code != 2 || !strings.Contains(errOut, want) {
			t.Errorf("%q: exit code %d:\n%s", args, code, errOut)
		}
	}
	if code, _, errOut := arena(t, "run", "--suite", "kiss"); code != 1 || !strings.Contains(errOut, "the folder anser, which does not exist") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
}

// Two hosts are made for the run and removed after it, which only root can do.
func TestRunHosts(t *testing.T) {
	hoststest.Lock(t)
	longEnough(t, func(seconds string) string {
		code, out, errOut := arena(t, "run", "--peers", "plain", "--callers", "5", "--conns", "2", "--seconds", seconds, "--rounds", "1", "--no-repeat", "--hosts", "2", "--json", "-")
		if os.Geteuid() != 0 {
			if code != 1 || !strings.Contains(errOut, "only root can create") {
				t.Errorf("exit code %d:\n%s", code, errOut)
			}
			return ""
		}
		if code != 0 {
			t.Fatalf("exit code %d:\n%s", code, errOut)
		}
		if _, rows := rowsOf(t, out); !rows["plain"].Valid || rows["plain"].WireBytes == nil || *rows["plain"].WireBytes < 2*581 {
			return out
		}
		return ""
	})
}

// The number of system calls of every kind is at least the minimum that the framework needs.
func TestRunSyscalls(t *testing.T) {
	longEnough(t, func(seconds string) string {
		code, out, errOut := arena(t, "run", "--peers", "plain", "--callers", "2", "--conns", "2", "--seconds", seconds, "--rounds", "1", "--no-repeat", "--syscalls", "--json", "-")
		if code != 0 {
			t.Fatalf("exit code %d:\n%s", code, errOut)
		}
		_, rows := rowsOf(t, out)
		if r := rows["plain"]; r.ServerSyscalls == nil || *r.ServerSyscalls < 0.5 || r.ClientSyscalls == nil || *r.ClientSyscalls < 0.5 {
			return out + errOut
		}
		return ""
	})
}
