// Command dubbo-go is a peer of the arena: Dubbo-go with its Triple protocol.
package main

import (
	"github.com/dubbogo/gost/log/logger"

	// What a client and a server of Triple with a direct address need, out of imports.
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/available"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/random"
	_ "dubbo.apache.org/dubbo-go/v3/filter/echo"
	_ "dubbo.apache.org/dubbo-go/v3/protocol/triple"
	_ "dubbo.apache.org/dubbo-go/v3/proxy/proxy_factory"

	"github.com/anser-rpc/anser/arena/workload"
)

const name = "dubbo-go"

func main() {
	// Dubbo-go logs to the standard output. What fails is returned as well.
	logger.SetLoggerLevel("fatal")
	newProgram().Main()
}

func newProgram() *workload.Program { return &workload.Program{Name: name, Serve: serve, Open: open} }
