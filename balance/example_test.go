package balance_test

import (
	"fmt"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

func Example() {
	endpoints := []*balance.Endpoint{
		balance.NewEndpoint(registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Weight: 300}),
		balance.NewEndpoint(registry.Instance{Service: "arith", Address: "10.0.0.2:8972"}), // the default, 100
	}
	picker := balance.Weighted().Build(endpoints)
	calls := make(map[string]int)
	for range 400 {
		endpoint := picker.Pick(&balance.Request{Method: "Arith.Mul"})
		endpoint.Begin()
		calls[endpoint.Instance().Address]++
		endpoint.End(0, 0) // the time now, and how long it took
	}
	fmt.Println(calls)
	// Output: map[10.0.0.1:8972:300 10.0.0.2:8972:100]
}
