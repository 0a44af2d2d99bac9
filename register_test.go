package anser_test

import (
	"testing"

	"github.com/anser-rpc/anser"
)

// Arith is a service.
type Arith struct{}

// Mul multiplies.
func (*Arith) Mul(in *Args, out *Reply) error {
	out.C = in.A * in.B
	return nil
}

func TestRegisterNilPointer(t *testing.T) {
	s := anser.NewServer(silent)
	if err := s.Register((*Arith)(nil)); err != nil {
		t.Fatal(err) // its methods can do without a receiver
	}
	if _, ok := s.Stats().Methods["Arith.Mul"]; !ok {
		t.Error(s.Stats().Methods)
	}
}
