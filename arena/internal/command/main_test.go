package command_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/arena/internal/build"
	"github.com/anser-rpc/anser/arena/internal/command"
)

// All tests share what is built.
var cache string

func TestMain(m *testing.M) {
	code := func() int {
		folder, err := os.MkdirTemp("", "arena-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		cache = folder
		return m.Run()
	}()
	if code == 0 {
		// The goroutine that starts processes lives as long as its thread must.
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/anser-rpc/anser/arena/internal/child.init.func1.1")); err != nil {
			os.Stderr.WriteString(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// output can be read while it is written, and tells each write.
type output struct {
	mu     sync.Mutex // guards text
	text   bytes.Buffer
	onText func(text string)
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.text.Write(p)
	text := o.text.String()
	o.mu.Unlock()
	if o.onText != nil {
		o.onText(text)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// arena runs the command in the repository of the tests.
func arena(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	return arenaWith(t, t.Context(), new(output), args...)
}

func arenaWith(t *testing.T, ctx context.Context, errOut *output, args ...string) (int, string, string) {
	t.Helper()
	t.Chdir(filepath.Join(repository(t), "arena", "peers"))
	t.Setenv(build.Variable, cache)
	out := new(output)
	code := command.Run(ctx, args, out, errOut)
	return code, out.String(), errOut.String()
}

// here is the folder of this package, which tests leave.
var here, _ = os.Getwd()

func repository(t *testing.T) string {
	t.Helper()
	return filepath.Join(here, "..", "run", "testdata", "repo")
}

func expect(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s has no %q:\n%s", what, part, text)
		}
	}
}
