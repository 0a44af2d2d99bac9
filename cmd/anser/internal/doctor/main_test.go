package doctor_test

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

func TestMain(m *testing.M) {
	if runsAlone() {
		return
	}
	os.Unsetenv(target.RegistryVariable)
	goleak.VerifyTestMain(whole{m})
}

// logged is what the standard logger gets.
type logged struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// whole fails if all tests have run and no one has asserted a finding that the source has.
type whole struct{ *testing.M }

func (w whole) Run() int {
	var said logged
	log.SetOutput(&said)
	code := w.M.Run()
	if text := said.String(); strings.Contains(text, "Unsolicited response") {
		fmt.Fprintf(os.Stderr, "FAIL: the user would read lines of package http:\n%s", text)
		return 1
	}
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz", "test.bench"} {
		if flag.Lookup(name).Value.String() != "" {
			return code
		}
	}
	if code != 0 || flag.Lookup("test.fuzzworker").Value.String() == "true" {
		return code
	}
	missing, err := doctor.Unasserted()
	if len(missing) > 0 || err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: no test asserts these findings (%v):\n%s\n", err, strings.Join(missing, "\n"))
		return 1
	}
	return code
}

// patient waits long for a busy machine; hasty is for steps that never end, whatever the time.
var (
	patient = &doctor.Config{Timeout: time.Minute}
	hasty   = &doctor.Config{Timeout: 3 * time.Second}
)

// hastily calls f with a short timeout, for steps that never end. A slow machine may need more time
// for the other steps: f is called again with more until the group has all of the texts.
func hastily(f func(*doctor.Config) *doctor.Group, parts ...string) (*doctor.Group, time.Duration) {
	for timeout := time.Second; ; timeout *= 4 {
		g := f(&doctor.Config{Timeout: timeout})
		if timeout > time.Minute || !slices.ContainsFunc(parts, func(part string) bool { return !contains(g, part) }) {
			return g, timeout
		}
	}
}

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// serve starts a server with the methods of arith until the test ends, and returns its address.
func serve(t *testing.T, opts ...anser.ServerOption) string {
	t.Helper()
	s := anser.NewServer(append([]anser.ServerOption{silent, anser.NoSignals()}, opts...)...)
	if err := arith.Register(s); err != nil {
		t.Fatal(err)
	}
	return listen(t, s)
}

func listen(t *testing.T, s *anser.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// plainServer runs f for each connection to an address, until the test ends.
func plainServer(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				f(nc)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// discard reads until the other side ends.
func discard(nc net.Conn) {
	for buf := make([]byte, 4096); ; {
		if _, err := nc.Read(buf); err != nil {
			return
		}
	}
}

// unused returns an address on which no process listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// examine examines one address.
func examine(t *testing.T, c *doctor.Config, address string) *doctor.Group {
	t.Helper()
	groups, err := c.Target(t.Context(), address)
	if err != nil || len(groups) != 1 {
		t.Fatalf("%d groups, %v", len(groups), err)
	}
	return groups[0]
}

// expect checks that the group has a finding of that check and status with the parts in its text or
// advice, and that every finding that is not a success says what to do.
func expect(t *testing.T, g *doctor.Group, check string, s doctor.Status, parts ...string) {
	t.Helper()
	found := false
	for _, f := range g.Findings {
		if (f.Status == doctor.Fail || f.Status == doctor.Warn) && f.Advice == "" {
			t.Errorf("no advice: %+v", f)
		}
		all := f.Subject + ": " + f.Text + " → " + f.Advice
		matches := f.Check == check && f.Status == s
		for _, part := range parts {
			matches = matches && strings.Contains(all, part)
		}
		if found = found || matches; matches {
			doctor.Asserted(f)
		}
	}
	if !found {
		t.Errorf("there is no finding %s %s with %q:\n%s", check, s, parts, text(g))
	}
}

// without checks that the group has no finding of the statuses.
func without(t *testing.T, g *doctor.Group, statuses ...doctor.Status) {
	t.Helper()
	for _, f := range g.Findings {
		for _, s := range statuses {
			if f.Status == s {
				t.Errorf("%+v", f)
			}
		}
	}
}

func text(g *doctor.Group) string {
	var b strings.Builder
	for _, f := range g.Findings {
		b.WriteString(string(f.Status) + " " + f.Check + " " + f.Subject + ": " + f.Text + " → " + f.Advice + "\n")
	}
	return b.String()
}

// contains reports whether a finding of the group has the text.
func contains(g *doctor.Group, part string) bool { return strings.Contains(text(g), part) }
