// Command kitex is a peer of the arena: Kitex with multiplexed connections, or with its pool of
// connections that carry one call at a time.
package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/cloudwego/kitex/pkg/klog"

	"github.com/anser-rpc/anser/arena/workload"
)

const name = "kitex"

// The transports of --transport.
const (
	transportMux  = "mux"
	transportPool = "pool"
)

func main() {
	// Kitex logs its start, its end and what it thinks of its settings. What fails is returned by
	// Run and by each call.
	klog.SetOutput(io.Discard)
	var p peer
	newProgram(&p).Main()
}

func newProgram(p *peer) *workload.Program {
	return &workload.Program{Name: name, Flags: p.flags, Serve: p.serve, Open: p.open}
}

// peer is the program with the flags of its own.
type peer struct {
	transport string
	observe   bool
}

func (p *peer) flags(f *flag.FlagSet) {
	p.transport = transportMux
	f.BoolVar(&p.observe, "observe", false, "let obs-opentelemetry trace 1 % of the calls and measure all of them; not used by the arena")
	f.Func("transport", "mux: calls share connections (default); pool: a connection carries one call at a time", func(s string) error {
		if s != transportMux && s != transportPool {
			return fmt.Errorf("%q: use %s or %s", s, transportMux, transportPool)
		}
		p.transport = s
		return nil
	})
}
