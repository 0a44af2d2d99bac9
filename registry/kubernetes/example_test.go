package kubernetes_test

import (
	"fmt"
	"net/url"

	"github.com/anser-rpc/anser/registry/kubernetes"
)

// A client takes kubernetes.Scheme as an option of anser.Dial; these are the parts of its target.
func ExampleParse() {
	u, err := url.Parse("kubernetes:///shop/arith:grpc")
	if err != nil {
		fmt.Println(err)
		return
	}
	namespace, service, port, err := kubernetes.Parse(u)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("namespace", namespace, "service", service, "port", port)
	// Output: namespace shop service arith port grpc
}
