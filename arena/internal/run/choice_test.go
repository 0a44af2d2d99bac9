package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/build"
	"github.com/anser-rpc/anser/arena/internal/measure"
	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/result"
)

// choosers are peers whose best connections differ: by their names in the command line the
// measurement knows them.
func choosers() []*peer.Peer {
	f := &peer.Folder{Name: "f", Language: "go"}
	for _, name := range []string{"sharer", "pooler", "owner", "liar"} {
		f.Peers = append(f.Peers, &peer.Peer{
			Name: name, Folder: f, Server: []string{name}, Client: []string{name}, Workloads: []string{peer.Say},
			Conns: []string{peer.Shared, peer.Pool, peer.Each}, Payloads: []int{581}, WarmupS: 1,
		})
	}
	return f.Peers
}

// speeds are the calls/s of each chooser with 2 connections, 16, and one for each caller.
var speeds = map[string]map[int]float64{
	"sharer": {2: 9000, 16: 7000, 0: 5000},
	"pooler": {2: 100, 16: 1000, 0: 999},
	"owner":  {2: 1000, 16: 2000, 0: 50_000},
	"liar":   {2: 500, 16: 600, 0: 90_000}, // with wrong replies where each caller has its own
}

// fake makes measurements without a process. An open loop gets what it offers.
func fake(_ context.Context, job *measure.Job) (result.Round, error) {
	name, s := job.Server[0], job.Shape
	var r result.Round
	r.CallsPerSecond, r.Calls, r.CPUUS = speeds[name][s.Conns], 1000, 1
	if s.Rate > 0 {
		r.CallsPerSecond = s.Rate
	}
	if name == "liar" && s.Conns == 0 {
		r.Wrong = 3
	}
	return r, nil
}

var errKilled = errors.New("killed")

// carryOut runs a suite on a document up to a number of measurements, and returns the document as
// read back from its last version on disk.
func carryOut(t *testing.T, s *suite.Suite, who []*peer.Peer, doc *result.Document, most int) (*result.Document, int, error) {
	t.Helper()
	saved, made := marshal(t, doc), 0
	r := &Runner{
		Builder: new(build.Builder), Document: doc, Progress: silent{},
		Save: func() error { saved = marshal(t, doc); return nil },
		Measure: func(ctx context.Context, job *measure.Job) (result.Round, error) {
			if made == most {
				return result.Round{}, errKilled
			}
			made++
			return fake(ctx, job)
		},
	}
	err := r.Run(t.Context(), NewPlan(s, who, new(need.Checker)))
	out := new(result.Document)
	if err := json.Unmarshal(saved, out); err != nil {
		t.Fatal(err)
	}
	return out, made, err
}

