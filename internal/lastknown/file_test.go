package lastknown_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/lastknown"
	"github.com/anser-rpc/anser/registry"
)

// open returns the file of a target.
func open(t *testing.T, dir, target string) *lastknown.File {
	t.Helper()
	f, err := lastknown.New(dir, target)
	if err != nil || !f.Enabled() {
		t.Fatal(f, err)
	}
	return f
}

// only returns the path of the only file in a folder.
func only(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v: want one", files, err)
	}
	return files[0]
}

func TestList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	f := open(t, dir, "etcd://a/echo")
	if _, _, err := f.LoadList(); err == nil {
		t.Error("a list is loaded that was never saved")
	}
	before := time.Now()
	for _, want := range [][]registry.Instance{
		{{Service: "echo", Address: "a:1"}},
		{{Service: "echo", Address: "b:1", Weight: 3}, {Service: "echo", Address: "c:1"}},
	} {
		if err := f.SaveList(want); err != nil {
			t.Fatal(err)
		}
		got, saved, err := open(t, dir, "etcd://a/echo").LoadList()
		if !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%+v, %v: want %+v", got, err, want)
		}
		if saved.Before(before.Add(-time.Second)) || saved.After(time.Now().Add(time.Second)) {
			t.Errorf("saved at %v", saved)
		}
	}
	only(t, dir) // no temporary file is left
	if _, _, err := open(t, dir, "etcd://b/echo").LoadList(); err == nil {
		t.Error("a target has the list of another one")
	}
}

func TestDamagedLists(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir, "etcd://a/echo")
	if err := f.SaveList(nil); err != nil {
		t.Fatal(err)
	}
	path := only(t, dir)
	for content, want := range map[string]string{
		"":           "JSON",
		`{"target":`: "JSON",
		`{"target":"etcd://b/echo","instances":[{"service":"x","address":"a:1"}]}`: "it belongs to etcd://b/echo",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, _, err := f.LoadList(); err == nil || list != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q is loaded as %v, %v: want an error with %q and the path", content, list, err, want)
		}
	}
}

func TestBytes(t *testing.T) {
	f := open(t, t.TempDir(), "etcd://a/echo rules")
	if data, err := f.Read(); data != nil || err != nil {
		t.Errorf("%q, %v before anything was written", data, err)
	}
	for _, want := range []string{"some rules", "others"} {
		if err := f.Write([]byte(want)); err != nil {
			t.Fatal(err)
		}
		if data, err := f.Read(); string(data) != want || err != nil {
			t.Errorf("%q, %v: want %q", data, err, want)
		}
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, filepath.Join(file, "below"), "x").SaveList(nil); err == nil {
		t.Error("a list is saved below a file")
	}
}

func TestZeroFileKeepsNothing(t *testing.T) {
	f := new(lastknown.File)
	if f.Enabled() {
		t.Error("it is enabled")
	}
	if err := f.SaveList([]registry.Instance{{Service: "echo", Address: "a:1"}}); err != nil {
		t.Error(err)
	}
	if err := f.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if data, err := f.Read(); data != nil || err != nil {
		t.Error(data, err)
	}
	if _, _, err := f.LoadList(); err == nil {
		t.Error("a list is loaded")
	}
}

func TestFolderOfTheUser(t *testing.T) {
	variables := []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} // where os.UserCacheDir looks
	dir := t.TempDir()
	for _, name := range variables {
		t.Setenv(name, dir)
	}
	if err := open(t, "", "x").Write(nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range variables {
		t.Setenv(name, "")
	}
	if f, err := lastknown.New("", "x"); err == nil || f.Enabled() || !strings.Contains(err.Error(), "anser.SnapshotDir") {
		t.Errorf("without a folder: %v, %v", f, err)
	}
}
