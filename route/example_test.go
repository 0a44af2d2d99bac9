package route_test

import (
	"fmt"

	"github.com/anser-rpc/anser/route"
)

func Example() {
	_, err := route.Parse([]byte(`{"rules": {"split": [{"percnt": 10, "percent": 10, "to": {"version": "2.*"}}]}}`))
	fmt.Println(err)
	d, err := route.Parse([]byte(`{"rules": {"split": [{"percent": 10, "by": "user", "to": {"version": "2.*"}}]}}`))
	fmt.Println(d.Rules.Split[0].Percent, err)
	// A client that follows the rules in its registry:
	//	anser.Dial("etcd://10.0.0.1:2379/arith", etcd.Scheme(), route.Rules())
	// Output:
	// rules.split[0].percnt: unknown key, did you mean percent?
	// 10 <nil>
}
