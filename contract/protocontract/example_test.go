package protocontract_test

import (
	"fmt"
	"log"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anser-rpc/anser/contract/protocontract"
)

func ExampleFromFiles() {
	s := protocontract.FromFiles(durationpb.File_google_protobuf_duration_proto)
	for _, f := range s.Message("google.protobuf.Duration").Fields {
		fmt.Println(f.Name, f.Type)
	}
	// Output:
	// seconds int64
	// nanos int32
}

// A service whose contract is Go gets a protobuf file, for clients of other languages.
func ExampleToFiles() {
	set, err := protocontract.ToFiles(goContract("Orders", message("shop.Order", field("Text", "string"))))
	if err != nil {
		log.Fatal(err)
	}
	m := set.File[0].Service[0].Method[0]
	fmt.Println(set.File[0].GetName(), m.GetName(), m.GetInputType())
	// Output: anser_services.proto Do .Order
}
