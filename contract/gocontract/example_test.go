package gocontract_test

import (
	"fmt"
	"reflect"
	"time"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/gocontract"
)

type Item struct{ Text string }

type Order struct {
	Items []Item
	Due   time.Time
}

func Example() {
	s := &contract.Schema{Kind: contract.Go}
	order := s.Message(gocontract.Message(s, reflect.TypeFor[Order]()))
	for _, f := range order.Fields {
		fmt.Println(f.Name, f.Type)
	}
	// Output:
	// Items repeated gocontract_test.Item
	// Due time
}
