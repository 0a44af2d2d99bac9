// Package validate checks requests before a handler runs, or before they are sent.
package validate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/anser-rpc/anser"
)

// Rule checks messages that do not check themselves. See [Func] and [Structs].
type Rule func(*rules) error

type rules struct {
	types   map[reflect.Type]func(any) error
	structs []func(any) error
}

// Func checks requests of the type *T with f. Several for a type are all asked. f is called by many
// goroutines at once, and must not change or keep the message.
func Func[T any](f func(*T) error) Rule {
	return func(r *rules) error {
		if f == nil {
			return fmt.Errorf("validate.Func[%v]: the function is nil", reflect.TypeFor[T]())
		}
		t := reflect.TypeFor[*T]()
		before := r.types[t]
		r.types[t] = func(m any) error {
			if before == nil {
				return f(m.(*T))
			}
			return errors.Join(before(m), f(m.(*T)))
		}
		return nil
	}
}

// Structs checks every request that is a pointer to a struct with f, as libraries do that read the
// tags of fields. f is called by many goroutines at once, and must not change or keep the message.
func Structs(f func(message any) error) Rule {
	return func(r *rules) error {
		if f == nil {
			return errors.New("validate.Structs: the function is nil")
		}
		r.structs = append(r.structs, f)
		return nil
	}
}

// The methods of messages that check themselves, as protoc-gen-validate generates them.
type (
	all interface{ ValidateAll() error }
	one interface{ Validate() error }
)

// New returns an interceptor that checks requests: by their method ValidateAll if they have it, else by
// their method Validate, and by the rules. All have to agree.
//
// On a server a call whose request is not valid fails with InvalidArgument before the handler runs:
// its outcome is Refused, and it is not tried again. On a client it fails with the same code and is
// not sent. The message of the error has what was said about each field. Streams pass. New fails for
// rules that cannot work.
func New(list ...Rule) (anser.Interceptor, error) {
	r := &rules{types: make(map[reflect.Type]func(any) error)}
	var errs []error
	for _, rule := range list {
		if rule == nil {
			errs = append(errs, errors.New("validate.New: a rule is nil"))
			continue
		}
		errs = append(errs, rule(r))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r.intercept, nil
}

func (r *rules) intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		if inv.Request != nil {
			if err := r.check(inv.Request); err != nil {
				return invalid(inv, err)
			}
		}
		return next(ctx, inv)
	}
}

func (r *rules) check(m any) error {
	var errs []error
	switch m := m.(type) {
	case all:
		errs = append(errs, m.ValidateAll())
	case one:
		errs = append(errs, m.Validate())
	}
	if len(r.types)+len(r.structs) > 0 {
		t := reflect.TypeOf(m)
		if f := r.types[t]; f != nil {
			errs = append(errs, f(m))
		}
		if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
			for _, f := range r.structs {
				errs = append(errs, f(m))
			}
		}
	}
	return errors.Join(errs...)
}

// invalid makes the error of a call whose request is not valid.
func invalid(inv *anser.Invocation, err error) error {
	var parts []string
	collect(err, &parts)
	if len(parts) > maxParts {
		parts = append(parts[:maxParts], fmt.Sprintf("and %d more", len(parts)-maxParts))
	}
	message := "the request is not valid: " + strings.Join(parts, "; ")
	if inv.Server {
		return anser.Refuse(anser.InvalidArgument, "%s", message).WithRetryAfter(anser.RetryNever)
	}
	e := anser.Errorf(anser.InvalidArgument, "%s", message)
	e.Outcome, e.Phase, e.Method = anser.NotSent, anser.PhaseEncode, inv.Method
	return e
}

// maxParts is how many fields a message tells about. A request can have many more that are wrong.
const maxParts = 32

// collect takes an error apart that stands for several.
func collect(err error, parts *[]string) {
	switch e := err.(type) {
	case nil:
		return
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			collect(err, parts)
		}
	case interface{ AllErrors() []error }: // protoc-gen-validate
		for _, err := range e.AllErrors() {
			collect(err, parts)
		}
	default:
		for line := range strings.Lines(err.Error()) { // some libraries write a line for each field
			if line = strings.TrimSpace(line); line != "" {
				*parts = append(*parts, line)
			}
		}
	}
}
