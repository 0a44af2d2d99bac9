package anser

import (
	"fmt"
	"testing"
)

// A new name costs a constant number of copies of names, however many there are, and so does a
// lookup of a recent name.
func TestKnownMethodsGrowsByFactors(t *testing.T) {
	var table knownMethods
	var p pool
	copied, read := 0, table.read.Load()
	note := func() {
		if now := table.read.Load(); now != read {
			read = now
			copied += len(*read)
		}
	}
	for i := range maxKnownMethods {
		name := fmt.Sprint("A.M", i)
		m := table.add(name, &p)
		note()
		for range 3 {
			if table.get(name) != m {
				t.Fatalf("%s is not found", name)
			}
			note()
		}
	}
	if most := 8 * maxKnownMethods; copied > most {
		t.Errorf("%d names were copied for %d, want at most %d", copied, maxKnownMethods, most)
	}
}

// Methods beyond the limit are not kept.
func TestKnownMethodsIsBounded(t *testing.T) {
	var table knownMethods
	var p pool
	first := table.add("A.M", &p)
	for i := range maxKnownMethods + 1000 {
		table.add(fmt.Sprint("B.M", i), &p)
	}
	if n := len(table.all()); n != maxKnownMethods {
		t.Errorf("%d methods are kept, want %d", n, maxKnownMethods)
	}
	if table.get("A.M") != first {
		t.Error("the first method was forgotten")
	}
	if m := table.add("C.M", &p); table.get("C.M") != nil || m.name != "C.M" || table.counted(m) != table.counted(table.add("D.M", &p)) {
		t.Error("a method beyond the limit is kept, or counted for itself")
	}
	for i := range 2 * maxNumberedMethods {
		p.methodNumber(fmt.Sprint("E.M", i))
	}
	if n := len(p.numbers); n != maxNumberedMethods {
		t.Errorf("%d methods have numbers, want %d", n, maxNumberedMethods)
	}
}

// The counters of an endpoint grow by factors, too.
func TestTalliesGrowByFactors(t *testing.T) {
	e := &endpoint{cluster: &cluster{client: new(Client)}}
	made, list := 0, e.conduct.tallies.Load()
	for i := range maxKnownMethods {
		m := &clientMethod{index: i}
		if tally := e.methodCounters(m); tally.method != m || e.methodCounters(m) != tally {
			t.Fatalf("the tally of method %d is not its own", i)
		}
		if now := e.conduct.tallies.Load(); now != list {
			list = now
			made += len(*list)
		}
	}
	if most := 4 * maxKnownMethods; made > most {
		t.Errorf("room for %d tallies was made for %d, want at most %d", made, maxKnownMethods, most)
	}
}
