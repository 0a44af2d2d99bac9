package admin_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser/admin"
)

// A reader that comes again gets what has changed, and any other one gets everything.
func TestFiguresSinceAState(t *testing.T) {
	s := newSite(t)
	reader := &admin.Reader{Client: s.Server.Client()}
	read := func(since string) *admin.Document {
		t.Helper()
		d, err := reader.Figures(context.Background(), s.URL, since)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// until reads what has changed since a state until it is as it must be: a server may count a
	// call after its caller has the reply, and readers that come at once get the same.
	until := func(what, since string, is func(*admin.Document) bool) *admin.Document {
		t.Helper()
		var d *admin.Document
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if d = read(since); is(d) {
				return d
			}
		}
		t.Fatalf("%s: %+v", what, d)
		return nil
	}
	whole := until("everything", "", func(d *admin.Document) bool {
		return d.Since == "" && d.State != "" && len(d.Methods) == 6 && len(d.Servers) == 1 && len(d.Servers[0].Methods) >= 3 && len(d.Clients) == 1 &&
			len(d.Failures.Calls) >= 2 && len(d.Slow.Calls) >= 2 && len(d.Changed) == 4
	})
	quiet := until("nothing has happened", whole.State, func(d *admin.Document) bool {
		return d.State != whole.State && d.Since == whole.State && len(d.Methods) == 0 && len(d.Changed) == 0 && d.Clients == nil && d.Failures == nil &&
			len(d.Servers) == 1 && d.Servers[0].Methods == nil && d.Process.ID == whole.Process.ID
	})
	s.call(t)
	next := until("after some calls", quiet.State, func(d *admin.Document) bool {
		return len(d.Methods) == 6 && slices.Contains(d.Changed, admin.PartFailures) && !slices.Contains(d.Changed, admin.PartClients)
	})
	if again := read(whole.State); len(again.Methods) != 6 || len(again.Changed) < len(next.Changed) {
		t.Errorf("a reader with an older state gets %+v", again)
	}
	for _, since := range []string{"x", "0000.1", whole.Process.ID + ".99999", whole.Process.ID + ".", whole.Process.ID + ".-1", "\x00"} {
		if d := read(since); d.Since != "" || len(d.Methods) != 6 || len(d.Changed) != 4 {
			t.Errorf("since=%q: %+v", since, d)
		}
	}
}
