package doctor_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func TestProcess(t *testing.T) {
	sick := anser.NewServer(silent, anser.NoSignals())
	anser.Handle(sick, "Arith.Mul", func(context.Context, *arith.Args) (*arith.Reply, error) {
		return nil, anser.Refuse(anser.Unavailable, "not \x1b[2Jnow")
	})
	at := listen(t, sick)
	c, err := anser.Dial(serve(t)+","+at, silent, anser.NoSnapshot(), anser.Balancer(balance.RoundRobin()), anser.OutlierDetection{Time: time.Minute, MaxTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := anser.NewServer(silent, anser.NoSignals())
	if err := route.ServeExplain(s, map[string]*anser.Client{"arith": c}); err != nil {
		t.Fatal(err)
	}
	debug := listen(t, s)
	services := []doctor.Service{{Name: "arith", Methods: []string{"Arith.Add", "Arith.Mul"}}, {Name: "other"}}
	ask := func(services ...doctor.Service) *doctor.Group { return patient.Process(t.Context(), debug, services) }

	g := ask(services...)
	expect(t, g, "clients", doctor.Pass, "calls of arith can go to all instances")
	without(t, g, doctor.Warn, doctor.Fail)
	expect(t, ask(services[1]), "clients", doctor.Note, "no client for the services")

	for deadline := time.Now().Add(time.Minute); c.Status().Health[anser.InstanceEjected] == 0; {
		if _, err := anser.Call[arith.Reply](t.Context(), c, "Arith.Mul", &arith.Args{A: 1, B: 2}); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the instance was not ejected")
		}
	}
	g = ask(services...)
	expect(t, g, "breakers", doctor.Warn, at+" of arith is ejected")
	if len(g.Findings) != 1 {
		t.Errorf("the finding is not said once:\n%s", text(g))
	}
	expect(t, patient.Process(t.Context(), serve(t), services), "clients", doctor.Warn, "does not explain its clients", "route.ServeExplain")
	expect(t, patient.Process(t.Context(), unused(t), services), "clients", doctor.Fail, "cannot be asked")
	expect(t, patient.Process(t.Context(), "gopher://x:1", services), "clients", doctor.Fail, "unknown scheme")
}

// A breaker is open for one method only.
func TestProcessWithOpenBreaker(t *testing.T) {
	sick := anser.NewServer(silent, anser.NoSignals())
	anser.Handle(sick, "Arith.Mul", func(context.Context, *arith.Args) (*arith.Reply, error) {
		return nil, anser.Errorf(anser.Internal, "broken")
	})
	at := listen(t, sick)
	c, err := anser.Dial(at+","+serve(t), silent, anser.NoSnapshot(), anser.Balancer(balance.RoundRobin()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); c.Status().Health[anser.BreakerOpened] == 0; {
		anser.Call[arith.Reply](t.Context(), c, "Arith.Mul", &arith.Args{A: 1, B: 2})
		if time.Now().After(deadline) {
			t.Fatal("the breaker did not open")
		}
	}
	s := anser.NewServer(silent, anser.NoSignals())
	if err := route.ServeExplain(s, map[string]*anser.Client{"arith": c}); err != nil {
		t.Fatal(err)
	}
	g := patient.Process(t.Context(), listen(t, s), []doctor.Service{{Name: "arith", Methods: []string{"Arith.Add", "Arith.Mul"}}})
	expect(t, g, "breakers", doctor.Warn, "the breaker of "+at+" of arith is open, for ")
	if len(g.Findings) != 1 {
		t.Errorf("%s", text(g))
	}
}

// A process says which instances its client does not reach, and that rules cannot be read.
func TestProcessWithBadInstances(t *testing.T) {
	reg := registry.NewMemory()
	for id, at := range map[string]string{"good": serve(t), "dead": unused(t)} {
		if err := reg.Register(t.Context(), registry.Instance{Service: "arith", ID: id, Address: at}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := reg.Save(t.Context(), registry.Document{Name: "rules/arith", Data: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	scheme := registry.Scheme{Name: "test", Open: func(*url.URL) (registry.Resolver, string, error) { return reg, "arith", nil }}
	c, err := anser.Dial("test://h:1/arith", scheme, silent, anser.NoSnapshot(), route.Rules(), anser.Balancer(balance.RoundRobin()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := anser.NewServer(silent, anser.NoSignals())
	if err := route.ServeExplain(s, map[string]*anser.Client{"arith": c}); err != nil {
		t.Fatal(err)
	}
	at, g := listen(t, s), new(doctor.Group)
	for deadline := time.Now().Add(time.Minute); ; {
		for range 2 { // an explanation takes a turn too
			anser.Call[arith.Reply](t.Context(), c, "Arith.Mul", &arith.Args{A: 1, B: 2})
		}
		g = patient.Process(t.Context(), at, []doctor.Service{{Name: "arith", Methods: []string{"Arith.Mul"}}})
		if said := text(g); time.Now().After(deadline) || strings.Contains(said, "does not reach dead") && strings.Contains(said, "newer rules") {
			break
		}
	}
	expect(t, g, "instances", doctor.Warn, "the process does not reach dead of arith")
	expect(t, g, "rules", doctor.Warn, "newer rules of arith cannot be used")
}
