package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// A gateway in front of a service of plain Go types.
func Example() {
	r, quiet := registry.NewMemory(), anser.Logger(slog.New(slog.DiscardHandler))
	s := anser.NewServer(anser.Announce(r, registry.Instance{Service: "arith"}), anser.NoSignals(), quiet)
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *struct{ A, B int }) (*struct{ C int }, error) {
		return &struct{ C int }{in.A * in.B}, nil
	})
	at, _ := net.Listen("tcp", "127.0.0.1:0")
	go s.Serve(at)
	defer s.Close()

	g, err := gateway.New(new(gateway.Config), gateway.Options{
		Registry: r, Server: []anser.ServerOption{anser.NoSignals()}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	door, _ := net.Listen("tcp", "127.0.0.1:0")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- g.Serve(ctx, door) }()

	for len(g.Stats().Services) == 0 || len(g.Stats().Services[0].Methods) == 0 { // it asks the instance
		time.Sleep(time.Millisecond)
	}
	resp, err := http.Post("http://"+door.Addr().String()+"/arith/Arith.Mul", "application/json", strings.NewReader(`{"A": 7, "B": 8}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	io.Copy(writer{}, resp.Body)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	stop()
	fmt.Println(<-ended)
	// Output:
	// {"C":56}
	// <nil>
}

type writer struct{}

func (writer) Write(b []byte) (int, error) { return fmt.Println(string(b)) }
