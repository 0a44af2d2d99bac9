package suite_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/result"
)

var (
	all = &peer.Peer{
		Name: "all", Workloads: []string{peer.Say, peer.Add}, Conns: []string{peer.Shared, peer.Pool, peer.Each, peer.Fresh},
		Payloads: []int{64, 581, 1 << 20}, Window: true,
	}
	// Like Thrift: a connection carries one call at a time.
	each = &peer.Peer{
		Name: "each", Workloads: []string{peer.Say}, Conns: []string{peer.Each, peer.Fresh}, Payloads: []int{581}, MaxConns: 5,
	}
)

func TestShape(t *testing.T) {
	best := suite.UsualConns
	for _, c := range []struct {
		line suite.Line
		who  *peer.Peer
		want result.Shape
	}{
		{suite.Line{Callers: 3, Conns: best, Seconds: 2}, all, result.Shape{Callers: 3, Conns: 2, Payload: 581, Servers: 1, Clients: 1, Hosts: 1, Seconds: 2}},
		{suite.Line{Callers: 3, Conns: best, Seconds: 2}, each, result.Shape{Callers: 3, Conns: 0, Payload: 581, Servers: 1, Clients: 1, Hosts: 1, Seconds: 2}},
		{suite.Line{Callers: 9, Conns: best, Servers: 2, Clients: 4}, all, result.Shape{Callers: 9, Conns: 8, Payload: 581, Servers: 2, Clients: 4, Hosts: 1}},
		{suite.Line{Callers: 3, Conns: best, Fresh: true}, all, result.Shape{Callers: 3, Fresh: true, Payload: 581, Servers: 1, Clients: 1, Hosts: 1}},
		{suite.Line{Callers: 3, Workload: peer.Add, Payload: 64}, all, result.Shape{Callers: 3, Servers: 1, Clients: 1, Hosts: 1}},
		{suite.Line{Callers: 3, Conns: 1, Calls: 7, Seconds: 2, Window: 5}, all, result.Shape{Callers: 3, Conns: 1, Calls: 7, Window: 5, Payload: 581, Servers: 1, Clients: 1, Hosts: 1}},
		{suite.Line{Callers: 50, Fresh: true}, each, result.Shape{Callers: 50, Fresh: true, Payload: 581, Servers: 1, Clients: 1, Hosts: 1}},
	} {
		if got, refusal := c.line.Shapes(c.who); len(got) != 1 || got[0] != c.want || refusal != "" {
			t.Errorf("%v of %s:\n%+v, %q, want\n%+v", &c.line, c.who.Name, got, refusal, c.want)
		}
	}
}

func TestRefusal(t *testing.T) {
	for want, line := range map[string]suite.Line{
		"has no workload add":                             {Callers: 1, Workload: peer.Add},
		"does not support connections that callers share": {Callers: 3, Conns: 1},
		"has no asynchronous calls for --window":          {Callers: 1, Window: 2},
		"does not take payloads of 64 bytes":              {Callers: 1, Payload: 64},
		"serves 5 connections at a time":                  {Callers: 6},
	} {
		if _, got := line.Shapes(each); got != want {
			t.Errorf("%v: %q, want %q", &line, got, want)
		}
	}
	shared := &peer.Peer{Workloads: []string{peer.Say}, Conns: []string{peer.Shared}, Payloads: []int{581}}
	for want, line := range map[string]suite.Line{
		"does not support a connection for each caller": {Callers: 3},
		"does not support a connection for each call":   {Callers: 3, Fresh: true},
	} {
		if _, got := line.Shapes(shared); got != want {
			t.Errorf("%v: %q, want %q", &line, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := suite.Line{Callers: 4, Conns: 2, Seconds: 1}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*suite.Line){
		"--workload sing":   func(l *suite.Line) { l.Workload = "sing" },
		"--callers 0":       func(l *suite.Line) { l.Callers = 0 },
		"--clients 5":       func(l *suite.Line) { l.Clients = 5 },
		"--conns -4":        func(l *suite.Line) { l.Conns = -4 },
		"need at least 4":   func(l *suite.Line) { l.Clients, l.Servers = 2, 2 },
		"--servers 5":       func(l *suite.Line) { l.Conns, l.Servers = 0, 5 },
		"not be negative":   func(l *suite.Line) { l.SleepUS = -1 },
		"64 is the least":   func(l *suite.Line) { l.Payload = 63 },
		"--hosts 3":         func(l *suite.Line) { l.Hosts = 3 },
		"--seconds must be": func(l *suite.Line) { l.Seconds = 0 },
	} {
		line := good
		change(&line)
		if err := line.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want one about %q", line, err, want)
		}
	}
}

// What the table of suites says can be typed too, and the peak that a share is of is measured
// before it.
func TestSuites(t *testing.T) {
	for _, s := range suite.Suites {
		closed := make(map[result.Shape]bool)
		for _, line := range s.Lines {
			if line.Seconds == 0 {
				line.Seconds = s.Seconds
			}
			if err := line.Check(); err != nil {
				t.Errorf("%s: %v: %v", s.Name, &line, err)
			}
			if line.Rounds == 0 && s.Rounds == 0 {
				t.Errorf("%s: %v has no rounds", s.Name, &line)
			}
			shapes, _ := line.Shapes(all)
			for _, shape := range shapes {
				if line.RateShare > 0 && !closed[suite.Closed(shape)] {
					t.Errorf("%s: %v has no peak before it", s.Name, &line)
				}
				closed[suite.Closed(shape)] = closed[suite.Closed(shape)] || shape.Rate == 0 && shape.Share == 0
			}
		}
		if found, err := suite.Find(s.Name); err != nil || found.Name != s.Name {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if _, err := suite.Find("nothing"); err == nil || !strings.Contains(err.Error(), "use full, quick, ci, kiss") {
		t.Errorf("%v", err)
	}
}

func TestPublished(t *testing.T) {
	kiss, err := suite.Find("kiss")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range kiss.Published {
		if row.Published == "" || len(row.Marks) == 0 || row.CallsPerSecond == 0 {
			t.Errorf("%+v", row)
		}
		found := false
		for i := range kiss.Lines {
			shapes, _ := kiss.Lines[i].Shapes(all)
			found = found || shapes[0] == row.Shape && kiss.Lines[i].WorkloadName() == row.Workload
		}
		if !found {
			t.Errorf("nothing is measured beside %+v", row.Shape)
		}
	}
}

func TestDescribe(t *testing.T) {
	for want, s := range map[string]result.Shape{
		"say, 1 caller, a connection for each caller": {Callers: 1, Payload: 581, Servers: 1, Clients: 1, Hosts: 1},
		"say, 5 callers, 2 connections, window 3, 100 calls/s offered, 64 bytes, handler sleeps 1 µs, handler works 2 µs, 2 servers, 4 client processes, 2 hosts, 7 calls": {
			Callers: 5, Conns: 2, Window: 3, Rate: 100, Payload: 64, SleepUS: 1, WorkUS: 2, Servers: 2, Clients: 4, Hosts: 2, Calls: 7,
		},
		"say, 5 callers, a connection for each call": {Callers: 5, Fresh: true, Window: 1, Payload: 581},
	} {
		if got := suite.Describe("say", s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	line := suite.Line{Callers: 2, Conns: suite.BestConns, RateShare: 0.6}
	if got := line.String(); got != "say, 2 callers, each with its best connections, 60 % of its own peak offered" {
		t.Errorf("%q", got)
	}
}
