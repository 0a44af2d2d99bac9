// Package desk has a contract that is a Go interface, with every shape of method.
package desk

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anser-rpc/anser"
)

// Desk answers questions.
//
//anser:service office.Desk
type Desk interface {
	// Ask asks a question.
	Ask(ctx context.Context, in *Question) (*Answer, error)
	// Price may be asked again.
	//
	//anser:idempotent
	Price(ctx context.Context, in *Question, out *Answer) error
	// DivMod divides.
	DivMod(ctx context.Context, a, b int) (q, r int, err error)
	// Now has no argument, and results without names.
	Now(ctx context.Context) (time.Time, *durationpb.Duration, error)
	// Set has no result.
	Set(ctx context.Context, name string, values map[string][]float64, err *Answer) error
	//anser:oneway
	Note(ctx context.Context, in *Question) error
	Watch(ctx context.Context, in *Question, out anser.Sender[Answer]) error
	Collect(ctx context.Context, in anser.Receiver[Question]) (*Answer, error)
	Talk(ctx context.Context, st *anser.Stream[Answer, Question]) error
}

// Question is asked.
type Question struct {
	Text  string `json:"text" msgpack:"text"`
	About []Topic
	Extra map[string]int
	Inner *Question
}

// Topic is what a question is about.
type Topic struct{ Name string }

// Answer is what comes back.
type Answer struct{ Text string }