func marshal(t *testing.T, doc *result.Document) []byte {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type silent struct{}

func (silent) Begin(string)        {}
func (silent) Note(string, ...any) {}
func (silent) Step()               {}
func (silent) End()                {}

func suiteOf(conns int) *suite.Suite {
	return &suite.Suite{Seconds: 5, Rounds: 3, Trial: 1, Trials: 2, Lines: []suite.Line{
		{Callers: 100, Conns: conns},
		{Callers: 100, Conns: conns, RateShare: 0.6},
		{Callers: 100, Conns: conns, Rate: 50},
		{Callers: 1, Conns: conns},
	}}
}

// bests returns the rows that are marked, as peer/callers/connections@rate.
func bests(doc *result.Document) []string {
	var out []string
	for i := range doc.Rows {
		if row := &doc.Rows[i]; row.Best {
			out = append(out, fmt.Sprintf("%s/%d/%d@%g", row.Peer, row.Shape.Callers, row.Shape.Conns, row.Shape.Rate))
		}
	}
	slices.Sort(out)
	return out
}

// Each peer is measured with the connections of its best valid trial, and its open loop offers a
// share of what it reached with these.
func TestBest(t *testing.T) {
	doc, made, err := carryOut(t, suiteOf(suite.BestConns), choosers(), new(result.Document), -1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"liar/1/0@0", "liar/100/16@0", "liar/100/16@360", "liar/100/16@50",
		"owner/1/0@0", "owner/100/0@0", "owner/100/0@30000", "owner/100/0@50",
		"pooler/1/0@0", "pooler/100/16@0", "pooler/100/16@50", "pooler/100/16@600",
		"sharer/1/0@0", "sharer/100/2@0", "sharer/100/2@50", "sharer/100/2@5400",
	}
	if got := bests(doc); !slices.Equal(got, want) {
		t.Errorf("the best are\n%q, want\n%q", got, want)
	}
	// Three shapes have two trials each, which serve three lines, and one caller needs none.
	if len(doc.Trials) != 4*3*2 || len(doc.Rows) != 4*4 || made != 4*3*2+4*4*3 {
		t.Errorf("%d trials, %d rows, %d measurements", len(doc.Trials), len(doc.Rows), made)
	}
	for i := range doc.Rows {
		if share := doc.Rows[i].Shape.Share; (share > 0) != (doc.Rows[i].Shape.Rate > 50) || share != 0 && share != 0.6 {
			t.Errorf("the share of %+v", doc.Rows[i].Shape)
		}
	}
}

// All shapes on demand: every one has all rounds and a rate of its own, and the best are the same
// ones.
func TestAllShapes(t *testing.T) {
	doc, _, err := carryOut(t, suiteOf(suite.AllConns), choosers(), new(result.Document), -1)
	if err != nil {
		t.Fatal(err)
	}
	best, _, err := carryOut(t, suiteOf(suite.BestConns), choosers(), new(result.Document), -1)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(bests(best), func(s string) bool { return s == "liar/1/0@0" })
	got := slices.DeleteFunc(bests(doc), func(s string) bool { return s == "liar/1/0@0" })
	if !slices.Equal(got, want) {
		t.Errorf("the best are\n%q, want\n%q", got, want)
	}
	// The liar has no peak with a connection for each caller, and so no rate.
	if len(doc.Trials) != 0 || len(doc.Rows) != 3*3*4-1+4 || len(doc.NotRun) != 1 {
		t.Errorf("%d trials, %d rows, not run: %v", len(doc.Trials), len(doc.Rows), doc.NotRun)
	}
	rates := make(map[string]float64)
	for i := range doc.Rows {
		row := &doc.Rows[i]
		if len(row.Rounds) != 3 {
			t.Errorf("%s has %d rounds", row.Peer, len(row.Rounds))
		}
		if row.Shape.Share > 0 {
			rates[fmt.Sprint(row.Peer, row.Shape.Conns)] = row.Shape.Rate
		}
	}
	for name, want := range map[string]float64{"sharer0": 3000, "sharer16": 4200, "sharer2": 5400, "owner2": 600, "owner0": 30_000} {
		if rates[name] != want {
			t.Errorf("%s is offered %v, want %v", name, rates[name], want)
		}
	}
}

// A run that is killed after any of its measurements and resumed ends with the document of a run
// that was not, and measures nothing twice.
func TestResumeAnywhere(t *testing.T) {
	who := choosers()[2:]
	for _, conns := range []int{suite.BestConns, suite.AllConns} {
		whole, total, err := carryOut(t, suiteOf(conns), who, new(result.Document), -1)
		if err != nil {
			t.Fatal(err)
		}
		for most := range total {
			half, first, err := carryOut(t, suiteOf(conns), who, new(result.Document), most)
			if !errors.Is(err, errKilled) || first != most {
				t.Fatalf("killed after %d of %d: %v", first, most, err)
			}
			half.NotRun = nil // the command plans these anew
			resumed, second, err := carryOut(t, suiteOf(conns), who, half, -1)
			if err != nil || first+second != total {
				t.Fatalf("killed after %d: %d more of %d, %v", first, second, total, err)
			}
			if conns == suite.BestConns && !reflect.DeepEqual(resumed, whole) {
				t.Fatalf("killed after %d, the document is\n%s\nwant\n%s", most, marshal(t, resumed), marshal(t, whole))
			}
			if got := bests(resumed); !slices.Equal(got, bests(whole)) || len(resumed.Rows) != len(whole.Rows) {
				t.Fatalf("killed after %d, the best are %q, want %q", most, got, bests(whole))
			}
		}
	}
}

// Without a valid trial the first shape is measured, so that the document shows what fails.
func TestNothingValid(t *testing.T) {
	r := &Runner{Document: new(result.Document)}
	who := choosers()[0]
	line := &suite.Line{Callers: 100, Conns: suite.BestConns}
	shapes, _ := line.Shapes(who)
	s := &Step{Peer: who, Line: line, Shapes: shapes}
	for i := range shapes {
		trial := result.Trial{Peer: who.Name, Workload: peer.Say, Shape: shapes[i]}
		trial.CallsPerSecond = float64(10 + i)
		r.Document.Trials = append(r.Document.Trials, trial)
	}
	if got := r.chosen(s); got != shapes[0] {
		t.Errorf("%+v", got)
	}
	r.Document.Trials[1].Valid = true
	if got := r.chosen(s); got != shapes[1] {
		t.Errorf("%+v", got)
	}
	// The best of several trials counts, and one that fails in any of them does not.
	more := func(i int, rate float64, valid bool) {
		trial := result.Trial{Peer: who.Name, Workload: peer.Say, Shape: shapes[i], Valid: valid}
		trial.CallsPerSecond = rate
		r.Document.Trials = append(r.Document.Trials, trial)
	}
	r.Document.Trials[0].Valid = true
	more(0, 50, true)
	more(1, 5, true)
	more(2, 99, true)
	if got := r.chosen(s); got != shapes[0] {
		t.Errorf("%+v", got)
	}
}

// A peak is that of the same peer, callers, connections and messages in a closed loop before the
// step, and no other.
func TestPeak(t *testing.T) {
	who, other := choosers()[0], choosers()[1]
	r := &Runner{Document: new(result.Document)}
	var before []Step
	measured := func(who *peer.Peer, line *suite.Line, rate float64, valid bool) {
		shapes, _ := line.Shapes(who)
		before = append(before, Step{Peer: who, Line: line, Shapes: shapes})
		row := r.row(who, line.WorkloadName(), shapes[0])
		row.Valid, row.CallsPerSecond = valid, rate
	}
	share := &suite.Line{Callers: 5, Conns: 2, RateShare: 0.5}
	shapes, _ := share.Shapes(who)
	s := &Step{Peer: who, Line: share, Shapes: shapes}
	for _, line := range []suite.Line{
		{Callers: 7, Conns: 2},
		{Callers: 5, Conns: 4},
		{Callers: 5, Conns: 0},
		{Callers: 5, Conns: 2, Rate: 99},
		{Callers: 5, Conns: 2, SleepUS: 1},
		{Callers: 5, Conns: 2, WorkUS: 1},
		{Callers: 5, Conns: 4, Clients: 4},
		{Callers: 5, Conns: 2, Servers: 2},
	} {
		measured(who, &line, 99, true)
	}
	measured(other, &suite.Line{Callers: 5, Conns: 2}, 90, true)
	measured(who, &suite.Line{Callers: 5, Conns: 2, Seconds: 3}, 99, false)
	if got := r.peak(s, before); got != 0 {
		t.Errorf("the peak of nothing is %v", got)
	}
	measured(who, &suite.Line{Callers: 5, Conns: 2}, 20, true)
	if got := r.peak(s, before); got != 20 {
		t.Errorf("the peak is %v", got)
	}
	if got := r.peak(s, before[:len(before)-1]); got != 0 {
		t.Errorf("with a later line the peak is %v", got)
	}
}
