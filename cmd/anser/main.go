// Anser is the command for services that use Anser: it lists, describes, calls and loads them,
// runs a registry, and demonstrates all of it.
package main

import (
	"os"

	"github.com/anser-rpc/anser/cmd/anser/internal/command"
)

func main() {
	os.Exit(command.Main(os.Args[1:]))
}
