// Package arith is the demo's service for arithmetic: plain Go structs and methods.
package arith

import (
	"context"

	"github.com/anser-rpc/anser"
)

// Service is the name under which instances are registered.
const Service = "arith"

// The methods.
const (
	Add anser.Method[Args, Reply] = "Arith.Add"
	Mul anser.Method[Args, Reply] = "Arith.Mul"
)

// Args are the operands.
type Args struct{ A, B int }

// Reply is the result.
type Reply struct{ C int }

// Arith does the arithmetic.
type Arith struct{}

// Add returns A + B.
func (*Arith) Add(_ context.Context, in *Args) (*Reply, error) { return &Reply{in.A + in.B}, nil }

// Mul returns A × B.
func (*Arith) Mul(_ context.Context, in *Args) (*Reply, error) { return &Reply{in.A * in.B}, nil }

// Register serves the methods on s.
func Register(s *anser.Server) error { return s.Register(new(Arith), anser.Idempotent()) }
