package main

import (
	"log"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The tests run their own binary again for every process.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		log.SetPrefix(role + ": ")
		if err := runRole(role); err != nil {
			log.Fatal(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// The short form: every row, with phases of a second, a load that any machine carries, and calls
// and writes that wait for long. What depends on time is printed; a promise that is broken fails
// the test.
func TestRows(t *testing.T) {
	o := options{Seconds: 1, Load: demand{Rate: 300}, Clients: 2, Timeout: time.Minute, Stall: time.Minute}
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			got := play{r, o}.play(t.Context())
			got.print(t.Output())
			if got.State == notRun && os.Geteuid() == 0 && r.needs != ownGroup { // a container may have no cgroups of its own
				t.Errorf("root can play every row: %s", got.Why)
			}
			if got.State == broken {
				t.Errorf("%s, %s", got.State, got.Why)
			}
		})
	}
}

// Some rows with other frameworks: nothing is asserted of those, but that the rows can be played,
// and that their calls are in the ledger.
func TestPeers(t *testing.T) {
	some, err := choose("kill,flips-tls,idle-tcp,in-flight")
	if err != nil {
		t.Fatal(err)
	}
	for name := range peerNames {
		for _, r := range some {
			t.Run(name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				got := play{r, options{Seconds: 1, Load: demand{Rate: 200}, Clients: 2, Timeout: time.Minute, peer: name}}.play(t.Context())
				got.print(t.Output())
				if !r.peers || got.Why != "" || got.Peer == "" || len(got.Figures) == 0 || len(got.Violations) > 0 {
					t.Errorf("%s: %s, %s", got.Peer, got.State, got.Why)
				}
			})
		}
	}
}
