// Command server is etcd itself, for the tests of package etcd to start, kill and start again. Its
// etcd is of a version that go.mod pins, so that the tests need nothing that is not in the module
// cache. It is a module of its own to keep the server out of what package etcd depends on.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
