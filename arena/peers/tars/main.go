// Command tars is a peer of the arena: TarsGo.
package main

import (
	"sync"

	"github.com/TarsCloud/TarsGo/tars"
	"github.com/TarsCloud/TarsGo/tars/util/rogger"

	"github.com/anser-rpc/anser/arena/workload"
)

const name = "tars"

func main() {
	newProgram().Main()
}

func newProgram() *workload.Program { return &workload.Program{Name: name, Serve: serve, Open: open} }

// quiet ends what TarsGo says of itself, once it has its configuration: logs go to the standard
// output, its errors are returned as well, and an end in order is one of them. There is no server
// for its statistics.
var quiet = sync.OnceFunc(func() {
	rogger.SetLevel(rogger.OFF)
	tars.ReportStat = func(*tars.Message, int32, int32, int32) {}
})
