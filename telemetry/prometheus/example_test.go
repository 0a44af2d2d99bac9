package prometheus_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// A server has its metrics on its own port.
func Example() {
	meter := telemetry.New()
	mux := http.NewServeMux()
	mux.Handle("/metrics", prometheus.Handler(meter))
	s := anser.NewServer(meter.Option(), protocols.All(protocols.Handler(mux)))
	anser.Handle(s, "Arith.Add", func(_ context.Context, in *numbers) (*number, error) {
		return &number{in.A + in.B}, nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, err := anser.Call[number](context.Background(), c, "Arith.Add", &numbers{1, 2}); err != nil {
		fmt.Println(err)
		return
	}

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "anser_server_calls_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// anser_server_calls_total{code="OK",method="Arith.Add"} 1
}
