package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/mcp"
	"github.com/anser-rpc/anser/protocols"
)

// A server offers one of its methods as a tool at /mcp, and a client of the protocol calls it.
func Example() {
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.New(mcp.Options{Allow: []string{"Arith.*"}}))
	s := anser.NewServer(protocols.All(protocols.Handler(mux)))
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *args) (*reply, error) { return &reply{in.A * in.B}, nil }, anser.Idempotent())
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l)
	defer s.Close()

	ctx := context.Background()
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(ctx, &sdk.StreamableClientTransport{Endpoint: "http://" + l.Addr().String() + "/mcp"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer agent.Close()
	tools, err := agent.ListTools(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range tools.Tools {
		fmt.Println(t.Name, t.Annotations.IdempotentHint)
	}
	out, err := agent.CallTool(ctx, &sdk.CallToolParams{Name: "Arith_Mul", Arguments: json.RawMessage(`{"A": 7, "B": 8}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Content[0].(*sdk.TextContent).Text)
	// Output:
	// Arith_Mul true
	// {"C":56}
}
