//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "arena: run it on Linux: it measures processes through /proc")
	os.Exit(1)
}
