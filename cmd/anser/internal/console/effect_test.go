package console_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/route"
)

// The calls before a change of rules are compared with those since, by groups of instances.
func TestEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 2, 4)
		const service = "shop.service-000"
		effect := func(query string) *model.Effects {
			t.Helper()
			out := get[model.Effects](t, s, "/api/services/"+service+"/effect"+query)
			return &out
		}
		save := func(base uint64, percent float64, comment string) uint64 {
			t.Helper()
			rules := route.RuleSet{Split: []route.SplitRule{{Name: "half", Percent: percent, To: route.Select{Version: route.Patterns{"1.1"}}}}}
			d, err := route.Save(t.Context(), s.registry, service, base, rules, "ada", comment)
			if err != nil {
				t.Fatal(err)
			}
			return d.Version
		}
		advance(s, 40*time.Second)
		if e := effect(""); len(e.Changes) != 0 || e.Shown == nil || !e.Shown.Time.IsZero() || e.Shown.By != "version" || len(e.Shown.Groups) != 3 || e.Shown.Groups[0].Since.Rate == 0 {
			t.Fatalf("before any change: %+v", e.Shown)
		}
		version := save(0, 50, "new disk")
		advance(s, time.Second)
		// Since then, instances of version 1.1 fail half of their calls, and are slower.
		began := time.Now()
		for _, n := range []int{1, 3} {
			s.sim.Hook(n, simulate.Hook{Change: func(d *admin.Document) { fail(d, time.Since(began)) }})
		}
		advance(s, 20*time.Second)
		e := effect("")
		if len(e.Changes) != 1 || e.Shown == nil || e.Shown.Version != version || e.Shown.Former != 0 || e.Shown.Author != "ada" || e.Shown.Comment != "new disk" || e.Shown.By != "version" || !e.Shown.Ended.IsZero() {
			t.Fatalf("%+v", e)
		}
		all, old, next := e.Shown.Groups[0], e.Shown.Groups[1], e.Shown.Groups[2]
		if all.Name != "" || all.Instances != 4 || old.Name != "1.0" || next.Name != "1.1" || next.Instances != 2 {
			t.Fatalf("%+v", e.Shown.Groups)
		}
		if !near(all.Before.Rate, old.Before.Rate+next.Before.Rate) || all.Before.Span < 30*time.Second || all.Before.Span > time.Minute+10*time.Second || all.Since.Span < 15*time.Second || all.Since.Span > 21*time.Second {
			t.Errorf("%+v", all)
		}
		if next.Before.Failed != 0 || next.Since.Failed < 10 || old.Since.Failed > 2*old.Before.Failed || next.Since.P99 < 4*next.Before.P99 || old.Since.P99 != old.Before.P99 {
			t.Errorf("%+v, %+v", old, next)
		}
		if c := e.Shown.Callers; c.Before.Known || c.Since.Known {
			t.Errorf("no process calls the service, but the callers say %+v", c)
		}
		if e := effect("?by=zone").Shown; e.By != "zone" || len(e.Groups) != 4 {
			t.Errorf("%+v", e)
		}
		if e := effect("?by=instance").Shown; len(e.Groups) != 5 || e.Groups[1].Instances != 1 {
			t.Errorf("%+v", e)
		}
		if e := effect("?by=tag:none").Shown; len(e.Groups) != 2 || e.Groups[1].Name != "" || e.Groups[1].Instances != 4 {
			t.Errorf("%+v", e)
		}
		// The next change ends the comparison.
		second := save(version, 0, "back")
		advance(s, 10*time.Second)
		if e := effect(""); len(e.Changes) != 2 || e.Shown.Version != second || e.Shown.Former != version || e.Shown.Groups[2].Before.Failed == 0 {
			t.Errorf("%+v", e.Shown)
		}
		if old := effect("?version=1").Shown; old.Ended.IsZero() || old.Groups[0].Since.Span > all.Since.Span+2*time.Second {
			t.Errorf("%+v", old)
		}
		if e := effect("?version=7"); e.Shown != nil {
			t.Errorf("a version that is not known: %+v", e.Shown)
		}
	})
}

// What callers see is compared, too: rules act there.
func TestEffectForCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 2, 3)
		const service = "pay.service-001"
		advance(s, 20*time.Second)
		if _, err := route.Save(t.Context(), s.registry, service, 0, route.RuleSet{}, "ada", ""); err != nil {
			t.Fatal(err)
		}
		advance(s, 10*time.Second)
		e := get[model.Effects](t, s, "/api/services/"+service+"/effect").Shown
		want := get[model.ServiceDetail](t, s, "/api/services/"+service).Callers[0].Rate
		if c := e.Callers; e.Version != 1 || !near(c.Before.Rate, want) || !near(c.Since.Rate, want) || c.Since.P99 == 0 {
			t.Errorf("version %d, %+v, want a rate of %.1f", e.Version, c, want)
		}
	})
}

// Calls count once, however rarely processes are read and however often the console looks.
func TestEffectWhileProcessesAreReadRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openQuiet(t, 0.02)
		for n := range 8 {
			// An answer takes a moment, as real ones do.
			q.sim.Hook(n, simulate.Hook{Change: func(*admin.Document) { time.Sleep(5 * time.Millisecond) }})
		}
		const service = "pay.service-001"
		defer q.view(t, "/api/events")()
		q.pass(2*time.Minute, true)
		if every := get[model.System](t, q, "/api/system").Interval; every < 4*time.Second {
			t.Fatalf("processes are read every %v", every)
		}
		want := get[model.ServiceDetail](t, q, "/api/services/"+service)
		if _, err := route.Save(t.Context(), q.registry, service, 0, route.RuleSet{}, "ada", ""); err != nil {
			t.Fatal(err)
		}
		for _, passed := range []time.Duration{10 * time.Second, 30 * time.Second} {
			q.pass(passed, true)
			e := get[model.Effects](t, q, "/api/services/"+service+"/effect").Shown
			for name, c := range map[string]struct {
				of   model.EffectGroup
				rate float64
			}{"instances": {e.Groups[0], want.Service.Rate}, "callers": {e.Callers, want.Callers[0].Rate}} {
				if c.of.Before.Span < 50*time.Second || c.of.Before.Span > 75*time.Second || c.of.Since.Span <= 0 || c.of.Since.Span > 40*time.Second {
					t.Errorf("%s: %v before and %v since the change", name, c.of.Before.Span, c.of.Since.Span)
				}
				if !near(c.of.Before.Rate, c.rate) || !near(c.of.Since.Rate, c.rate) {
					t.Errorf("%s: %.1f calls per second before and %.1f since the change, want %.1f", name, c.of.Before.Rate, c.of.Since.Rate, c.rate)
				}
			}
		}
	})
}

// fail adds calls that have failed slowly to a document.
func fail(d *admin.Document, passed time.Duration) {
	n := uint64(100 * passed.Seconds())
	times := admin.Histogram{Scale: d.Methods[0].Codes[0].Times.Scale, First: d.Methods[0].Codes[0].Times.First + 40, Counts: []uint64{n}, Count: n}
	d.Methods[0].Codes = append(d.Methods[0].Codes, admin.Series{Code: anser.Internal, Times: times})
}
