package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLockAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockAlone(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockAlone(file); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a second run: %v, want a refusal", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := lockAlone(file)
	if err != nil {
		t.Fatalf("after the first run has ended: %v", err)
	}
	again()
}

// What the row's own processes and the kernel's interrupts use is not the use of others.
func TestOthers(t *testing.T) {
	at := func(stat string, own time.Duration) reading { return reading{parseTicks(stat), own} }
	from := at("cpu  100 0 100 800 0 10 10 0 0 0\ncpu0 1 2 3\n", time.Second)
	for _, c := range []struct {
		stat string
		own  time.Duration
		want float64
	}{
		{"cpu  100 0 100 800 0 10 10 0 0 0\n", time.Second, 0},          // no time has passed
		{"cpu  300 0 200 1500 0 10 10 0 0 0\n", 4 * time.Second, 0},     // all of it was the row's
		{"cpu  300 0 200 1500 0 10 10 0 0 0\n", 2 * time.Second, 0.2},   // a second of three was
		{"cpu  300 0 100 1480 20 50 50 0 0 0\n", 3 * time.Second, 0},    // waiting for a disk, and interrupts
		{"cpu  300 0 100 1500 0 10 10 100 0 0\n", 3 * time.Second, 0.1}, // another guest of the same host
		{"cpu  300 0 200 1500 0 10 10 0 300 300\n", 4 * time.Second, 0}, // guests are part of the first columns
		{"cpu  200 0 100 1700 0 10 10 0 0 0\n", 9 * time.Second, 0},     // rounding
	} {
		if got := from.others(at(c.stat, c.own)); got < c.want-0.001 || got > c.want+0.001 {
			t.Errorf("%q, %v: %.3f, want %.3f", c.stat, c.own, got, c.want)
		}
	}
}

func TestLoadInTheOverview(t *testing.T) {
	busy := 0.4
	for _, c := range []struct {
		figures []figure
		others  *float64
		want    string
	}{
		{nil, nil, "–"},
		{[]figure{{Name: rateOffered, Value: 1000, Unit: "calls/s"}}, nil, "1,000 calls/s, given, one process"},
		{[]figure{
			{Name: rateOffered, Value: 6000, Unit: "calls/s"},
			{Name: capacityMeasured, Value: 10_000, Unit: "calls/s"},
			{Name: clientProcesses, Value: 64},
		}, &busy, "6,000 calls/s, 60 % of the capacity, 64 processes, not alone"},
	} {
		r := result{Figures: c.figures}
		r.Others = c.others
		if got := r.load(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
