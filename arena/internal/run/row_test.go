package run

import (
	"testing"

	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/result"
)

func round(calls int64, rate, cpu float64, writes *float64) result.Round {
	var r result.Round
	r.Calls, r.CallsPerSecond, r.CPUUS, r.P50US, r.P99US, r.ServerWrites = calls, rate, cpu, cpu+1, cpu+2, writes
	return r
}

var someone = &peer.Peer{
	Name: "p", Settings: "s", Codec: "c", Marks: []string{"m"},
	Folder: &peer.Folder{Framework: "f", Version: "v", Language: "go"},
}

func TestAdd(t *testing.T) {
	row := newRow(someone, "say", result.Shape{Callers: 5})
	if row.Peer != "p" || row.Framework != "f" || row.Version != "v" || row.Language != "go" || row.Codec != "c" || row.Settings != "s" || row.Valid {
		t.Errorf("%+v", row)
	}
	add(row, round(100, 10, 4, new(1.0)))
	add(row, round(300, 30, 2, new(3.0)))
	if row.Calls != 200 || row.CallsPerSecond != 20 || row.CPUUS != 3 || *row.ServerWrites != 2 || row.ServerReads != nil {
		t.Errorf("of two: %+v", row.Figures)
	}
	odd := round(200, 12, 9, nil)
	odd.Errors = 1
	add(row, odd)
	if row.CallsPerSecond != 12 || row.CPUUS != 4 || row.ServerWrites != nil || row.Errors != 1 || !row.Valid || len(row.Rounds) != 3 {
		t.Errorf("of three: %+v", row)
	}
	if row.CallsPerSecondRange != [2]float64{10, 30} || row.CPURange != [2]float64{2, 9} || row.P50Range != [2]float64{3, 10} || row.P99Range != [2]float64{4, 11} {
		t.Errorf("ranges: %+v", row)
	}
}

func TestInvalid(t *testing.T) {
	row := newRow(someone, "say", result.Shape{})
	add(row, result.Round{FirstError: "it crashed"})
	if row.Valid || row.CallsPerSecond != 0 {
		t.Errorf("without a result: %+v", row)
	}
	add(row, round(100, 10, 4, nil)) // a crash in one round of two is a crash
	if row.Valid || row.CallsPerSecond != 10 {
		t.Errorf("with a result: %+v", row)
	}
	row = newRow(someone, "say", result.Shape{})
	wrong := round(100, 10, 4, nil)
	wrong.Wrong = 1
	add(row, wrong)
	add(row, round(100, 10, 4, nil))
	if row.Valid || row.Wrong != 1 {
		t.Errorf("with a wrong reply: %+v", row)
	}
	row = newRow(someone, "say", result.Shape{})
	failed := result.Round{FirstError: "refused"}
	failed.Errors = 12
	add(row, failed)
	if row.Valid || row.Errors != 12 {
		t.Errorf("with errors only: %+v", row)
	}
}

func TestRoughly(t *testing.T) {
	for f, want := range map[float64]float64{0: 0, 123456: 120000, 98765: 99000, 99.9: 100, 5: 5, 0.123: 0.12} {
		if got := roughly(f); got < want*0.9999 || got > want*1.0001 {
			t.Errorf("%v is roughly %v, want %v", f, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	doc := new(result.Document)
	for _, change := range []func(*result.Round){
		func(*result.Round) {},
		func(r *result.Round) { r.Errors, r.FirstError = 3, "refused" },
		func(r *result.Round) { r.Wrong = 2 },
		func(r *result.Round) { r.FirstError = "did not end" },
		func(r *result.Round) { r.Calls = 0 },
	} {
		r := round(100, 10, 4, nil)
		change(&r)
		row := newRow(someone, "say", result.Shape{Callers: 1, Conns: 1, Payload: 581})
		add(row, r)
		doc.Rows = append(doc.Rows, *row)
	}
	got := Faults(doc)
	want := []string{"refused", "2 wrong replies", "did not end", "no call ended inside the measurement"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if got[i] != "p: say, 1 caller, 1 connection: "+want[i] {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}
