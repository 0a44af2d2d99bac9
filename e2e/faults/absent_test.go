package main

import (
	"testing"
	"time"
)

// A client gives a server no calls when it is ejected, down, not connected or not listed.
func TestAbsent(t *testing.T) {
	const address = "198.18.0.2:8972"
	at := func(s float64) []healthEvent {
		return []healthEvent{{At: seconds(s), Change: "ejected", Address: address}}
	}
	for _, c := range []struct {
		name  string
		st    status
		after time.Duration
		ok    bool
	}{
		{"in use", status{Instances: []instance{{Address: address, Connected: true}}}, 0, false},
		{"down", status{Instances: []instance{{Address: address, Connected: true, Down: true}}}, 3 * time.Second, true},
		{"not connected", status{Instances: []instance{{Address: address}}}, 3 * time.Second, true},
		{"ejected", status{Instances: []instance{{Address: address, Connected: true, Ejected: "errors"}}}, 3 * time.Second, true},
		{"not listed", status{Instances: []instance{{Address: "198.18.0.3:8972"}}}, 3 * time.Second, true},
		{"ejected and back", status{Instances: []instance{{Address: address, Connected: true}}, Events: at(1)}, time.Second, true},
		{"ejected before", status{Instances: []instance{{Address: address, Connected: true}}, Events: at(-1)}, 0, false},
	} {
		if after, ok := c.st.absent(address, seconds(0), seconds(3)); after != c.after || ok != c.ok {
			t.Errorf("%s: %v, %t, want %v, %t", c.name, after, ok, c.after, c.ok)
		}
	}
	all := []absence{{true, time.Second}, {true, 3 * time.Second}, {true, 2 * time.Second}}
	if after, seen := latest(all); after != 3*time.Second || !seen {
		t.Errorf("the last of three: %v, %t", after, seen)
	}
	if _, seen := latest(append(all, absence{})); seen {
		t.Error("one client never saw it")
	}
}
