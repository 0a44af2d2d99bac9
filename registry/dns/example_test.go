package dns_test

import (
	"fmt"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry/dns"
)

func ExampleScheme() {
	// The addresses of a name with a port; a name without one is looked up as SRV records.
	c, err := anser.Dial("dns:///arith.shop.internal:8972", dns.Scheme(), anser.NoSnapshot())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(c.Status().Target)
	// Output: dns:///arith.shop.internal:8972
}
