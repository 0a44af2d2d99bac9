package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
)

func TestHelp(t *testing.T) {
	run(t).expect(t, 0, "anser demo", "A TARGET is")
	for _, name := range []string{
		"demo", "registry", "console", "console audit", "console user", "console user add", "console user list", "console user remove", "instances", "instances set", "ls", "describe", "call", "bench", "bench serve", "doctor", "explain", "rules", "rules get", "rules set", "rules delete", "rules diff", "rules dry-run",
		"rules history", "rules rollback", "record", "replay", "file", "file put", "file get", "file ls", "file rm", "version", "man", "help",
	} {
		r := run(t, append(strings.Fields(name), "--help")...)
		r.expect(t, 0, "Examples:\n  anser "+name, "Usage:")
		for line := range strings.Lines(r.out) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
				t.Errorf("%s: a line of %d columns: %s", name, n, line)
			}
		}
	}
	run(t, "demos").expect(t, 2, `unknown command "demos" for "anser": did you mean demo?`)
	run(t, "hep").expect(t, 2, `unknown command "hep" for "anser": did you mean help?`)
	for _, far := range [][]string{{"foo"}, {"help", "foo"}} {
		if r := run(t, far...); r.code != 2 || strings.Contains(r.err, "did you mean") {
			t.Errorf("%q: %d %s", far, r.code, r.err)
		}
	}
	run(t, "rules", "gte", "arith").expect(t, 2, `unknown command "gte" for "anser rules": did you mean get?`)
	run(t, "rules", "zzzz", "arith").expect(t, 2, `unknown command "zzzz" for "anser rules": use one of delete, diff, dry-run, get, history, rollback, set`)
	run(t, "file", "lst", "store").expect(t, 2, `unknown command "lst" for "anser file"`)
	run(t, "rules").expect(t, 0, "Available Commands:", "anser rules get arith")
	for _, args := range [][]string{{"ls"}, {"describe", "a"}, {"call", "a", "B.C"}, {"bench", "a", "B.C"}, {"explain", "a", "B.C"}, {"rules", "get", "a"}, {"file", "ls", "a"}, {"replay", "a"}} {
		for _, wrong := range []string{"0s", "-1s", "abc"} {
			run(t, append(args, "--timeout="+wrong)...).expect(t, 2, "use a time above 0, such as 5s or 200ms: see anser "+args[0])
		}
	}
	run(t, "completion", "bash").expect(t, 0, "bash completion")
}

func TestHelpOfACommand(t *testing.T) {
	run(t, "help").expect(t, 0, "Services:", "anser demo")
	run(t, "help", "rules", "set").expect(t, 0, "Usage:\n  anser rules set", "--create")
	run(t, "help", "cal").expect(t, 2, `unknown command "cal" for "anser": did you mean call?`)
	run(t, "help", "rules", "sett").expect(t, 2, `unknown command "sett" for "anser rules": did you mean set?`)
	run(t, "help", "zzzzzzzz").expect(t, 2, "use one of bench, breaking, call")
	run(t, "help", "call", "me").expect(t, 2, `unknown command "me" for "anser call": it has no commands below it`)
	run(t, "bench", "serve", "--help").expect(t, 0, // the columns of a table are kept
		"\n  Hello.Say        the protobuf message", "\n  Echo.Bytes       bytes, echoed", "\n  MathService.Add  two numbers")
	run(t, "__complete", "help", "").expect(t, 0, "call\t")
}

func TestMan(t *testing.T) {
	run(t, "man").expect(t, 0, `.TH "ANSER" "1" "" "anser `, "SYNOPSIS", "anser-call(1)") // without a date: a version has one page
	dir := filepath.Join(t.TempDir(), "man1")
	run(t, "man", dir).expect(t, 0, "pages are in "+dir)
	page, err := os.ReadFile(filepath.Join(dir, "anser-rules-set.1"))
	if err != nil || !strings.Contains(string(page), `\fB--create\fP`) || !strings.Contains(string(page), `"1" "" "anser `) {
		t.Errorf("%v\n%s", err, page)
	}
	run(t, "man", "rules", "set").expect(t, 0, `.TH "ANSER-RULES-SET"`, `\fB--create\fP`)
	run(t, "man", "rules", "sett").expect(t, 2, `unknown command "sett" for "anser rules": did you mean set?`)
	run(t, "man", dir, "call").expect(t, 2, "unknown command")
	run(t, "__complete", "man", "rules", "").expect(t, 0, "dry-run\t")
	run(t, "man", filepath.Join(dir, "anser.1", "below")).expect(t, 1, "make the folder of the pages")
}

