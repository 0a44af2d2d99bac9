package top_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/top"
	"github.com/anser-rpc/anser/telemetry"
)

// process is a process with a page, whose calls the test makes up.
type process struct {
	name string
	at   string
	*telemetry.Meter
}

func newProcess(t *testing.T, name string) *process {
	t.Helper()
	p := &process{name: name, Meter: telemetry.New()}
	page, err := admin.New(p.Meter, admin.Name(name))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(page)
	t.Cleanup(s.Close)
	p.at = s.URL
	return p
}

// ran makes up calls of a method that a server has run.
func (p *process) ran(method string, n int, took time.Duration, err error) {
	for range n {
		p.Observer().CallEnded(context.Background(), &anser.CallInfo{Server: true, Method: method, Duration: took, Queue: took / 2, Err: err})
	}
}

// Two looks at two processes show the calls in between, by method and by process.
func TestLooks(t *testing.T) {
	a, b := newProcess(t, "a"), newProcess(t, "b")
	a.ran("Arith.Mul", 100, time.Second, nil) // before the first look
	sources := []top.Source{{Address: a.at, Instance: "arith-1"}, {Address: b.at}, {Address: "127.0.0.1:1", Instance: "gone"}}
	w := &top.Watcher{Find: func(context.Context) ([]top.Source, error) { return sources, nil }, Reader: new(admin.Reader), Timeout: time.Minute}
	look, err := w.Look(t.Context())
	if err != nil || look.Window != 0 || len(look.Processes) != 3 {
		t.Fatalf("%+v, %v", look, err)
	}
	a.ran("Arith.Mul", 20, time.Millisecond, nil)
	a.ran("Arith.Fail", 5, time.Millisecond, anser.NotFound)
	b.ran("Arith.Mul", 10, time.Millisecond, nil)
	time.Sleep(250 * time.Millisecond) // pages share what they measured for a while
	if look, err = w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range look.Methods {
		names = append(names, m.Name)
		if m.Name == "Arith.Mul" && (m.Rate <= 0 || m.Failed != 0 || m.P99 > 2*time.Millisecond || m.Queue != time.Millisecond/2) {
			t.Errorf("got %+v", m.Figures)
		}
		if m.Name == "Arith.Fail" && (m.Failed <= 0 || m.Failed != m.Rate) {
			t.Errorf("got %+v", m.Figures)
		}
	}
	if len(names) != 2 {
		t.Errorf("the methods are %q", names)
	}
	lines, rows := look.Lines(top.Show{Order: "name"}, 0)
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "1 silent") || len(rows) != 2 || !strings.HasPrefix(lines[rows[0]], "Arith.Fail") {
		t.Errorf("rows %d in\n%s", rows, text)
	}
	for _, c := range []struct {
		show top.Show
		want []string
	}{
		{top.Show{Processes: true, Order: "rate"}, []string{"arith-1", "gone", "does not answer"}},
		{top.Show{Order: "rate", Filter: "fail"}, []string{"Arith.Fail"}},
		{top.Show{Order: "rate", Process: a.at}, []string{"arith-1", "Latest slow calls", "1.00 s", "Latest failures", "not found"}},
		{top.Show{Order: "rate", Method: &look.Methods[0]}, []string{look.Methods[0].Name, "arith-1"}},
	} {
		lines, _ := look.Lines(c.show, 200)
		for _, want := range c.want {
			if text := strings.Join(lines, "\n"); !strings.Contains(text, want) {
				t.Errorf("%+v: no %q in\n%s", c.show, want, text)
			}
		}
	}
}

// A process that restarted has no calls from before.
func TestRestartedProcess(t *testing.T) {
	a, b := newProcess(t, "a"), newProcess(t, "a")
	b.ran("Arith.Mul", 1000, time.Millisecond, nil)
	at := a
	w := &top.Watcher{
		Find: func(context.Context) ([]top.Source, error) { return []top.Source{{Address: at.at}}, nil }, Reader: new(admin.Reader), Timeout: time.Minute,
	}
	if _, err := w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	at = b
	look, err := w.Look(t.Context())
	if err != nil || len(look.Methods) != 0 {
		t.Errorf("%+v, %v", look, err)
	}
	failure := errors.New("no registry")
	w.Find = func(context.Context) ([]top.Source, error) { return nil, failure }
	if _, err := w.Look(t.Context()); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestPrintable(t *testing.T) {
	if got := top.Printable("a\x1b[31m\u202eb\n"); got != "a?[31m?b?" {
		t.Errorf("got %q", got)
	}
}

// A look at which no process answers says why.
func TestNoProcessAnswers(t *testing.T) {
	look := &top.Look{Time: time.Now(), Window: time.Second}
	for range 7 {
		look.Processes = append(look.Processes, top.Process{Name: "x", Error: "it does not\x1b answer"})
	}
	lines, rows := look.Lines(top.Show{Order: "rate"}, 0)
	text := strings.Join(lines, "\n")
	if len(rows) != 0 || strings.Count(text, "it does not? answer") != 5 || !strings.Contains(text, "and 2 more") || look.Silent() == nil {
		t.Errorf("%d rows in\n%s", rows, text)
	}
	look.Processes[3].Error = ""
	if err := look.Silent(); err != nil {
		t.Errorf("got %v", err)
	}
}
