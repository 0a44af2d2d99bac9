package validate_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/validate"
)

// Transfer validates itself; other types need a function.
type Transfer struct{ Cents int }

// Validate returns an error if the transfer is invalid.
func (t *Transfer) Validate() error {
	if t.Cents <= 0 {
		return errors.New("Cents: want more than 0")
	}
	return nil
}

func Example() {
	checks, err := validate.New(validate.Func(func(name *string) error {
		if *name == "" {
			return errors.New("a name is required")
		}
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	s := anser.NewServer(anser.Intercept(checks), silent)
	anser.Handle(s, "Bank.Transfer", func(context.Context, *Transfer) (*anser.None, error) { return new(anser.None), nil })
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, err = anser.Call[anser.None](context.Background(), c, "Bank.Transfer", &Transfer{Cents: -5})
	if e, ok := errors.AsType[*anser.Error](err); ok {
		fmt.Println(e.Code, "/", e.Outcome, "/", e.Message)
	}
	// Output: invalid argument / refused / the request is not valid: Cents: want more than 0
}
