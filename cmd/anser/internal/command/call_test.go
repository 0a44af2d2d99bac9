package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/anser-rpc/anser"
)

func TestCall(t *testing.T) {
	at := serve(t)
	file := filepath.Join(t.TempDir(), "request.json")
	if err := os.WriteFile(file, []byte(`{"A": 7, "B": 8}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]result{
		"argument": run(t, "call", at, "Arith.Mul", `{"A": 7, "B": 8}`),
		"file":     run(t, "call", "tcp://"+at, "Arith.Mul", "@"+file),
		"input":    runWith(t, `{"A": 7, "B": 8}`, "call", at, "Arith.Mul", "-"),
	} {
		if r.code != 0 || r.out != "{\n  \"C\": 56\n}\n" || r.err != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	run(t, "call", at, "Arith.Add").expect(t, 0, `"C": 0`)
}

func TestCallSeveralArguments(t *testing.T) {
	at := serve(t)
	run(t, "call", at, "Test.DivMod", "[38, 7]").expect(t, 0, "[\n  5,\n  3\n]")
	run(t, "call", at, "Test.DivMod", `{"b": 7, "a": 38}`).expect(t, 0, "{\n  \"q\": 5,\n  \"r\": 3\n}")
	run(t, "call", at, "Test.DivMod", "[38]").expect(t, 4, "1 arguments: want (a int, b int)")
}

func TestCallOneway(t *testing.T) {
	at := serve(t)
	if r := run(t, "call", at, "Test.Note", `{"Text": "hello"}`, "--oneway"); r.code != 0 || r.out != "" || r.err != "" {
		t.Errorf("%+v", r)
	}
	if text := <-noted; text != "hello" {
		t.Error(text)
	}
	run(t, "call", at, "Test.Note", `{"Text": "hello"}`).expect(t, 4, "is oneway")
	run(t, "call", unused(t), "Test.Note", "--oneway").expect(t, 3, "no server is listening")
}

func TestCallCompressed(t *testing.T) {
	at := serve(t)
	for _, algorithm := range []string{"none", "gzip", "deflate,forced", "snappy,dynamic", "zstd,forced", "lz4,forced"} {
		r := run(t, "call", at, "Arith.Mul", `{"A": 7, "B": 8}`, "--compress", algorithm)
		if r.code != 0 || r.out != "{\n  \"C\": 56\n}\n" || r.err != "" {
			t.Errorf("%s: %+v", algorithm, r)
		}
	}
	run(t, "call", at, "Arith.Mul", "--compress", "zip").expect(t, 2, `compression "zip" is not known: use none, gzip`)
	run(t, "call", at, "Arith.Mul", "--compress", "gzip,always").expect(t, 2, `the mode "always" is not known: use forced or dynamic`)
	run(t, "__complete", "call", "--compress", "z").expect(t, 0, "zstd,forced")
}

func TestCallMetadata(t *testing.T) {
	at := serve(t)
	r := run(t, "call", at, "Test.Headers", "-H", "Tenant: blue", "-H", "x:1:2", "--trailers")
	var seen map[string]string
	r.decode(t, &seen)
	if seen["tenant"] != "blue" || seen["x"] != "1:2" {
		t.Errorf("the server saw %v", seen)
	}
	if r.err != "seen-by: the server\n" {
		t.Errorf("trailers: %q", r.err)
	}
	run(t, "call", at, "Test.Metadata", "-H", "tenant").expect(t, 2, `metadata "tenant" has no key: use -H key:value`)
	run(t, "call", at, "Test.Metadata", "-H", "té:x").expect(t, 3, "té")
}

func TestCallJSON(t *testing.T) {
	at := serve(t)
	var good struct {
		Reply    struct{ C int }
		Trailers map[string]string
		Micros   int64 `json:"time_us"`
	}
	r := run(t, "call", at, "Arith.Mul", `{"A": 7, "B": 8}`, "--json")
	r.decode(t, &good)
	if r.code != 0 || good.Reply.C != 56 || good.Micros <= 0 {
		t.Errorf("%+v: %s", good, r.out)
	}
	var bad struct {
		Reply json.RawMessage
		Error struct {
			Code, Outcome, Message, Method, Address, Phase string
			Remote                                         bool
			Details                                        []byte
		}
	}
	r = run(t, "call", at, "Test.Fail", "--json")
	r.decode(t, &bad)
	e := bad.Error
	if r.code != 6 || bad.Reply != nil || e.Code != "not found" || e.Outcome != "executed" || e.Message != "there is no such thing" ||
		e.Method != "Test.Fail" || e.Address != at || !e.Remote || string(e.Details) != "more" {
		t.Errorf("exit code %d, %+v", r.code, bad)
	}
	if r.err != "" {
		t.Errorf("the error was also printed as %q", r.err)
	}
}

func TestCallErrors(t *testing.T) {
	at, none := serve(t), unused(t)
	for _, c := range []struct {
		name  string
		args  []string
		code  int
		parts []string
	}{
		{"nobody listens", []string{none, "Arith.Mul"}, 3, []string{"no server is listening at " + none, "start the server", "not sent"}},
		{"unknown method", []string{at, "Arith.Mull"}, 4, []string{`did you mean "Arith.Mul"?`, `"anser describe ` + at + `" lists the methods`}},
		{"no such thing as a method", []string{at, "nothing"}, 4, []string{`"nothing" is not served here`}},
		{"method without its service", []string{at, "mull"}, 4, []string{`"mull" is not served here: did you mean "Arith.Mul"?`}},
		{"method without letters", []string{at, "A\x01B"}, 3, []string{"method"}},
		{"wrong type", []string{at, "Arith.Mul", `{"A": "x"}`}, 4, []string{"decode the request with json", "did not run"}},
		{"handler's error", []string{at, "Test.Fail"}, 6, []string{"there is no such thing (not found, executed)"}},
		{"no registry", []string{"arith", "Arith.Mul", "--registry", "etcd://" + none}, 1, []string{"no registry answers at etcd://" + none, `"anser demo" or "anser registry"`, "--registry"}},
		{"no registry in the target", []string{"etcd://" + none + "/arith", "Arith.Mul"}, 1, []string{"no registry answers at etcd://" + none}},
		{"unknown scheme", []string{"gopher://h:1/arith", "Arith.Mul"}, 2, []string{`unknown scheme "gopher": use tcp, tls, unix, http, https, ws, wss, quic, etcd, `}},
		{"no port", []string{"127.0.0.1", "Arith.Mul"}, 2, []string{`target "127.0.0.1" has no port: use host:port`}},
		{"port alone", []string{":8972", "Arith.Mul"}, 2, []string{"has no host"}},
		{"registry without scheme", []string{"arith", "Arith.Mul", "--registry", "127.0.0.1:2379"}, 2, []string{`registry "127.0.0.1:2379"`, "use etcd://127.0.0.1:2379"}},
		{"registry of another kind", []string{"arith", "Arith.Mul", "--registry", "gopher://h:1"}, 2, []string{`unknown scheme "gopher"`}},
		{"service with a blank", []string{"a b", "Arith.Mul"}, 2, []string{"service name"}},
		{"no service in the target", []string{"etcd://" + none, "Arith.Mul"}, 2, []string{"there is no service: use etcd://" + none + "/service"}},
		{"empty target", []string{"", "Arith.Mul"}, 2, []string{"the target is empty"}},
		{"bad JSON", []string{at, "Arith.Mul", `{"A": 7,]`}, 2, []string{"the message is not JSON", `{\"A\": 7,]`, "single quotes"}},
		{"half of the JSON", []string{at, "Arith.Mul", `{"A": 7`}, 2, []string{"the message is not JSON: unexpected end"}},
		{"no file", []string{at, "Arith.Mul", "@nowhere.json"}, 2, []string{"nowhere.json"}},
		{"no method", []string{at}, 2, []string{"arguments are missing: anser call TARGET METHOD"}},
		{"too many", []string{at, "Arith.Mul", "{}", "{}"}, 2, []string{"one argument too many"}},
		{"unknown flag", []string{at, "Arith.Mul", "--tiemout", "1s"}, 2, []string{"unknown flag: --tiemout: see anser call --help"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, append([]string{"call"}, c.args...)...)
			r.expect(t, c.code, c.parts...)
			if r.out != "" {
				t.Errorf("printed to the standard output: %q", r.out)
			}
		})
	}
}

// notSent is the exit code of a call that was not sent.
const notSent = 3

// The deadline of a call passes while its handler runs. On a slow machine it may pass before the
// call is sent, which has another exit code: the next attempt has a later one.
func TestCallDeadline(t *testing.T) {
	at := serve(t)
	r := run(t, "call", at, "Test.Hang", "--timeout", "50ms")
	for _, later := range []string{"2s", "20s"} {
		if r.code == notSent {
			r = run(t, "call", at, "Test.Hang", "--timeout", later)
		}
	}
	r.expect(t, 5, "deadline exceeded")
	if r.out != "" {
		t.Errorf("printed to the standard output: %q", r.out)
	}
}

// The codes in words are part of the interface of --json.
func TestCallErrorWords(t *testing.T) {
	text, err := json.Marshal([]any{anser.DeadlineExceeded, anser.OutcomeUnknown})
	if err != nil || string(text) != `["deadline exceeded","unknown"]` {
		t.Errorf("%s, %v", text, err)
	}
}
