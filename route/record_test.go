package route_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func TestRecorder(t *testing.T) {
	m := fleet(t)
	d := set(t, m, `{"conditions":[{"when":{"metadata":{"user":"u*"}},"to":{"id":"b"}}]}`)
	rec := route.NewRecorder("Tenant")
	c := dial(t, m, route.Rules(route.Record(rec), route.From(route.Caller{Zone: "south"})))
	await(t, c, d.Version, 3)
	md := anser.Metadata{"user": "u1", "tenant": strings.Repeat("t", 1000), "token": "secret"}
	eventually(t, "some samples", func() bool {
		count(t, c, 1, md)
		return len(rec.Recent("test")) >= 3
	})
	s := rec.Recent("")[0]
	if s.Method != "Test.Who" || s.Service != "test" || s.Address == "" || s.Failed || s.Caller.Zone != "south" || s.Version != d.Version {
		t.Errorf("sample %+v", s)
	}
	if s.Metadata["user"] != "u1" || len(s.Metadata["tenant"]) != 256 || s.Metadata["token"] != "" || !slices.Equal(s.Keys, []string{"tenant", "user"}) {
		t.Errorf("of the metadata %v of the keys %v were recorded, want user and the beginning of tenant", s.Metadata, s.Keys)
	}
	if n := len(rec.Recent("other")); n != 0 {
		t.Errorf("%d samples of another service", n)
	}

	s2 := anser.NewServer(silent)
	must(t, rec.Serve(s2))
	l, err := s2.Listen("127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() { defer close(done); s2.Serve(l) }()
	t.Cleanup(func() { s2.Close(); <-done })
	debug, err := anser.Dial(l.Addr().String(), silent)
	must(t, err)
	defer debug.Close()
	reply, err := anser.Call[route.RecentReply](t.Context(), debug, route.RecentMethod, &route.RecentRequest{Service: "test"})
	if err != nil || len(reply.Calls) < 3 || reply.Calls[0].Metadata["user"] != "u1" || !slices.Equal(reply.Keys, []string{"tenant"}) {
		t.Errorf("%s gives %+v, %v", route.RecentMethod, reply, err)
	}
}

func TestDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for a known time
		in := []registry.Instance{
			{Service: "test", ID: "a", Address: "h:1", Version: "1"},
			{Service: "test", ID: "b", Address: "h:2", Version: "2"},
		}
		var calls []route.Sample
		for i := range 1000 {
			calls = append(calls, route.Sample{
				Time: time.Unix(int64(i), 0), Method: "T.M", Address: "h:1", Keys: []string{"user"},
				Metadata: map[string]string{"user": strings.Repeat("u", i%50)},
			})
		}
		calls = append(calls, route.Sample{Method: "T.M", Failed: true}, route.Sample{Method: "T.M", Address: "gone:1"})
		try := func(rules string) *route.Report {
			t.Helper()
			d, err := route.Parse([]byte(`{"rules":` + rules + `}`))
			must(t, err)
			return route.DryRun(&d.Rules, calls, in)
		}
		if r := try(`{}`); r.Calls != 1000 || r.Gone != 1 || r.Moved != 0 {
			t.Errorf("without rules: %+v", r)
		}
		if r := try(`{"split":[{"percent":20,"to":{"version":"2"}}]}`); r.Moved < 130 || r.Moved > 270 || len(r.Moves) != 1 || r.Moves[0].From != "a" || !slices.Equal(r.Moves[0].To, []string{"b"}) {
			t.Errorf("a share of 20 %%: %+v", r)
		}
		if r := try(`{"conditions":[{"to":{"version":"3"},"strict":true}]}`); r.Failed != 1000 || len(r.Effects) != 1 || len(r.Effects[0].Instances) != 0 {
			t.Errorf("nobody left: %d calls failed, effects %+v", r.Failed, r.Effects)
		}
		if r := try(`{"instances":[{"match":{"id":"a"},"state":"draining"}]}`); r.Moved != 1000 {
			t.Errorf("draining: %d moved", r.Moved)
		}
		if r := try(`{"mocks":[{"when":{"metadata":{"user":""}},"reply":{}}]}`); r.Mocked != 20 {
			t.Errorf("mock: %d calls, want 20", r.Mocked)
		}
		if r := try(`{"faults":[{"percent":1,"abort":true,"until":"2000-01-01T00:00:10Z"}]}`); r.Faulted != 1000 {
			t.Errorf("fault: %d calls", r.Faulted)
		}
		time.Sleep(time.Minute)
		if r := try(`{"faults":[{"percent":1,"abort":true,"until":"2000-01-01T00:00:10Z"}]}`); r.Faulted != 0 {
			t.Errorf("a fault that is over: %d calls", r.Faulted)
		}
		if r := try(`{"conditions":[{"when":{"metadata":{"role":"x"}},"to":{"id":"b"}}]}`); !slices.Equal(r.Unknown, []string{"role"}) {
			t.Errorf("unknown keys: %v", r.Unknown)
		}
	})
}
