package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func open(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func add(t *testing.T, l *Log, text string) Entry {
	t.Helper()
	e, err := l.Add(Entry{User: "ada", Action: "rules", Service: "arith", Text: text, Outcome: Begun})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for i := range 5 {
		if e := add(t, l, fmt.Sprint(i)); e.Sequence != uint64(i+1) || (e.Before == "") != (i == 0) {
			t.Errorf("entry %d is %+v", i, e)
		}
	}
	list, err := l.Read(0, 2)
	if err != nil || len(list) != 2 || list[0].Text != "4" || list[1].Text != "3" {
		t.Errorf("the latest are %+v, %v", list, err)
	}
	if list, err = l.Read(4, 10); err != nil || len(list) != 3 || list[0].Text != "2" {
		t.Errorf("before 4: %+v, %v", list, err)
	}
	l.Close()
	if _, err := l.Add(Entry{}); err == nil {
		t.Error("a closed log was written")
	}
	again := open(t, path)
	if e := add(t, again, strings.Repeat("é", maxText)); e.Sequence != 6 || len(e.Text) > maxText+3 {
		t.Errorf("entry %d with %d bytes", e.Sequence, len(e.Text))
	}
	sum, err := Verify(path, list[0].Hash)
	if err != nil || sum.Entries != 6 {
		t.Errorf("%+v, %v", sum, err)
	}
	if stat, err := os.Stat(path); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", stat.Mode(), err)
	}
}

func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if _, err := l.Add(Entry{User: "ada"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if sum, err := Verify(path, ""); err != nil || sum.Entries != 40 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestChangedLogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for _, text := range []string{"one", "two", "three"} {
		add(t, l, text)
	}
	last := l.last
	l.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	for want, data := range map[string][]byte{
		"line 2: the entry was changed":  bytes.Replace(good, []byte("two"), []byte("TWO"), 1),
		"line 2: the entry is number 3":  bytes.Join([][]byte{lines[0], lines[2]}, nil),
		"line 2: the entry is number 1":  bytes.Join([][]byte{lines[0], lines[0], lines[1]}, nil),
		"line 1: the entry is number 2":  bytes.Join([][]byte{lines[1], lines[0]}, nil),
		"no entry has the hash":          bytes.Join([][]byte{lines[0], lines[1]}, nil),
		"line 3 is incomplete":           good[:len(good)-5],
		"line 4 is no entry":             append(bytes.Clone(good), "{}}\n"...),
		"line 4 is no entry: Add writes": append(bytes.Clone(good), "{\"more\":1}\n"...),
		"longer than":                    append(bytes.Clone(good), strings.Repeat("x", 2*maxLine)+"\n"...),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(path, last); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := os.WriteFile(path, bytes.Replace(good, []byte("two"), []byte("TWO"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("a changed log was opened")
	}
	// The machine failed while the last line was written.
	if err := os.WriteFile(path, good[:len(good)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	if e := add(t, open(t, path), "again"); e.Sequence != 3 {
		t.Errorf("after an incomplete line comes number %d", e.Sequence)
	}
	if sum, err := Verify(path, ""); err != nil || sum.Entries != 3 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestAnotherWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	one := open(t, path)
	add(t, one, "one")
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "in use by another console") {
		t.Errorf("a log was opened twice: %v", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("a program that knows no locks\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Add(Entry{}); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("two programs wrote to a log: %v", err)
	}
}

// full is a disk with little room.
type full struct {
	*os.File
	room   int
	broken bool // what was written cannot be removed
}

func (f *full) Write(p []byte) (int, error) {
	if len(p) <= f.room {
		return f.File.Write(p)
	}
	n, err := f.File.Write(p[:f.room])
	return n, errors.Join(err, syscall.ENOSPC)
}

func (f *full) Truncate(size int64) error {
	if f.broken {
		return syscall.EIO
	}
	return f.File.Truncate(size)
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	add(t, l, "one")
	disk := &full{File: l.file.(*os.File), room: 20}
	l.file = disk
	if _, err := l.Add(Entry{Text: "two"}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if sum, err := Verify(path, ""); err != nil || sum.Entries != 1 {
		t.Errorf("a part of an entry is left: %+v, %v", sum, err)
	}
	disk.room = 1 << 20 // there is room again
	if e := add(t, l, "two"); e.Sequence != 2 {
		t.Errorf("the next entry is number %d", e.Sequence)
	}
	disk.room, disk.broken = 20, true
	for range 2 {
		if _, err := l.Add(Entry{Text: "three"}); err == nil {
			t.Error("an entry was written to a broken disk")
		}
	}
	l.Close()
	if e := add(t, open(t, path), "three"); e.Sequence != 3 {
		t.Errorf("after a restart comes number %d", e.Sequence)
	}
}

// What users and services send may not break the log: it could not be read any more, and no console
// would start with it.
func TestHostileTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for _, text := range []string{
		"\xff", "a\xc3", "\xed\xa0\x80", "\ufffd", strings.Repeat("<", maxText), strings.Repeat("\x01", maxText+1), strings.Repeat("\xff", 10*maxText),
		strings.Repeat("\u2028", maxText), "\n{}\n",
	} {
		e := Entry{User: text, Role: text, Remote: text, Action: text, Service: text, Subject: text, Text: text, Reason: text, Outcome: text}
		if _, err := l.Add(e); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if list, err := l.Read(0, 100); err != nil || len(list) != 9 || list[8].Reason != "\ufffd" {
		t.Errorf("%d entries, %v", len(list), err)
	}
	if sum, err := Verify(path, ""); err != nil || sum.Entries != 9 {
		t.Errorf("%+v, %v", sum, err)
	}
	l.Close()
	if e := add(t, open(t, path), "again"); e.Sequence != 10 {
		t.Errorf("the next entry is number %d", e.Sequence)
	}
}
