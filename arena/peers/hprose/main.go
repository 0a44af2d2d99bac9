// Command hprose is a peer of the arena: Hprose over TCP.
package main

import "github.com/anser-rpc/anser/arena/workload"

const name = "hprose"

// The names of the methods.
const (
	methodSay = "Hello_Say"
	methodAdd = "MathService_Add"
)

func main() {
	newProgram().Main()
}

func newProgram() *workload.Program { return &workload.Program{Name: name, Serve: serve, Open: open} }
