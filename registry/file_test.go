package registry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
)

func TestFile(t *testing.T) {
	registrytest.RunInBubble(t, func(t *testing.T) registrytest.Fixture {
		path := writeFile(t, "[]")
		return registrytest.Fixture{Open: func() registry.Registry { return openFile(t, path) }}
	}, registrytest.Outages, registrytest.Leases)
}

func openFile(t *testing.T, path string, opts ...registry.FileOption) *registry.File {
	t.Helper()
	f, err := registry.NewFile(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// writeFile creates a registry file in a folder of its own.
func writeFile(t *testing.T, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "services.json")
	rewriteFile(t, path, content)
	return path
}

func rewriteFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func line(address string) string { return `{"service":"arith","address":"` + address + `"}` }

// watchFile watches the service arith inside a synctest bubble. The returned function lets the
// watcher run for d and returns what it received in that time, in short: "h1:1 h2:1", "trouble:
// …".
func watchFile(t *testing.T, f *registry.File) (after func(d time.Duration) []string) {
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Watch(ctx, "arith", func(list []registry.Instance) {
			addresses := make([]string, len(list))
			for i, in := range list {
				addresses[i] = in.Address
			}
			said <- strings.Join(addresses, " ")
		}, func(err error) { said <- "trouble: " + err.Error() })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func(d time.Duration) (all []string) {
		time.Sleep(d) // on the bubble's fake clock
		synctest.Wait()
		for len(said) > 0 {
			all = append(all, <-said)
		}
		return all
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	good := len(got) == len(want)
	for i := range want {
		good = good && strings.HasPrefix(got[i], want[i])
	}
	if !good {
		t.Fatalf("watcher was told %q, want %q", got, want)
	}
}

func TestFileGolden(t *testing.T) {
	golden, err := os.ReadFile("testdata/services.json")
	if err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, string(golden))
	f := openFile(t, path)
	list, err := registry.List(t.Context(), f, "arith")
	want := []registry.Instance{
		{Service: "arith", Address: "10.0.0.1:8972", Zone: "north", Weight: 50},
		{Service: "arith", Address: "10.0.0.2:8972", State: registry.Draining, Tags: map[string]string{"rack": "r-17"}},
	}
	if err != nil || !registry.Equal(list, want) {
		t.Fatalf("got %+v, %v", list, err)
	}
	// A record written by hand is unchanged after another instance came and went.
	if err := f.Register(t.Context(), registry.Instance{Service: "between", Address: "h:1"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, golden) {
		t.Errorf("file is now %s, %v", now, err)
	}
}

func TestFileSaysWhatIsBroken(t *testing.T) {
	for content, say := range map[string]string{
		"":                              "line 1: the text ends in the middle: want a list of instances",
		"{}":                            "line 1: want a list of instances",
		"[\n" + line("h:1"):             "line 2: the text ends in the middle",
		"[\n" + line("h:1") + ",\n]":    "line 3: invalid character ']'",
		"[\n\n{\"service\" \"arith\"}]": "line 3: invalid character '\"' after object key",
		"[\n" + line("h:1") + ",\n" + `{"service":"arith","address":"h:2","weigth":1}]`: `line 3: unknown field "weigth": the fields are`,
		"[\n" + line("h:1") + ",\n\n" + line("h:1") + "]":                               `line 4: instance "h:1" of service "arith" is already on line 2`,
		"[\n" + line("h") + "]":                                   `line 2: address "h" has no port`,
		"[" + `{"service":"arith","address":"h:1","weight":"x"}]`: "line 1: cannot unmarshal string",
		"[null]":   "line 1: the service has no name",
		"[]\n[]":   "line 2: invalid character '[' after top-level value",
		"[\n1]":    "line 2: cannot unmarshal number",
		"\xff\xfe": "line 1: invalid character",
	} {
		path := writeFile(t, content)
		f := openFile(t, path)
		_, err := f.Services(t.Context())
		if err == nil || !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q:\n got %v\nwant %s", content, err, say)
		}
		if err := f.Register(t.Context(), registry.Instance{Service: "arith", Address: "h:9"}); err == nil {
			t.Errorf("%q: Register wrote over a broken file", content)
		}
		if now, _ := os.ReadFile(path); string(now) != content {
			t.Errorf("%q was changed to %q", content, now)
		}
	}
}

func TestFileTooLarge(t *testing.T) {
	path := writeFile(t, "[]")
	if err := os.Truncate(path, registry.MaxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	_, err := openFile(t, path).Services(t.Context())
	if err == nil || !strings.Contains(err.Error(), "33554432 bytes: split") {
		t.Errorf("Services = %v, want the limit and what to do", err)
	}
}

func TestFileKeepsTheLastGoodList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, "["+line("h1:1")+"]")
		after := watchFile(t, openFile(t, path))
		expect(t, after(0), "h1:1")
		rewriteFile(t, path, "["+line("h1:1")+",")
		expect(t, after(5*time.Second), "trouble: registry file "+path+", line 1")
		rewriteFile(t, path, "["+line("h1:1")+",\n,")
		expect(t, after(5*time.Second), "trouble: registry file "+path+", line 2")
		rewriteFile(t, path, "["+line("h1:1")+"]") // as before: the watcher learns that the file is valid again
		expect(t, after(time.Second), "h1:1")
		expect(t, after(time.Minute))
		os.Remove(path)
		expect(t, after(5*time.Second), "trouble: registry file "+path+" does not exist yet")
		rewriteFile(t, path, "[]")
		expect(t, after(time.Second), "")
	})
}

func TestFilePollEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, "[]")
		after := watchFile(t, openFile(t, path, registry.PollEvery(10*time.Second)))
		expect(t, after(time.Second), "")
		rewriteFile(t, path, "["+line("h1:1")+"]")
		expect(t, after(8*time.Second))
		expect(t, after(2*time.Second), "h1:1")
	})
}

// Kubernetes replaces a mounted file by switching a link to another folder.
func TestFileFollowsSwappedLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, v := range []string{"v1", "v2"} {
			if err := os.Mkdir(filepath.Join(dir, v), 0o755); err != nil {
				t.Fatal(err)
			}
			rewriteFile(t, filepath.Join(dir, v, "services.json"), "["+line(v+":1")+"]")
		}
		link := func(from, to string) {
			if err := errors.Join(os.Symlink(from, to+".new"), os.Rename(to+".new", to)); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, "services.json")
		link("v1", filepath.Join(dir, "..data"))
		link(filepath.Join("..data", "services.json"), path)
		f := openFile(t, path)
		after := watchFile(t, f)
		expect(t, after(0), "v1:1")
		link("v2", filepath.Join(dir, "..data"))
		expect(t, after(time.Second), "v2:1")
		if err := f.Register(t.Context(), registry.Instance{Service: "arith", Address: "x:1"}); err != nil {
			t.Fatal(err)
		}
		expect(t, after(0), "v2:1 x:1") // own changes need no poll
		info, err := os.Stat(filepath.Join(dir, "v2", "services.json"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("Register changed the mode to %v, %v", info.Mode(), err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("Register replaced the link: %v, %v", info.Mode(), err)
		}
	})
}

func TestFileRegisterNeedsADirectory(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "missing", "services.json"))
	err := f.Register(t.Context(), registry.Instance{Service: "arith", Address: "h:1"})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "make its directory") {
		t.Errorf("Register = %v, want to be told to make the directory", err)
	}
	if _, err := registry.NewFile(""); err == nil {
		t.Error("NewFile takes an empty path")
	}
	if _, err := registry.NewFile("services.json", nil); err == nil || !strings.Contains(err.Error(), "an option is nil") {
		t.Errorf("NewFile = %v", err)
	}
	if _, err := registry.NewFile("services.json", registry.PollEvery(0)); err == nil || !strings.Contains(err.Error(), "registry.PollEvery(0s): want a time above 0") {
		t.Errorf("NewFile = %v", err)
	}
}

func TestFileMakesTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "services.json")
	f := openFile(t, path)
	if err := f.Deregister(t.Context(), registry.Instance{Service: "arith", Address: "h:1"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Deregister made the file: %v", err)
	}
	if err := f.Register(t.Context(), registry.Instance{Service: "arith", Address: "h:1"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != "[]\n" {
		t.Errorf("file after Close: %q, %v", now, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind, want the file and its lock: %v, %v", entries, err)
	}
}

const childEnv = "ANSER_REGISTRY_FILE" // the file in which a child process registers

func TestFileSharedByProcesses(t *testing.T) {
	if path := os.Getenv(childEnv); path != "" {
		registerAsChild(t, path)
		return
	}
	path := writeFile(t, "["+line("person:1")+"]")
	const processes = 4
	var children []*exec.Cmd
	for i := range processes {
		child := exec.Command(os.Args[0], "-test.run=^TestFileSharedByProcesses$")
		child.Env = append(os.Environ(), childEnv+"="+path, fmt.Sprintf("%s_N=%d", childEnv, i))
		child.Stdout, child.Stderr = os.Stderr, os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, child)
	}
	for _, child := range children {
		if err := child.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	}
	list, err := registry.List(t.Context(), openFile(t, path), "arith")
	if want := 1 + processes*childInstances; err != nil || len(list) != want {
		t.Errorf("%d instances, %v; want %d: processes wrote over each other", len(list), err, want)
	}
}

const childInstances = 25

func registerAsChild(t *testing.T, path string) {
	f := openFile(t, path)
	for i := range childInstances {
		address := fmt.Sprintf("child-%s:%d", os.Getenv(childEnv+"_N"), i+1)
		if err := f.Register(t.Context(), registry.Instance{Service: "arith", Address: address}); err != nil {
			t.Fatal(err)
		}
	}
	// It exits without Close, like a killed process: its records stay.
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("[\n" + line("h:1") + "\n]"))
	f.Add([]byte(`[{"service":"a","address":"h:1","tags":{"x":"y"},"owner":"o"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := writeFile(t, string(data))
		file := openFile(t, path)
		names, err := file.Services(t.Context())
		if err != nil {
			return
		}
		if err := file.Register(t.Context(), registry.Instance{Service: "zzz", Address: "h:1"}); err != nil {
			t.Fatalf("read %q but cannot add to it: %v", data, err)
		}
		after, err := openFile(t, path).Services(t.Context())
		if err != nil || len(after) < len(names) {
			t.Fatalf("%q: services %q, after Register %q, %v", data, names, after, err)
		}
	})
}

func ExampleFile() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "services.json")
	os.WriteFile(path, []byte(`[{"service":"arith","address":"10.0.0.1:8972","zone":"north"}]`), 0o644)

	file, err := registry.NewFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	list, err := registry.List(context.Background(), file, "arith")
	fmt.Println(list[0].Address, list[0].Zone, err)
	// Output: 10.0.0.1:8972 north <nil>
}

func TestFileDocumentThatCannotBeRead(t *testing.T) {
	path := writeFile(t, "[]")
	f := openFile(t, path)
	rev, err := f.Save(t.Context(), registry.Document{Name: "rules/arith", Data: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path+".documents", "rules.d", "arith.doc")
	for content, say := range map[string]string{
		"":                                    "does not begin with the line",
		"{}\n{}":                              "does not begin with the line",
		`{"name":"rules/arith","revision":1}`: "does not begin with the line", // no newline
		`{"name":"rules/other","revision":1}` + "\n": `holds the document "rules/other"`,
	} {
		rewriteFile(t, file, content)
		if _, err := f.Load(t.Context(), "rules/arith"); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: Load = %v, want %s", content, err, say)
		}
		if _, err := f.Save(t.Context(), registry.Document{Name: "rules/arith", Revision: rev}); err == nil {
			t.Errorf("%q: Save wrote over it", content)
		}
	}
}

func TestFileFollowSaysTroubleAndItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, "[]")
		f, other := openFile(t, path), openFile(t, path)
		rev, err := other.Save(t.Context(), registry.Document{Name: "rules/arith", Data: []byte("one")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var said []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Follow(ctx, "rules/arith", func(d registry.Document) { said = append(said, string(d.Data)) },
				func(error) { said = append(said, "trouble") })
		}()
		defer func() { cancel(); <-done }()
		file := filepath.Join(path+".documents", "rules.d", "arith.doc")
		synctest.Wait()
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rewriteFile(t, file, "broken")
		time.Sleep(3 * time.Second) // on the bubble's fake clock
		rewriteFile(t, file, string(good))
		time.Sleep(3 * time.Second)
		if _, err := other.Save(t.Context(), registry.Document{Name: "rules/arith", Revision: rev, Data: []byte("two")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := strings.Join(said, " "); got != "one trouble one two" {
			t.Errorf("told %q, want what is there, the trouble, its end, and the change", got)
		}
	})
}

func TestFileLeasesDoNotEnd(t *testing.T) {
	f, err := registry.NewFile(filepath.Join(t.TempDir(), "services.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Register(t.Context(), registry.Instance{Service: "arith", Address: "h:1"}); err != nil {
		t.Fatal(err)
	}
	list, err := f.Leases(t.Context(), "arith")
	if err != nil || len(list) != 1 || list[0] != (registry.Lease{Key: "h:1"}) {
		t.Errorf("%+v, %v", list, err)
	}
}
