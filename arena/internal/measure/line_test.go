package measure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/anser-rpc/anser/arena/result"
)

// printed returns what a client prints that had these latencies.
func printed(t testing.TB, change func(map[string]any), latencies ...int64) []byte {
	t.Helper()
	h := hdrhistogram.New(1, 60e9, 3)
	for _, ns := range latencies {
		if err := h.RecordValue(ns); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	line := map[string]any{
		"contract": 1, "calls": len(latencies), "errors": 0, "wrong": 0, "first_error": "",
		"began_unix_ns": int64(1e18), "ended_unix_ns": int64(1e18 + 2e9), "hdr": string(encoded),
	}
	if change != nil {
		change(line)
	}
	text, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func TestParseLine(t *testing.T) {
	l, err := parseLine(printed(t, nil, 1000, 2000, 3000))
	if err != nil || l.Calls != 3 || l.seconds() != 2 || l.histogram.Max() < 3000 {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := parseLine(printed(t, nil)); err != nil || l.Calls != 0 { // every call failed
		t.Errorf("%+v, %v", l, err)
	}
	set := func(name string, value any) []byte {
		return printed(t, func(m map[string]any) { m[name] = value }, 1000)
	}
	for want, text := range map[string][]byte{
		"not the object of the contract":      []byte("hello\n"),
		"unknown field":                       set("call", 1),
		"more than one object":                append(printed(t, nil, 1000), "{}"...),
		"follows version 2":                   set("contract", 2),
		"less than nothing":                   set("errors", -1),
		"not after its begin":                 set("ended_unix_ns", int64(1e18)),
		"histogram cannot be read":            set("hdr", "nonsense"),
		"counts 5 calls, and 1 in its histog": set("calls", 5),
	} {
		_, err := parseLine(text)
		var peers *failure
		if !errors.As(err, &peers) || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%v, want a failure about %q", err, want)
		}
	}
}

// What a client prints comes from outside: nothing may panic, and what is accepted makes sense.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add(printed(f, nil, 1000, 5_000_000))
	f.Add(printed(f, func(m map[string]any) { m["hdr"] = "HISTFAAAAAA" }))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parseLine(text)
		if err == nil && (l.histogram.TotalCount() != l.Calls || l.seconds() <= 0) {
			t.Errorf("%q is %+v", text, l)
		}
	})
}

// What /proc knows stays, since it was counted at full speed; what it does not know comes from
// strace.
func TestSyscallsFillReadsAndWrites(t *testing.T) {
	few := counts{all: 1000, reads: 100, writes: 50}
	client := each(few, counts{all: 4000, reads: 1100, writes: 550}, 500)
	if client != (counts{6, 2, 1}) {
		t.Errorf("%+v", client)
	}
	var f result.Figures
	f.ClientReads = new(0.5)
	enter(&f, client, counts{7, 3, 4})
	for name, c := range map[string]struct {
		got  *float64
		want float64
	}{
		"client": {f.ClientSyscalls, 6}, "client reads": {f.ClientReads, 0.5}, "client writes": {f.ClientWrites, 1},
		"server": {f.ServerSyscalls, 7}, "server reads": {f.ServerReads, 3}, "server writes": {f.ServerWrites, 4},
	} {
		if c.got == nil || *c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestParseStrace(t *testing.T) {
	const text = `    calls syscall
--------- ----------------
        7 read
        2 recvmsg
       30 sendmsg
       40 futex
      119 execve
--------- ----------------
      198 total
`
	if n, err := parseStrace(text); n != (counts{198, 9, 30}) || err != nil {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := parseStrace("strace: no"); err == nil || !strings.Contains(err.Error(), "strace: no") {
		t.Errorf("%v", err)
	}
}
