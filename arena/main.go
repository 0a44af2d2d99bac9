//go:build linux

// Arena compares RPC frameworks: it builds the peers of the folder peers, starts their servers and
// clients in turn, and measures both from outside. See README.md and CONTRACT.md.
package main

import (
	"os"

	"github.com/anser-rpc/anser/arena/internal/command"
)

func main() {
	os.Exit(command.Main(os.Args[1:]))
}
