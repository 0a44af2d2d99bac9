package change_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/change"
	"github.com/anser-rpc/anser/cmd/anser/internal/operate"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

type canary struct {
	Service, Version, State, Why, By string
	Share                            float64
}

// watch runs a console's watch until the test ends.
func (s *site) watch(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.changes.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func (s *site) figure(rate, failed float64, p99 time.Duration, down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures = []change.Figures{
		{Instance: registry.Instance{ID: "one", Version: "1.0"}, Known: true, Rate: 100},
		{Instance: registry.Instance{ID: "two", Version: "2.0"}, Known: true, Rate: rate, Failed: failed, P99: p99, Down: down},
	}
}

func (s *site) share(t *testing.T) float64 {
	t.Helper()
	d, err := route.Load(t.Context(), s.registry, "arith")
	if err != nil {
		t.Fatal(err)
	}
	rule, ok := operate.Canary(&d.Rules)
	if !ok {
		return -1
	}
	return rule.Percent
}

// enter puts an instance without a process into a registry.
func enter(t *testing.T, reg *registry.Memory, id, version string) {
	t.Helper()
	if err := reg.Register(t.Context(), registry.Instance{Service: "arith", ID: id, Version: version, Address: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
}

const begin = `{"service":"arith","version":"2.0","share":10,"bounds":{"errors":0.1,"p99":50000000},"reason":"a test"}`

func TestCanaryOfAUser(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	for _, bad := range []string{
		`{"service":"arith","share":10,"bounds":{"errors":0.1}}`,
		`{"service":"arith","version":"2.0","tag":"a=b","share":10,"bounds":{"errors":0.1}}`,
		`{"service":"arith","tag":"a","share":10,"bounds":{"errors":0.1}}`,
		`{"service":"arith","version":"2.0","share":10}`,
		`{"service":"arith","version":"2.0","share":10,"bounds":{"errors":2}}`,
		`{"service":"arith","version":"2.0","share":101,"bounds":{"errors":0.1}}`,
		`{"service":"arith","version":"2.0","share":10,"bounds":{"errors":0.1},"until":"2200-01-01T00:00:00Z"}`,
		`{"service":"arith","version":"2.0","share":10,"bounds":{"errors":0.1},"step":{"share":1,"every":1,"to":50}}`,
	} {
		v.expect(400, "POST", "/api/canary", bad, nil)
	}
	v.expect(200, "POST", "/api/canary", begin, nil)
	if got := s.share(t); got != 10 {
		t.Errorf("the share is %v", got)
	}
	v.expect(200, "POST", "/api/canary", strings.Replace(begin, "10", "25", 1), nil)
	d, err := route.Load(t.Context(), s.registry, "arith")
	if err != nil {
		t.Fatal(err)
	}
	if rule, _ := operate.Canary(&d.Rules); rule.Percent != 25 || time.Until(rule.Until) > time.Hour || time.Until(rule.Until) < 50*time.Minute {
		t.Errorf("clients have the rule %+v", rule)
	}
	var got canary
	v.expect(200, "GET", "/api/canary/arith", "", &got)
	if got.State != "running" || got.Share != 25 || got.By != "this machine" {
		t.Errorf("the canary is %+v", got)
	}
	v.expect(200, "DELETE", "/api/canary/arith?reason=enough", "", nil)
	v.expect(404, "DELETE", "/api/canary/arith", "", nil)
	var list []canary
	v.expect(200, "GET", "/api/canary", "", &list)
	if len(list) != 1 || list[0].State != "ended" || list[0].Why != "ended by this machine: enough" || s.share(t) != 0 {
		t.Errorf("the canaries are %+v, and the share is %v", list, s.share(t))
	}
}

// A canary without instances is refused before anything is written: nothing would judge it.
func TestCanaryWithoutInstances(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	for body, want := range map[string]string{
		strings.Replace(begin, `"arith"`, `"nothing"`, 1):           `the service "nothing" has no instances`,
		strings.Replace(begin, `"2.0"`, `"3.0"`, 1):                 `no instance of "arith" has the version "3.0"`,
		strings.Replace(begin, `"version":"2.0"`, `"tag":"a=b"`, 1): `no instance of "arith" has the tag "a=b"`,
	} {
		var got struct{ Error, Advice string }
		v.expect(409, "POST", "/api/canary", body, &got)
		if got.Error != want || !strings.Contains(got.Advice, "start instances") {
			t.Errorf("%s: %s: %s", body, got.Error, got.Advice)
		}
	}
	var list []canary
	v.expect(200, "GET", "/api/canary", "", &list)
	if len(list) != 0 || s.share(t) != -1 {
		t.Errorf("the canaries are %+v, and the share is %v", list, s.share(t))
	}
	// The registry decides, so instances that have just come are enough.
	serve(t, s.registry, "three", "3.0")
	awaitInstances(t, s.registry, 3)
	v.expect(200, "POST", "/api/canary", strings.Replace(begin, `"2.0"`, `"3.0"`, 1), nil)
}

// A change that loses against others each time says so, and what to do.
func TestCanaryOfManyWriters(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	s.busy.Store(true)
	var got struct{ Error, Advice string }
	v.expect(409, "POST", "/api/canary", begin, &got)
	if !strings.Contains(got.Error, "changed meanwhile") || !strings.Contains(got.Advice, "send your change again") {
		t.Errorf("%s: %s", got.Error, got.Advice)
	}
	s.busy.Store(false)
	v.expect(200, "POST", "/api/canary", begin, nil)
}

// A canary follows rules that are restored: it has their share, or ends.
func TestCanaryOfRestoredRules(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	v.expect(200, "POST", "/api/canary", begin, nil)
	v.expect(200, "POST", "/api/canary", strings.Replace(begin, "10", "25", 1), nil)
	v.expect(200, "POST", "/api/rules/arith/restore", `{"version":1,"on":2}`, nil)
	var got canary
	v.expect(200, "GET", "/api/canary/arith", "", &got)
	if got.State != "running" || got.Share != 10 || s.share(t) != 10 {
		t.Errorf("the canary is %+v, and the share is %v", got, s.share(t))
	}
	v.expect(200, "POST", "/api/rules/arith/restore", `{"version":0,"on":3}`, nil)
	v.expect(200, "GET", "/api/canary/arith", "", &got)
	if got.State != "ended" || got.Why != "the rules went back to no rules" || s.share(t) != -1 {
		t.Errorf("the canary is %+v, and the share is %v", got, s.share(t))
	}
}

// A canary returns by itself when a bound is passed, also if the console that began it has ended.
func TestCanaryReturns(t *testing.T) {
	for want, figure := range map[string]func(*site){
		"20.0 % of its calls failed, and the bound is 10.0 %": func(s *site) { s.figure(50, 10, time.Millisecond, false) },
		"its p99 was 60ms, and the bound is 50ms":             func(s *site) { s.figure(50, 0, 60*time.Millisecond, false) },
		"none of its instances can be reached":                func(s *site) { s.figure(0, 0, 0, true) },
	} {
		t.Run(want, func(t *testing.T) {
			s := system(t)
			s.figure(50, 1, time.Millisecond, false)
			stop := s.watch(t)
			v := s.viewer("")
			v.expect(200, "POST", "/api/canary", begin, nil)
			stop()
			next := start(t, s.registry, s.options())
			figure(next)
			next.watch(t)
			var got canary
			eventually(t, "the return", func() bool {
				v.expect(200, "GET", "/api/canary/arith", "", &got)
				return got.State == "returned"
			})
			if got.Why != want || s.share(t) != 0 {
				t.Errorf("because %s; the share is %v", got.Why, s.share(t))
			}
			d, err := route.Load(t.Context(), s.registry, "arith")
			if err != nil || d.Author != access.Console || !strings.Contains(d.Comment, want) {
				t.Errorf("by %s: %s, %v", d.Author, d.Comment, err)
			}
			if data, err := os.ReadFile(next.log); err != nil || !strings.Contains(string(data), `"user":"console","self":true,"action":"canary"`) {
				t.Errorf("the audit log does not say that the console did it: %s, %v", data, err)
			}
		})
	}
}

// The registry is not asked while no canary runs: it says that one begins, in another console.
func TestNoCanaryRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := registry.NewMemory()
		enter(t, reg, "two", "2.0")
		s, other := newSite(t, reg), newSite(t, reg)
		s.figure(50, 50, 0, false) // all of its calls fail
		stop := s.watch(t)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := s.loads.Load(); n != 1 {
			t.Errorf("%d documents were read", n)
		}
		if status, text := other.post("/api/canary", begin); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := s.share(t); got != 0 {
			t.Errorf("a bound is passed, and the share is %v", got)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		before := s.loads.Load()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := s.loads.Load() - before; n != 0 {
			t.Errorf("%d documents were read after its end", n)
		}
		stop()
	})
}

// Time passes in a bubble, which has no sockets: a canary of the registry is enough.
func TestCanaryOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := registry.NewMemory()
		enter(t, reg, "two", "2.0")
		s := newSite(t, reg)
		s.figure(50, 0, time.Millisecond, false)
		stop := s.watch(t)
		send := func(body string) {
			t.Helper()
			if status, text := s.post("/api/canary", body); status != 200 {
				t.Fatalf("%d %s", status, text)
			}
		}
		send(strings.Replace(begin, `"reason"`, `"step":{"share":20,"every":60000000000,"to":50},"reason"`, 1))
		for _, want := range []float64{10, 30, 50, 50} {
			if got := s.share(t); got != want {
				t.Errorf("the share is %v, want %v", got, want)
			}
			time.Sleep(70 * time.Second)
		}
		time.Sleep(time.Hour)
		if got := s.share(t); got != 0 {
			t.Errorf("after its time the share is %v", got)
		}

		// Nothing is known of its instances.
		send(begin)
		s.mu.Lock()
		s.figures = nil
		s.mu.Unlock()
		time.Sleep(50 * time.Second)
		if got := s.share(t); got != 10 {
			t.Errorf("blind for a moment: the share is %v", got)
		}
		time.Sleep(30 * time.Second)
		if got := s.share(t); got != 0 {
			t.Errorf("blind for more than a minute: the share is %v", got)
		}

		// One bad second is not enough, and few calls say nothing.
		s.figure(50, 50, 0, false)
		send(begin)
		time.Sleep(1500 * time.Millisecond)
		s.figure(0.5, 0.5, time.Minute, false)
		time.Sleep(time.Minute)
		if got := s.share(t); got != 10 {
			t.Errorf("after a bad second the share is %v", got)
		}
		stop()
	})
}