// Advice of the libraries is rewritten to name flags, not Go functions.
func TestHintsNameFlags(t *testing.T) {
	at := serve(t)
	for hint, args := range map[string][]string{
		"leave --tls and the flags like it out": {"call", at, "Arith.Mul", "--tls"},
		"use --oneway":                          {"call", serve(t, anser.NoDescribe()), "Test.Note"},
		"use anser call":                        {"bench", at, "Test.Sum"},
		"--insecure-public":                     {"bench", "serve", "--listen", "0.0.0.0:0"},
		"--max-message":                         {"call", at, "Arith.Mul", "--max-message", "-1"},
	} {
		r := run(t, args...)
		if r.code == 0 || !strings.Contains(r.err, hint) || strings.Contains(r.err, "anser.") && !strings.Contains(r.err, "anser.Methods") {
			t.Errorf("%q: want %q\n%+v", args, hint, r)
		}
	}
}

func TestVersion(t *testing.T) {
	run(t, "version").expect(t, 0, "anser ", "protocol 1", "go1.")
	if flag, command := run(t, "--version"), run(t, "version"); flag != command {
		t.Errorf("--version printed %+v, version %+v", flag, command)
	}
	var v struct {
		Version, Go, Platform string
		Protocol              int
	}
	r := run(t, "version", "--json")
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.Version == "" || v.Protocol != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestCompletion(t *testing.T) {
	at := serve(t)
	run(t, "__complete", "call", at, "").expect(t, 0, "Arith.Add\n", "Arith.Mul\n")
	run(t, "__complete", "call", "--registry", "etcd://"+unused(t), "").expect(t, 0, ":4\n")
}

func TestDemoErrors(t *testing.T) {
	run(t, "demo", "--callers", "0").expect(t, 2, "--callers 0: at least 1")
	run(t, "demo", "--rate", "-1").expect(t, 2, "--rate -1")
	run(t, "demo", "--for", "-1s").expect(t, 2, "must not be negative")
	run(t, "demo", "now").expect(t, 2, `"now" is one argument too many`)
	at := serve(t)
	run(t, "demo", "--listen", at).expect(t, 1, "the registry cannot listen on "+at, "--listen")
	run(t, "demo-instance", "--service", "nope").expect(t, 1, `no service "nope"`)
}

func TestRegistryErrors(t *testing.T) {
	at := serve(t)
	run(t, "registry", "--listen", at, "--data", t.TempDir()).expect(t, 1, "the registry cannot listen on "+at, "--listen")
	run(t, "registry", "--members", "2").expect(t, 2, "--members 2: use 1 or 3")
	run(t, "registry", "--members", "3", "--listen", "127.0.0.1:0").expect(t, 2, "a fixed port")
	run(t, "registry", "--members", "3", "--initial-cluster", "a=h:1").expect(t, 2, "use one of them")
	run(t, "registry", "--name", "a").expect(t, 2, "--initial-cluster")
	run(t, "registry", "--initial-cluster", "a,b").expect(t, 2, `has "a": use name=host:port`)
	run(t, "registry", "--initial-cluster", "a=h:1,a=h:2").expect(t, 2, `names "a" twice`)
	run(t, "registry", "--initial-cluster", "a=127.0.0.1:1,b=127.0.0.1:2", "--name", "c", "--listen", "127.0.0.1:0", "--data", t.TempDir()).expect(t, 1, `"c"`)
	run(t, "registry", "--listen", "0.0.0.0:0", "--data", t.TempDir()).expect(t, 1, "TLS")
}
