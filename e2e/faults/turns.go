package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// The protocols in which clients call a gateway.
const (
	overAnser = "anser"
	overGRPC  = "grpc"
	overJSON  = "json"
)

// allProtocols are used in turns by clients of a gateway.
var allProtocols = []string{overAnser, overGRPC, overJSON}

// routeKey is the key of metadata, or header, by which calls are routed.
const routeKey = "x-to"

// turn calls a gateway in one protocol.
type turn struct {
	caller
	over  string
	close func() error
}

func newTurn(over string, c config, s *client) (turn, error) {
	c.Target = strings.TrimPrefix(c.Target, "tcp://")
	switch over {
	case overAnser:
		return turn{anserCaller{client: s.Client, to: c.Service}, over, func() error { return nil }}, nil
	case overGRPC:
		g, err := newGRPCCaller(c, "Ledger", &s.attempts)
		if err != nil {
			return turn{}, err
		}
		return turn{g, over, g.close}, nil
	case overJSON:
		j := newJSONCaller(c, &s.attempts)
		return turn{j, over, j.close}, nil
	}
	return turn{}, fmt.Errorf("there is no protocol %q", over)
}

// turns makes each call in the next of several protocols.
type turns struct {
	all  []turn
	next atomic.Uint64
}

func newTurns(c config, s *client) (*turns, error) {
	t := new(turns)
	for _, over := range c.Over {
		one, err := newTurn(over, c, s)
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		t.all = append(t.all, one)
	}
	return t, nil
}

// turnError is an error of a call, with the protocol that it was made in.
type turnError struct {
	turn
	err error
}

// Error returns the text.
func (e *turnError) Error() string { return e.over + ": " + e.err.Error() }

// Unwrap returns the error of the protocol.
func (e *turnError) Unwrap() error { return e.err }

func (t *turns) call(ctx context.Context, idempotent bool, in *entry) (*entry, error) {
	one := t.all[t.next.Add(1)%uint64(len(t.all))]
	out, err := one.call(ctx, idempotent, in)
	if err != nil {
		return nil, &turnError{one, err}
	}
	return out, nil
}

func (t *turns) outcome(err error) (ledger.Outcome, anser.Code) {
	if e, ok := errors.AsType[*turnError](err); ok {
		return e.turn.outcome(e.err)
	}
	return ledger.Unknown, anser.CodeOf(err)
}

func (t *turns) hold(ctx context.Context, n int) (wait func() error) { return t.all[0].hold(ctx, n) }

func (t *turns) close() error {
	var failed []error
	for _, one := range t.all {
		failed = append(failed, one.close())
	}
	return errors.Join(failed...)
}

// unknown makes calls of a method that no service has, in each protocol, and returns how many were
// not refused.
func (s *client) unknown(value json.RawMessage) (others int, err error) {
	var calls int
	if err := json.Unmarshal(value, &calls); err != nil {
		return 0, err
	}
	t, ok := s.caller.(*turns)
	if !ok {
		return 0, errors.New("this client calls no gateway")
	}
	const method = "Ledger.Nonsense"
	for range calls {
		for _, one := range t.all {
			known := true
			switch c := one.caller.(type) {
			case anserCaller:
				_, err := anser.Call[entry](context.Background(), c.client, method, heldEntry())
				known = anser.OutcomeOf(err) != anser.Refused // a full gateway does not look at the name
			case *grpcCaller:
				err := c.conns[0].Invoke(context.Background(), "/Ledger/Nonsense", heldEntry(), new(entry))
				known = grpcstatus.Code(err) != codes.Unimplemented
			case *jsonCaller:
				fault := c.once(context.Background(), c.addresses[0], method, heldEntry(), new(entry))
				known = fault == nil || fault.status != http.StatusNotFound || fault.outcome != ledger.Refused
			}
			if known {
				others++
			}
		}
	}
	return others, nil
}
