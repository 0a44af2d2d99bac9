package document_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/internal/document"
	"github.com/anser-rpc/anser/arena/result"
)

func TestWriteAndRead(t *testing.T) {
	doc := &result.Document{
		Schema: result.Schema, Command: []string{"go", "run", "./arena", "run"}, Commit: "abc", Began: time.Unix(5, 0).UTC(),
		Rows: []result.Row{{Peer: "<x>", Rounds: []result.Round{{Load: 1}}}}, NotRun: []result.NotRun{{Peer: "y", Reason: "needs z"}},
	}
	doc.Rows[0].WireBytes = new(5.0)
	folder := t.TempDir()
	name := filepath.Join(folder, "r.json")
	for range 2 {
		if err := document.Write(name, doc); err != nil {
			t.Fatal(err)
		}
	}
	got, err := document.Read(name)
	if err != nil || !reflect.DeepEqual(got, doc) {
		t.Errorf("%+v, %v, want %+v", got, err, doc)
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("the folder has %v", entries)
	}
	if err := document.Write(filepath.Join(folder, "none", "r.json"), doc); err == nil {
		t.Error("written into a folder that is not there")
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"nothing":                   "is not a document",
		"{}":                        "has no schema",
		`{"schema": 99}`:            "schema 99, and this arena reads up to 1",
		`{"schema": 1, "rows": {}}`: "cannot unmarshal",
	} {
		name := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := document.Read(name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := document.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
