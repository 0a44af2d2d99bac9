package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/command"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry"
)

// listing is what "ls --json" prints.
type listing struct {
	Registry string
	Services []struct {
		Name      string
		Instances []registry.Instance
	}
}

// fileRegistry returns the URL of a registry in a file, and a registry on it.
func fileRegistry(t *testing.T, instances ...registry.Instance) (string, *registry.File) {
	t.Helper()
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "services.json"))
	r, err := registry.NewFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	for _, in := range instances {
		if err := r.Register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + path, r
}

func TestLs(t *testing.T) {
	at := serve(t)
	url, _ := fileRegistry(t,
		registry.Instance{Service: "arith", ID: "arith-1", Address: at, Zone: "north", Version: "1.2", Weight: 50},
		registry.Instance{Service: "echo", Address: "unix:///run/echo.sock", State: registry.Draining})
	r := run(t, "ls", "--registry", url)
	r.expect(t, 0)
	want := [][]string{
		{"SERVICE", "INSTANCE", "ADDRESS", "STATE", "WEIGHT", "ZONE", "VERSION"},
		{"arith", "arith-1", at, "up", "50", "north", "1.2"},
		{"echo", "unix:///run/echo.sock", "unix:///run/echo.sock", "draining", "100", "-", "-"},
	}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), r.out)
	}
	for i, line := range lines {
		if got := strings.Fields(line); strings.Join(got, " ") != strings.Join(want[i], " ") {
			t.Errorf("line %d is %q, want %q", i, got, want[i])
		}
	}
	if strings.Contains(r.out, "\x1b") {
		t.Errorf("colours without a terminal: %q", r.out)
	}

	var list listing
	run(t, "ls", "--registry", url, "--json").decode(t, &list)
	if list.Registry != url || len(list.Services) != 2 || list.Services[1].Instances[0].State != registry.Draining {
		t.Errorf("%+v", list)
	}
	run(t, "ls", "echo", "--registry", url).expect(t, 0, "echo")
	run(t, "ls", "nope", "--registry", url).expect(t, 1, `there is no service "nope": the registry has arith, echo`)

	// The name of a service is a target.
	run(t, "call", "arith", "Arith.Add", `{"A": 1, "B": 2}`, "--registry", url).expect(t, 0, `"C": 3`)
	run(t, "describe", "arith", "--registry", url).expect(t, 0, "Arith.Mul")
	run(t, "call", "nope", "Arith.Add", "--registry", url).expect(t, 3, `no instance of "nope" is known`)
	t.Setenv("ANSER_REGISTRY", url)
	run(t, "call", "arith", "Arith.Add", `{"A": 1, "B": 2}`).expect(t, 0, `"C": 3`)
}

// Lists of nothing are empty in JSON, and not null.
func TestEmptyLists(t *testing.T) {
	url, _ := fileRegistry(t, registry.Instance{Service: "arith", Address: listen(t, anser.NewServer(anser.NoSignals()))})
	rules := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(rules, []byte(`{"rules": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	page, err := admin.New(telemetry.New())
	if err != nil {
		t.Fatal(err)
	}
	process := httptest.NewServer(page)
	defer func() {
		page.Close()
		process.Close()
	}()
	for name, r := range map[string]result{
		"methods":        run(t, "describe", "arith", "--json", "--registry", url),
		"effects":        run(t, "rules", "dry-run", "arith", "-f", rules, "--json", "--registry", url),
		"methods of top": run(t, "top", process.URL, "--once", "--every", "100ms", "--json"),
		"groups":         run(t, "doctor", "arith", "--json", "--registry", url),
	} {
		list, _, _ := strings.Cut(name, " ")
		if strings.Contains(r.out, "null") || !strings.Contains(r.out, `"`+list+`": [`) {
			t.Errorf("%s: %s\n%s", name, r.out, r.err)
		}
	}
}

func TestLsErrors(t *testing.T) {
	none := unused(t)
	run(t, "ls", "--registry", "etcd://"+none).expect(t, 1, "no registry answers at etcd://"+none, `start one with "anser demo"`, "connection refused")
	run(t, "ls", "--registry", "etcd://").expect(t, 2, "names no server: use for example etcd://127.0.0.1:2379")
	run(t, "ls", "--registry", "file:///nowhere/services.json", "--timeout", "50ms").expect(t, 1, "no registry answers at file:///nowhere/services.json")
}

func TestLsWatch(t *testing.T) {
	url, r := fileRegistry(t, registry.Instance{Service: "arith", Address: "h1:1"})
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- command.Run(ctx, []string{"ls", "--watch", "--json", "--registry", url}, strings.NewReader(""), writer, os.Stderr)
		writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	next := func() listing {
		t.Helper()
		var list listing
		if !lines.Scan() {
			t.Fatal("the output ended")
		}
		if err := json.Unmarshal(lines.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := next(); len(list.Services) != 1 || len(list.Services[0].Instances) != 1 {
		t.Errorf("%+v", list)
	}
	if err := r.Register(ctx, registry.Instance{Service: "arith", Address: "h2:1"}); err != nil {
		t.Fatal(err)
	}
	if list := next(); len(list.Services[0].Instances) != 2 {
		t.Errorf("%+v", list)
	}
	cancel()
	if c := <-code; c != 0 || lines.Scan() {
		t.Errorf("exit code %d, and then %q", c, lines.Text())
	}
}
