package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// written writes a log of a size, and returns it as if it was opened, and one line of it. Add would
// take minutes, as it waits for the disk.
func written(t *testing.T, size int64) *Log {
	t.Helper()
	l := &Log{path: filepath.Join(t.TempDir(), "audit.jsonl")}
	f, err := os.Create(l.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w := bufio.NewWriter(f)
	texts := []string{"short", strings.Repeat("long ", 500), strings.Repeat("<", 600)}
	for l.size < size {
		e := Entry{Sequence: l.sequence + 1, Time: time.Unix(int64(l.sequence), 0).UTC(), User: "ada", Action: "rules", Text: texts[l.sequence%3], Reason: texts[1], Outcome: Done, Before: l.last}
		e.Hash = e.hash()
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		l.size, l.sequence, l.last = l.size+int64(len(line))+1, e.Sequence, e.Hash
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	l.file = f
	return l
}

// A page of a large log costs as little as one of a small log.
func TestPagesOfALargeLog(t *testing.T) {
	l := written(t, 200<<20)
	for _, before := range []uint64{0, 1, 2, 101, l.sequence / 3, l.sequence / 2, l.sequence, l.sequence + 1, 1 << 63} {
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		list, err := l.Read(before, 100)
		runtime.ReadMemStats(&is)
		end := before
		if before == 0 || before > l.sequence {
			end = l.sequence + 1
		}
		if err != nil || len(list) != int(min(100, end-1)) {
			t.Fatalf("before %d: %d entries, %v", before, len(list), err)
		}
		for i, e := range list {
			if want := end - 1 - uint64(i); e.Sequence != want {
				t.Fatalf("before %d: entry %d has the number %d, want %d", before, i, e.Sequence, want)
			}
		}
		if used := is.TotalAlloc - was.TotalAlloc; used > 16<<20 {
			t.Errorf("before %d: %d bytes of memory were used", before, used)
		}
	}
}

// Pages, one after the other, have every entry once.
func TestPages(t *testing.T) {
	l := written(t, 3*maxLine)
	for _, n := range []int{1, 7, 100, MaxRead + 1} {
		var all []Entry
		for before := uint64(0); ; {
			list, err := l.Read(before, n)
			if err != nil || len(list) > MaxRead {
				t.Fatalf("before %d: %d entries, %v", before, len(list), err)
			}
			all = append(all, list...)
			if len(list) == 0 {
				break
			}
			before = list[len(list)-1].Sequence
		}
		if len(all) != int(l.sequence) {
			t.Fatalf("%d of %d entries in pages of %d", len(all), l.sequence, n)
		}
		for i, e := range all {
			if e.Sequence != l.sequence-uint64(i) {
				t.Fatalf("entry %d has the number %d", i, e.Sequence)
			}
		}
	}
	if list, err := l.Read(0, 0); err != nil || len(list) != 0 {
		t.Errorf("no entries: %v, %v", list, err)
	}
}

// Lines of the greatest length are found, wherever they lie.
func TestPagesOfLongLines(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"))
	for n := range 40 {
		text := strings.Repeat("x", 2*maxText)
		e := Entry{User: text, Role: text, Remote: text, Action: text, Service: text, Subject: text, Text: text, Reason: text, Outcome: text}
		if n%3 == 0 {
			e = Entry{User: "ada"}
		}
		if _, err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	for before := uint64(1); before <= 41; before++ {
		list, err := l.Read(before, 2)
		if err != nil || len(list) != int(min(2, before-1)) || len(list) > 0 && list[0].Sequence != before-1 {
			t.Errorf("before %d: %d entries, %v", before, len(list), err)
		}
	}
}

// A page does not show what was changed behind the console's back.
func TestPagesOfAChangedLog(t *testing.T) {
	l := written(t, 4*maxLine)
	good, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	last := len(lines) - 2
	with := func(change func(lines [][]byte) [][]byte) []byte {
		return bytes.Join(change(append([][]byte(nil), lines...)), nil)
	}
	for want, data := range map[string][]byte{
		"was changed": with(func(lines [][]byte) [][]byte {
			lines[last] = bytes.Replace(lines[last], []byte("ada"), []byte("eve"), 1)
			return lines
		}),
		"in the place of": with(func(lines [][]byte) [][]byte {
			lines[last], lines[last-1] = lines[last-1], lines[last]
			return lines
		}),
		"is no entry": with(func(lines [][]byte) [][]byte {
			lines[last] = bytes.Replace(lines[last], []byte("{"), []byte("["), 1)
			return lines
		}),
		"is longer than": bytes.Repeat([]byte("x"), len(good)),
		"EOF":            good[:len(good)/2],
	} {
		if err := os.WriteFile(l.path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Read(0, 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the latest: %v, want %q", err, want)
		}
		if _, err := l.Read(l.sequence, 10); want != "was changed" && want != "EOF" && err == nil {
			t.Errorf("%s: earlier ones can be read", want)
		}
	}
	// One that was computed anew does not fit the one after it, nor what the log has in memory.
	for _, at := range []int{last - 1, last} {
		var e Entry
		if err := json.Unmarshal(lines[at], &e); err != nil {
			t.Fatal(err)
		}
		e.User = "eve"
		e.Hash = e.hash()
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		data := with(func(lines [][]byte) [][]byte {
			lines[at] = append(line, '\n')
			return lines
		})
		if err := os.WriteFile(l.path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, before := range []uint64{0, e.Sequence + 1} {
			if _, err := l.Read(before, 10); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("entry %d was changed or replaced", e.Sequence)) {
				t.Errorf("entry %d of %d is replaced, before %d: %v", e.Sequence, l.sequence, before, err)
			}
		}
	}
}
