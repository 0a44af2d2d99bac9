package measure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
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

func TestParseStrace(t *testing.T) {
	const text = `    calls syscall
--------- ----------------
        7 read
      119 execve
--------- ----------------
      126 total
`
	if n, err := parseStrace(text); n != 126 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := parseStrace("strace: no"); err == nil || !strings.Contains(err.Error(), "strace: no") {
		t.Errorf("%v", err)
	}
}
