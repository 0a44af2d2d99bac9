package measure

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/proc"
	"github.com/anser-rpc/anser/arena/result"
)

const began = int64(1e18)

// grows is a counter that grows evenly from a second before the measurement to a second after it.
func grows(s *proc.Series, perSecond float64) {
	for i := range 9 {
		at := began + int64(i-2)*5e8
		s.Add(at, perSecond*float64(i)/2)
	}
}

func tree(cpu, resident, reads, readSum, writes, writeSum float64) *proc.Tree {
	t := new(proc.Tree)
	grows(&t.CPU, cpu)
	t.Resident.Add(began, resident)
	grows(&t.Reads, reads)
	grows(&t.ReadSum, readSum)
	grows(&t.Writes, writes)
	grows(&t.WriteSum, writeSum)
	return t
}

func close2(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b), 1e-9) }

func TestFigures(t *testing.T) {
	// A thousand calls in two seconds, so 500 a second.
	latencies := make([]int64, 1000)
	for i := range latencies {
		latencies[i] = int64(i+1) * 1000
	}
	l, err := parseLine(printed(t, func(m map[string]any) { m["errors"] = 250 }, latencies...))
	if err != nil {
		t.Fatal(err)
	}
	record := &proc.Record{Trees: []*proc.Tree{
		tree(5e6, 1<<20, 250, 250*400, 500, 500*600), // 10 µs a call
		tree(1e7, 3<<20, 100, 100*8, 0, 0),           // wakes itself by an eventfd, and uses recvmsg and sendmsg
	}}
	cores := float64(runtime.NumCPU())
	grows(&record.Self, 1e6)
	grows(&record.Busy, 5e6+1e7+1e6+0.1*cores*1e9)
	grows(&record.Wire, 500*1250)
	j := &Job{Workload: "say", Shape: result.Shape{Payload: 581, Servers: 1, Clients: 1}}
	f, others, err := figures(j, []*line{l}, record)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]float64{
		"calls":       {float64(f.Calls), 1000},
		"errors":      {float64(f.Errors), 250},
		"success":     {f.SuccessRate, 0.8},
		"calls/s":     {f.CallsPerSecond, 500},
		"server CPU":  {f.ServerCPUUS, 10},
		"client CPU":  {f.ClientCPUUS, 20},
		"CPU":         {f.CPUUS, 30},
		"server MiB":  {f.ServerMiB, 1},
		"client MiB":  {f.ClientMiB, 3},
		"wire":        {*f.WireBytes, 1250},
		"reads":       {*f.ServerReads, 0.5},
		"writes":      {*f.ServerWrites, 1},
		"least":       {f.MinUS, 1},
		"p50":         {f.P50US, 500},
		"p90":         {f.P90US, 900},
		"p99":         {f.P99US, 990},
		"p99.9":       {f.P999US, 999},
		"most":        {f.MaxUS, 1000},
		"mean":        {f.MeanUS, 500.5},
		"other share": {others, 0.1},
	} {
		if !close2(c[0], c[1]) {
			t.Errorf("%s is %v, want %v", name, c[0], c[1])
		}
	}
	if f.ClientReads != nil || f.ClientWrites != nil || f.ClientSyscalls != nil {
		t.Errorf("what was not seen is known: %+v", f)
	}
}

func TestFiguresOfSeveralClients(t *testing.T) {
	one, err := parseLine(printed(t, nil, 1000, 1000, 1000, 1000))
	if err != nil {
		t.Fatal(err)
	}
	two, err := parseLine(printed(t, func(m map[string]any) { m["began_unix_ns"] = began + 1e9 }, 3000, 3000))
	if err != nil {
		t.Fatal(err)
	}
	record := &proc.Record{Trees: []*proc.Tree{tree(4e3, 0, 0, 0, 0, 0), tree(8e3, 0, 0, 0, 0, 0), tree(4e3, 0, 0, 0, 0, 0)}}
	j := &Job{Shape: result.Shape{Servers: 1, Clients: 2}}
	f, _, err := figures(j, []*line{one, two}, record)
	if err != nil {
		t.Fatal(err)
	}
	// Four calls in two seconds and two in one are 4 a second; a second of all takes 4 + 12 µs.
	if f.Calls != 6 || !close2(f.CallsPerSecond, 4) || !close2(f.ServerCPUUS, 1) || !close2(f.ClientCPUUS, 3) || !close2(f.MaxUS, 3) {
		t.Errorf("%+v", f)
	}
	late, err := parseLine(printed(t, func(m map[string]any) {
		m["began_unix_ns"], m["ended_unix_ns"] = began+2e9, began+4e9
	}, 3000))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := figures(j, []*line{one, late}, record); err == nil || !strings.Contains(err.Error(), "at the same time") {
		t.Errorf("clients one after the other: %v", err)
	}
}

func TestFiguresWithoutCalls(t *testing.T) {
	l, err := parseLine(printed(t, func(m map[string]any) { m["errors"] = 5 }))
	if err != nil {
		t.Fatal(err)
	}
	record := &proc.Record{Trees: []*proc.Tree{tree(1, 1, 1, 1, 1, 1), tree(1, 1, 1, 1, 1, 1)}}
	j := &Job{Shape: result.Shape{Servers: 1, Clients: 1}}
	f, _, err := figures(j, []*line{l}, record)
	if err != nil || f.CPUUS != 0 || f.P99US != 0 || f.SuccessRate != 0 || f.Errors != 5 || f.WireBytes != nil || f.ServerReads != nil {
		t.Errorf("%+v, %v", f, err)
	}
	for _, s := range []*proc.Series{&record.Trees[0].CPU, &record.Trees[1].CPU} {
		*s = proc.Series{}
	}
	if _, _, err := figures(j, []*line{l}, record); err == nil || !strings.Contains(err.Error(), "do not cover") {
		t.Errorf("without samples: %v", err)
	}
}
