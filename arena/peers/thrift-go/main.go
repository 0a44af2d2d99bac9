// Command thrift-go is a peer of the arena: Apache Thrift with its binary or its compact protocol.
package main

import (
	"flag"
	"fmt"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/anser-rpc/anser/arena/workload"
)

const name = "thrift-go"

// bufferBytes is that of a transport, in each direction: the message of 581 bytes is one write and
// one read. The framed transport writes the length of a frame and its content one by one: it needs
// the buffered one below it, and copies once more.
const bufferBytes = 8 << 10

func main() {
	p := peer{protocol: protocols["binary"]}
	newProgram(&p).Main()
}

func newProgram(p *peer) *workload.Program {
	return &workload.Program{Name: name, Flags: p.flags, Serve: p.serve, Open: p.open}
}

// peer is the program with the flags of its own.
type peer struct{ protocol thrift.TProtocolFactory }

var protocols = map[string]thrift.TProtocolFactory{
	"binary":  thrift.NewTBinaryProtocolFactoryConf(nil),
	"compact": thrift.NewTCompactProtocolFactoryConf(nil),
}

func (p *peer) flags(f *flag.FlagSet) {
	f.Func("protocol", "binary (default) or compact", func(s string) error {
		if protocols[s] == nil {
			return fmt.Errorf("%q: use binary or compact", s)
		}
		p.protocol = protocols[s]
		return nil
	})
}
