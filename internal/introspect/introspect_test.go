package introspect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/introspect"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// connect starts a server, and returns a client of it.
func connect(t *testing.T, opts []anser.ServerOption, methods ...string) *anser.Client {
	t.Helper()
	s := anser.NewServer(append(opts, anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)))...)
	for _, name := range methods {
		anser.Handle(s, name, func(context.Context, *struct{ A int }) (*struct{ B string }, error) { return nil, nil })
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		<-served
	})
	return c
}

func TestContracts(t *testing.T) {
	c := connect(t, nil, "Arith.Mul", "Arith.Add", "shop.v1.Cart.Put")
	methods, err := introspect.Methods(t.Context(), c)
	if err != nil || len(methods) != 3 {
		t.Fatal(methods, err)
	}
	contracts, err := introspect.Contracts(t.Context(), c, methods)
	if err != nil || len(contracts) != 2 {
		t.Fatal(contracts, err)
	}
	for service, method := range map[string]string{"Arith": "Add", "shop.v1.Cart": "Put"} {
		if of := contracts[service].Schema.Service(service); of == nil || of.Method(method) == nil {
			t.Errorf("%s: %+v", service, contracts[service])
		}
	}
	contracts, err = introspect.Contracts(t.Context(), c, []anser.MethodInfo{{Name: "Nothing.Here"}})
	if err != nil || len(contracts) != 0 {
		t.Error(contracts, err)
	}
}

func TestNothingIsPublished(t *testing.T) {
	c := connect(t, []anser.ServerOption{anser.NoDescribe()}, "Arith.Mul")
	if _, err := introspect.Methods(t.Context(), c); !errors.Is(err, introspect.ErrNothing) {
		t.Error(err)
	}
}

// A server that publishes too much is not believed.
func TestLimits(t *testing.T) {
	var names []string
	for i := range introspect.MaxMethods + 1 {
		names = append(names, fmt.Sprintf("S%d.M", i))
	}
	c := connect(t, nil, names...)
	if _, err := introspect.Methods(t.Context(), c); err == nil || !strings.Contains(err.Error(), "it publishes 4097 methods: at most 4096") {
		t.Error(err)
	}
	methods := make([]anser.MethodInfo, introspect.MaxContracts+1)
	for i := range methods {
		methods[i].Name = names[i]
	}
	if _, err := introspect.Contracts(t.Context(), c, methods); err == nil || !strings.Contains(err.Error(), "methods of over 256 services") {
		t.Error(err)
	}
}
