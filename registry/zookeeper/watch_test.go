package zookeeper_test

import (
	"testing"

	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

// A process that lists a quiet service again and again must not accumulate watches in the library.
func TestListsCollectNoWatches(t *testing.T) {
	r := shared.dial(t, zookeeper.Prefix(freshPrefix()))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	regtest.Register(t, r, regtest.Instance("h2:1"))
	for range 50 {
		if got := regtest.Addresses(t, r); got != "h1:1 h2:1" {
			t.Fatalf("list %q", got)
		}
	}
	if n := r.WatchChannels(); n < 3 || n > 10 {
		t.Errorf("%d watches after 50 lists of two instances, want one for each and one for the list", n)
	}
	// The watches are set: the next change is seen without a new connection.
	w := regtest.NewWatch(t, r)
	w.Expect("h1:1 h2:1")
	regtest.Register(t, r, regtest.Instance("h3:1"))
	w.Await("h1:1 h2:1 h3:1")
	in := regtest.Instance("h1:1")
	if err := r.Deregister(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.Await("h2:1 h3:1")
	regtest.Eventually(t, regtest.Patience, "few watches", func() bool { return r.WatchChannels() <= 8 })
}

// The library stores transaction ids without a lock. It receives none over the connection for
// reads, however the answers are cut into pieces.
func TestReaderHidesTransactions(t *testing.T) {
	r := shared.dial(t, zookeeper.Prefix(freshPrefix()))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	if got := regtest.Addresses(t, r); got != "h1:1" {
		t.Fatalf("list %q", got)
	}
	if id := r.LastTransaction(); id != 0 {
		t.Errorf("the library has stored transaction %d", id)
	}
}
