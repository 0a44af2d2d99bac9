// Command validator validates requests with a library that uses struct tags.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/validate"
	"github.com/go-playground/validator/v10"
)

type (
	Account struct {
		Email string `validate:"required,email"`
		Age   int    `validate:"gte=18"`
	}
	Created struct{ ID int }
)

const Create anser.Method[Account, Created] = "Accounts.Create"

func run(out io.Writer) error {
	tags := validator.New(validator.WithRequiredStructEnabled())
	checks, err := validate.New(validate.Structs(tags.Struct))
	if err != nil {
		return err
	}
	s := anser.NewServer(anser.Intercept(checks))
	Create.Handle(s, func(context.Context, *Account) (*Created, error) { return &Created{ID: 1}, nil })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	created, err := Create.Call(context.Background(), c, &Account{Email: "goose@example.org", Age: 21})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "account %d\n", created.ID)

	_, err = Create.Call(context.Background(), c, &Account{Email: "goose", Age: 7})
	if e, ok := errors.AsType[*anser.Error](err); ok {
		fmt.Fprintf(out, "%s, %s: %s\n", e.Code, e.Outcome, e.Message)
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
