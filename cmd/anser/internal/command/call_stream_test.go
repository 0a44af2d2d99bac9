package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/command"
)

func TestCallStream(t *testing.T) {
	at := serve(t)
	file := filepath.Join(t.TempDir(), "numbers.json")
	if err := os.WriteFile(file, []byte("{\"N\": 1}\n{\n\"N\": 2}"), 0o600); err != nil {
		t.Fatal(err)
	}
	const sums = "{\"Total\":1}\n{\"Total\":3}\n"
	for name, r := range map[string]result{
		"arguments": run(t, "call", at, "Test.Sum", `{"N": 1}`, `{"n": 2}`),
		"input":     runWith(t, "{\"N\": 1}\n\n{\"N\":2}\n", "call", at, "Test.Sum", "-"),
		"file":      run(t, "call", at, "Test.Sum", "@"+file),
		"follow":    run(t, "call", at, "Test.Sum", "@"+file, "--follow"),
	} {
		if r.code != 0 || r.out != sums || r.err != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	r := run(t, "call", at, "Test.Sum", "--trailers")
	if r.code != 0 || r.out != "" || r.err != "total: 0\n" {
		t.Errorf("without messages: %+v", r)
	}
	run(t, "describe", at, "Test.Sum").expect(t, 0, "stream: ", "anser call "+at+` Test.Sum '{"N": 0}'`)
}

func TestCallStreamErrors(t *testing.T) {
	at := serve(t)
	r := runWith(t, "{\"N\": 1}\n{\"N\": -1}\n{\"N\": 1}", "call", at, "Test.Sum", "-", "--trailers")
	if r.code != 6 || r.out != "{\"Total\":1}\n" || !strings.HasPrefix(r.err, "total: 1\n") || !strings.Contains(r.err, "-1 is below 0") {
		t.Errorf("%+v", r)
	}
	runWith(t, "{\"N\": 1}\n{\"N\": ]", "call", at, "Test.Sum", "-").expect(t, 2, "message 2 of the standard input is not JSON")
	runWith(t, "{\"N\": 1}\n{\"M\": 2}", "call", at, "Test.Sum", "-").expect(t, 2, "message 2 of the standard input: the message has the unknown key M: the keys are N")
	run(t, "call", at, "Test.Sum", "{").expect(t, 2, "the message is not JSON")
	run(t, "call", at, "Test.Sum", "@nowhere.json").expect(t, 2, "nowhere.json")
	run(t, "call", at, "Test.Sum", "--oneway").expect(t, 2, "Test.Sum is a stream")
	run(t, "call", at, "Arith.Mul", "--follow").expect(t, 2, "--follow is for streams")
	// Either the client ends the stream, or the handler is faster. On a slow machine the stream may
	// not have begun.
	r = run(t, "call", at, "Test.Ticks", "--timeout", "2s")
	if r.code == notSent {
		r = run(t, "call", at, "Test.Ticks", "--timeout", "30s")
	}
	if r.code != 5 && r.code != 6 || !strings.Contains(r.err, "deadline exceeded") {
		t.Errorf("%+v", r)
	}
	run(t, "call", unused(t), "Test.Sum", "--stream").expect(t, 3, "no server is listening")
}

func TestCallStreamJSON(t *testing.T) {
	at := serve(t)
	r := run(t, "call", at, "Test.Sum", `{"N": 3}`, `{"N": -1}`, "--json")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var end struct {
		Error          struct{ Code, Message string }
		Trailers       map[string]string
		Sent, Received int
	}
	if len(lines) != 2 || lines[0] != `{"reply":{"Total":3}}` || json.Unmarshal([]byte(lines[1]), &end) != nil {
		t.Fatalf("%+v", r)
	}
	if r.code != 6 || end.Error.Message != "-1 is below 0" || end.Trailers["total"] != "3" || end.Sent != 2 || end.Received != 1 || r.err != "" {
		t.Errorf("%+v: %+v", r, end)
	}
}

// Streams also work with a server that does not describe its methods.
func TestCallStreamWithoutDescription(t *testing.T) {
	at := serve(t, anser.NoDescribe())
	run(t, "call", at, "Test.Sum", `{"N": 1}`).expect(t, 4, "is a stream: use anser call --stream")
	run(t, "call", at, "Test.Sum", `{"N": 1}`, "--stream").expect(t, 0, `{"Total":1}`)
	run(t, "call", at, "Arith.Mul", `{"A": 1}`, "--stream").expect(t, 4, "is not a stream: leave --stream out")
}

// With --follow a stream continues until the user ends it, which is not an error.
func TestCallStreamFollow(t *testing.T) {
	at := serve(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &firstWrite{then: interrupt}
	var errOut bytes.Buffer
	code := command.Run(ctx, []string{"call", at, "Test.Ticks", "--follow", "--timeout", "2m"}, strings.NewReader(""), out, &errOut)
	if code != 0 || out.String() != "{\"Total\":1}\n" || errOut.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, out.String(), errOut.String())
	}
}

