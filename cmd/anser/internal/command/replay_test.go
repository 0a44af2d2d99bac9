package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/replay"
	"github.com/anser-rpc/anser/record"
)

// recordArith records calls of the demo's arith, and returns the folder.
func recordArith(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "calls")
	r, err := record.New(record.Options{Dir: dir, Share: 1})
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, r.Option())
	for _, args := range []string{`{"A": 1, "B": 2}`, `{"A": 3, "B": 4}`} {
		run(t, "call", at, "Arith.Mul", args).expect(t, 0)
	}
	run(t, "call", at, "Arith.Add", `{"A": 1, "B": 2}`).expect(t, 0)
	run(t, "call", at, "Test.Fail").expect(t, 6)
	run(t, "call", at, "Test.Talk", `"hello"`).expect(t, 0)
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveWrong serves an arith that multiplies wrongly.
func serveWrong(t *testing.T) string {
	return serve(t, anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			err := next(ctx, inv)
			if out, ok := inv.Reply.(*arith.Reply); ok && inv.Method == "Arith.Mul" && out.C > 10 {
				inv.Reply = &arith.Reply{C: out.C + 1}
			}
			return err
		}
	}))
}

func TestRecordCommand(t *testing.T) {
	dir := recordArith(t)
	run(t, "record", dir).expect(t, 0, "5 calls in 1 file", "METHOD", "Arith.Mul", "Test.Talk")
	r := run(t, "record", dir, "--calls", "--method", "Arith.*")
	r.expect(t, 0, "Arith.Mul  ok", `{"A": 3, "B": 4}`)
	if strings.Count(r.out, "\n") != 3 {
		t.Error(r.out)
	}
	run(t, "record", dir, "--calls").expect(t, 0, "Test.Fail  not found", "stream of 1 message")
	run(t, "record", dir, "--calls", "--json", "--since", "0s").expect(t, 0, `"method":"Test.Talk"`)
	if r := run(t, "record", dir, "--calls", "--until", "1h"); r.code != 0 || r.out != "" {
		t.Errorf("%+v", r)
	}
	var index record.Index
	run(t, "record", dir, "--json").decode(t, &index)
	if index.Calls != 5 || index.Methods["Arith.Mul"] != 2 || index.Files != 1 {
		t.Errorf("%+v", index)
	}
	for want, args := range map[string][]string{
		"no such file":          {"record", filepath.Join(dir, "x")},
		"no files of a record":  {"record", t.TempDir()},
		"is not a time":         {"record", dir, "--calls", "--since", "yesterday"},
		"is not a pattern":      {"record", dir, "--calls", "--method", "["},
		"are for --calls":       {"record", dir, "--since", "1h"},
		"arguments are missing": {"record"},
	} {
		run(t, args...).expect(t, 2, want)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names[0], text[:len(text)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "record", dir).expect(t, 0, "damaged: ", "are not a whole block")
}

func TestReplay(t *testing.T) {
	dir, same, wrong := recordArith(t), serve(t), serveWrong(t)
	run(t, "replay", dir, "--to", same).expect(t, 0, "3 of 5 calls sent to "+same, "compared with the recording",
		"2 not sent", "streams are never marked idempotent", "not marked idempotent at", "The replies are the same.")
	run(t, "replay", dir, "--to", wrong).expect(t, 1, "Arith.Mul  C differs in 1 call", "old      12", "new      13", `request  {"A":3,"B":4}`, "One field differs.")
	run(t, "replay", dir, "--to", wrong, "--and", same, "--speed", "0").expect(t, 1, "compared with "+same, "C differs in 1 call")
	run(t, "replay", dir, "--to", wrong, "--ignore", "Arith.Mul:C", "--once").expect(t, 0, "The replies are the same.")
	run(t, "replay", dir, "--to", wrong, "--method", "Arith.Add", "--rate", "1000").expect(t, 0, "1 of 1 call sent")
	run(t, "replay", dir, "--to", same, "--unsafe", "--speed", "0").expect(t, 0, "5 of 5 calls sent")
	run(t, "replay", dir, "--to", same, "--method", "Test.*").expect(t, 1, "no call was sent")
	run(t, "replay", dir, "--to", same, "--method", "No.Such", "--json").expect(t, 1, `"methods": []`)
	var report replay.Report
	run(t, "replay", dir, "--to", wrong, "--json").decode(t, &report)
	if report.Differences != 1 || report.Sent != 3 || report.Skipped != 2 || len(report.Methods) != 4 || report.Methods[1].Differences[0].Example.New != "13" {
		t.Errorf("%+v", report)
	}
}

func TestReplayErrors(t *testing.T) {
	dir, none := recordArith(t), unused(t)
	for want, args := range map[string][]string{
		"--to is missing": {},
		"contradict":      {"--to", none, "--rate", "1", "--speed", "1"},
		"--rate is -1":    {"--to", none, "--rate", "-1"},
		"--speed is NaN":  {"--to", none, "--speed", "NaN"},
		"--open is 0":     {"--to", none, "--open", "0"},
		"names no field":  {"--to", none, "--ignore", "."},
		"has no key":      {"--to", none, "-H", "x"},
		"has no port":     {"--to", "127.0.0.1"},
		"time above 0":    {"--to", none, "--timeout", "0s"},
	} {
		run(t, append([]string{"replay", dir}, args...)...).expect(t, 2, want)
	}
	run(t, "replay", dir, "--to", none).expect(t, 3, "no server is listening at "+none)
}
