package child_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/cmd/anser/internal/child"
)

// The test binary is the child: its first argument selects the behaviour.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) < 2 || os.Args[1] == "" || os.Args[1][0] == '-':
		goleak.VerifyTestMain(m)
	case os.Args[1] == "serve":
		child.SayReady(os.Stdout, map[string]int{"pid": os.Getpid()})
		<-child.Orphaned(os.Stdin)
	case os.Args[1] == "fail":
		fmt.Fprintln(os.Stderr, strings.Repeat("much ", 1000)+"the reason")
		os.Exit(3)
	case os.Args[1] == "mumble":
		fmt.Println("not JSON")
	case os.Args[1] == "count":
		fmt.Print("{}\none\ntwo\nthr")
	case os.Args[1] == "hang":
		<-child.Orphaned(os.Stdin)
	}
}

func start(t *testing.T, g *child.Group, what string) *child.Child {
	t.Helper()
	c, err := g.Start(what)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLife(t *testing.T) {
	g := child.NewGroup()
	defer g.Close()
	for name, end := range map[string]func(*child.Child){
		"kill": func(c *child.Child) { c.Kill(); <-c.Done() },
		"stop": func(c *child.Child) { c.Stop(); <-c.Done() },
		"end":  func(c *child.Child) { c.End(time.Minute) },
	} {
		c := start(t, g, "serve")
		var said struct{ PID int }
		if err := c.Ready(t.Context(), &said); err != nil || said.PID != c.PID() {
			t.Errorf("%s: %v, %+v", name, err, said)
		}
		end(c)
		if err := c.Failure(); err == nil || !strings.Contains(err.Error(), "signal") {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

// A process that ends well without being asked has a reason, and no failure.
func TestReason(t *testing.T) {
	g := child.NewGroup()
	defer g.Close()
	c := start(t, g, "mumble")
	<-c.Done()
	if c.Failure() != nil || c.Reason() == nil {
		t.Errorf("failure %v, reason %v", c.Failure(), c.Reason())
	}
}

func TestNotReady(t *testing.T) {
	g := child.NewGroup()
	defer g.Close()
	c := start(t, g, "fail")
	err := c.Ready(t.Context(), new(any))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.HasSuffix(err.Error(), "much the reason") || len(err.Error()) > 4<<10 {
		t.Errorf("a child that failed: %v", err)
	}
	c = start(t, g, "mumble")
	if err := c.Ready(t.Context(), new(any)); err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("a child that said something else: %v", err)
	}
	<-c.Done()
	if err := c.Failure(); err != nil {
		t.Errorf("a child that ended well: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c = start(t, g, "hang")
	if err := c.Ready(ctx, new(any)); err == nil || !strings.Contains(err.Error(), "was not ready") {
		t.Errorf("a child that says nothing: %v", err)
	}
	c.End(time.Minute)
}

// Further lines are for the function of the parent, whole ones only.
func TestLines(t *testing.T) {
	g := child.NewGroup()
	defer g.Close()
	var lines []string
	c, err := g.StartProgram(os.Args[0], func(line []byte) { lines = append(lines, string(line)) }, "count")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context(), new(struct{})); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if got := strings.Join(lines, ""); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	if _, err := g.StartProgram(os.Args[0]+"-none", nil, "count"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}
