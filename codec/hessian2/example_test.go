package hessian2_test

import (
	"fmt"

	"github.com/anser-rpc/anser/codec/hessian2"
)

// Point is a class that a service in Java knows.
type Point struct{ X, Y int32 }

// JavaClassName implements hessian2.POJO.
func (*Point) JavaClassName() string { return "geo.Point" }

func Example() {
	c := hessian2.New(new(Point))
	payload, err := c.Append(nil, &Point{X: 7, Y: 8})
	fmt.Println(c.Name(), err)

	var got Point
	err = c.Unmarshal(payload, &got)
	fmt.Println(got, err)
	// Output:
	// hessian2 <nil>
	// {7 8} <nil>
}
