package command_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// adminPage serves a page on which a call ends every few milliseconds.
func adminPage(t *testing.T) (address string) {
	t.Helper()
	meter := telemetry.New()
	page, err := admin.New(meter, admin.Name("arith"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(page)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			meter.Observer().CallEnded(context.Background(), &anser.CallInfo{Server: true, Method: "Arith.Mul", Duration: time.Millisecond})
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		page.Close()
		s.Close()
	})
	return s.URL
}

func TestTop(t *testing.T) {
	address := adminPage(t)
	out, errOut, code := runCommand(t, "top", address, "--once", "--every", "300ms")
	if code != 0 || !strings.Contains(out, "Arith.Mul") || !strings.Contains(out, "1 process") {
		t.Errorf("code %d\n%s\n%s", code, out, errOut)
	}
	out, errOut, code = runCommand(t, "top", address, "--once", "--every", "300ms", "--json")
	var look struct {
		Methods []struct {
			Name string
			Rate float64
		}
	}
	if err := json.Unmarshal([]byte(out), &look); code != 0 || err != nil || len(look.Methods) != 1 || look.Methods[0].Rate <= 0 {
		t.Errorf("code %d, %v\n%s\n%s", code, err, out, errOut)
	}
}

func TestTail(t *testing.T) {
	address := adminPage(t)
	out, errOut, code := runCommand(t, "tail", address, "-n", "3")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(lines) != 3 || !strings.Contains(lines[2], "server  Arith.Mul") {
		t.Errorf("code %d\n%s\n%s", code, out, errOut)
	}
	out, _, code = runCommand(t, "tail", address, "-n", "1", "--json", "--method", "Arith.*")
	var call struct {
		Method, Code string
		Duration     time.Duration
	}
	if err := json.Unmarshal([]byte(out), &call); code != 0 || err != nil || call.Method != "Arith.Mul" || call.Code != "ok" || call.Duration != time.Millisecond {
		t.Errorf("code %d, %v\n%s", code, err, out)
	}
	if out, errOut, code = runCommand(t, "tail", address, "--failed", "--for", "50ms"); code != 0 || out != "" {
		t.Errorf("code %d\n%s\n%s", code, out, errOut)
	}
}

// Mistakes are said before anything is asked.
func TestWatchedMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"want one of rate": {"top", "x:1", "--sort", "x"}, "at least 100ms": {"top", "x:1", "--every", "1ms"},
		"want server or client": {"tail", "x:1", "--side", "x"}, "want a fraction": {"tail", "x:1", "--sampled", "2"}, "--rate 0": {"tail", "x:1", "--rate", "0"},
		"does not answer": {"tail", "127.0.0.1:1"},
	} {
		if _, errOut, code := runCommand(t, args...); code == 0 || !strings.Contains(errOut, want) {
			t.Errorf("%q: code %d, %s", args, code, errOut)
		}
	}
}

// runCommand runs a command in this process.
func runCommand(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	r := run(t, args...)
	return r.out, r.err, r.code
}

// A page that sends its readers elsewhere is not followed there.
func TestRedirectedReader(t *testing.T) {
	visited := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited = true }))
	defer elsewhere.Close()
	page := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer page.Close()
	for _, command := range [][]string{{"top", "--once", "--every", "100ms", page.URL}, {"tail", "-n", "1", page.URL}} {
		out, errOut, code := runCommand(t, command...)
		if code != 1 || !strings.Contains(errOut, "it sends its readers to another address") || visited {
			t.Errorf("%v: code %d, visited %v\n%s%s", command, code, visited, out, errOut)
		}
	}
}
