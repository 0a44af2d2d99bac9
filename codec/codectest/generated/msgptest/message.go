// Package msgptest has types that msgp generates code for.
package msgptest

//go:generate go tool msgp -io=false -tests=false -file message.go -o message_gen.go

// Person has what a codec may alias or allocate.
type Person struct {
	Name    string            `msg:"name"`
	Photo   []byte            `msg:"photo"`
	Tags    map[string]string `msg:"tags"`
	Friends []Person          `msg:"friends"`
	Work    *Address          `msg:"work"`
}

// Address is a part of a Person.
type Address struct {
	Street string `msg:"street"`
	Number uint16 `msg:"number"`
}
