package anser

import (
	"fmt"
	"testing"

	"github.com/anser-rpc/anser/internal/cluster"
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
		m := table.add(name, &p, nil)
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
	first := table.add("A.M", &p, nil)
	for i := range maxKnownMethods + 1000 {
		table.add(fmt.Sprint("B.M", i), &p, nil)
	}
	if n := len(table.all()); n != maxKnownMethods {
		t.Errorf("%d methods are kept, want %d", n, maxKnownMethods)
	}
	if table.get("A.M") != first {
		t.Error("the first method was forgotten")
	}
	if m := table.add("C.M", &p, nil); table.get("C.M") != nil || m.name != "C.M" || m.health.Index != cluster.MaxMethods {
		t.Error("a method beyond the limit is kept, or counted for itself")
	}
	for i := range 2 * maxNumberedMethods {
		p.methodNumber(fmt.Sprint("E.M", i))
	}
	if n := len(p.numbers); n != maxNumberedMethods {
		t.Errorf("%d methods have numbers, want %d", n, maxNumberedMethods)
	}
}