// firstWrite calls a function at the first write.
type firstWrite struct {
	bytes.Buffer
	once sync.Once
	then func()
}

func (w *firstWrite) Write(p []byte) (int, error) {
	defer w.once.Do(w.then)
	return w.Buffer.Write(p)
}

// The codec would silently ignore an unknown key.
func TestCallUnknownKey(t *testing.T) {
	at := serve(t)
	run(t, "call", at, "Arith.Mul", `{"A": 7, "C": 8}`).expect(t, 2, "the message has the unknown key C: the keys are A, B", `"anser describe `+at+` Arith.Mul"`, "--no-check")
	run(t, "call", at, "Arith.Mul", `{"A": 7, "BB": 8}`).expect(t, 2, "the unknown key BB: did you mean B?")
	run(t, "call", at, "Arith.Mul", `{"a": 7, "b": 8}`).expect(t, 0, `"C": 56`)
	run(t, "call", at, "Arith.Mul", `{"A": 7, "C": 8}`, "--no-check").expect(t, 0, `"C": 0`)
	run(t, "call", serve(t, anser.NoDescribe()), "Arith.Mul", `{"A": 7, "C": 8}`).expect(t, 0, `"C": 0`)
}

// The limit of the command is a flag, and that of the server an option of its program.
func TestCallOverALimit(t *testing.T) {
	at := serve(t)
	run(t, "call", at, "Arith.Mul", "--max-message", "1").expect(t, 5+1, "limit", "raise it with --max-message", "the description of the methods is over --max-message")
	run(t, "call", at, "Arith.Mul", `{"a": 7, "C": 8}`, "--max-message", "100").expect(t, 0, `"C": 0`, "the message is sent without a check")
	s := anser.NewServer()
	anser.Handle(s, "Test.Long", func(context.Context, *anser.None) (*string, error) {
		text := strings.Repeat("long ", 40_000)
		return &text, nil
	})
	long := listen(t, s)
	run(t, "call", long, "Test.Long", "--max-message", "1").expect(t, 5+1, "limit", "raise it with --max-message")
	run(t, "call", long, "Test.Long", "--max-message", "1", "--compress", "gzip,forced").expect(t, 5+1, "limit", "raise it with --max-message")
	run(t, "call", at, "Test.Ticks", "--max-message", "1", "--stream").expect(t, 5, "limit", "raise it with --max-message")
	small, padded := serve(t, anser.MaxMessage(100)), `{"A": 7, "B": 8}`+strings.Repeat(" ", 100_000)
	run(t, "call", small, "Arith.Mul", padded).expect(t, 3, "limit", "raise it with anser.MaxMessage on the server")
	run(t, "call", small, "Arith.Mul", padded[:1000]).expect(t, 4, "limit", "raise it with anser.MaxMessage on the server")
	run(t, "call", small, "Arith.Mul", padded, "--compress", "gzip,forced").expect(t, 4, "limit", "raise it with anser.MaxMessage on the server")
	run(t, "call", small, "Test.Sum", `{"N": 1}`+padded[16:]).expect(t, 5, "limit", "raise it with anser.MaxMessage on the server")
}
