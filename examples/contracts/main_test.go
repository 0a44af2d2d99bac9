package main

import (
	"testing"

	"github.com/anser-rpc/anser/examples/internal/example"
)

func Test(t *testing.T) { example.Check(t, run) }
