package anser_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

func TestErrorf(t *testing.T) {
	err := anser.Errorf(anser.NotFound, "user %d: %w", 7, io.EOF).WithDetails([]byte("x")).WithRetryAfter(time.Second)
	if err.Error() != "user 7: EOF" || !errors.Is(err, anser.NotFound) || errors.Is(err, anser.Internal) || !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err.Outcome != anser.Executed || string(err.Details) != "x" || err.RetryAfter != time.Second || errors.Unwrap(err) != io.EOF {
		t.Errorf("%+v", err)
	}
	var e *anser.Error
	if wrapped := fmt.Errorf("while at it: %w", err); !errors.As(wrapped, &e) || e != err || !errors.Is(wrapped, err) || anser.CodeOf(wrapped) != anser.NotFound {
		t.Error(wrapped)
	}
}

func TestCodeOf(t *testing.T) {
	for want, err := range map[anser.Code]error{
		anser.OK:               nil,
		anser.NotFound:         anser.NotFound,
		anser.Aborted:          fmt.Errorf("x: %w", anser.Aborted),
		anser.Internal:         fmt.Errorf("x: %w", anser.Errorf(anser.Internal, "y")),
		anser.DeadlineExceeded: fmt.Errorf("x: %w", context.DeadlineExceeded),
		anser.Canceled:         context.Canceled,
		anser.Unknown:          io.EOF,
	} {
		if got := anser.CodeOf(err); got != want {
			t.Errorf("%v has the code %s, want %s", err, got, want)
		}
	}
	if o := anser.OutcomeOf(fmt.Errorf("x: %w", anser.Refuse(anser.Unavailable, "y"))); o != anser.Refused {
		t.Error(o)
	}
	if o := anser.OutcomeOf(io.EOF); o != anser.OutcomeUnknown {
		t.Error(o)
	}
}

func TestNamesInErrors(t *testing.T) {
	for got, want := range map[fmt.Stringer]string{
		anser.OK: "ok", anser.Unauthenticated: "unauthenticated", anser.Code(99): "code 99",
		anser.NotSent: "not sent", anser.Executed: "executed", anser.Outcome(99): "outcome 99",
		anser.PhaseNone: "", anser.PhaseDecode: "decode", anser.Phase(99): "phase 99",
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	data, err := json.Marshal(map[string]any{"code": anser.NotFound, "outcome": anser.OutcomeUnknown})
	if string(data) != `{"code":"not found","outcome":"unknown"}` || err != nil {
		t.Error(string(data), err)
	}
}

// The caller gets exactly the error that the handler returns.
func TestErrorsTravel(t *testing.T) {
	codes := map[string]error{
		"text":     errors.New("plain text"),
		"wrapped":  fmt.Errorf("outer: %w", anser.Errorf(anser.AlreadyExists, "inner").WithDetails([]byte{1, 2, 0})),
		"code":     anser.OutOfRange,
		"deadline": context.DeadlineExceeded,
		"canceled": context.Canceled,
		"advice":   anser.Errorf(anser.ResourceExhausted, "busy").WithRetryAfter(1500 * time.Millisecond),
		"never":    anser.Errorf(anser.ResourceExhausted, "broken").WithRetryAfter(anser.RetryNever),
		"tiny":     anser.Errorf(anser.ResourceExhausted, "busy").WithRetryAfter(time.Nanosecond),
		"ok":       anser.Errorf(anser.OK, "strange"),
		"huge":     anser.Errorf(anser.ResourceExhausted, "busy").WithRetryAfter(1 << 62),
		"invalid":  errors.New("caf\xe9"),
	}
	for c := anser.Canceled; c <= anser.Unauthenticated; c++ {
		codes[c.String()] = anser.Errorf(c, "of the code %s", c)
	}
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Fail.With": func(ctx context.Context, in *[]byte) (*[]byte, error) { return nil, codes[string(*in)] }})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	for name, sent := range codes {
		_, err := call(context.Background(), c, "Fail.With", name)
		e := fault(t, err)
		want := anser.CodeOf(sent)
		if name == "ok" {
			want = anser.Unknown // an error is never ok
		}
		if e.Code != want || e.Outcome != anser.Executed || !e.Remote || e.Phase != anser.PhaseWait {
			t.Errorf("%s: %+v", name, e)
		}
		if want := strings.ToValidUTF8(sent.Error(), "\uFFFD"); e.Message != want {
			t.Errorf("%s: message %q, want %q", name, e.Message, want)
		}
		var original *anser.Error
		if errors.As(sent, &original) && string(e.Details) != string(original.Details) {
			t.Errorf("%s: details %q", name, e.Details)
		}
	}
	for name, want := range map[string]time.Duration{"advice": 1500 * time.Millisecond, "never": anser.RetryNever, "tiny": time.Millisecond, "text": 0} {
		_, err := call(context.Background(), c, "Fail.With", name)
		if e := fault(t, err); e.RetryAfter != want {
			t.Errorf("%s: retry after %v, want %v", name, e.RetryAfter, want)
		}
	}
	_, err := call(context.Background(), c, "Fail.With", "huge")
	if e := fault(t, err); e.RetryAfter < 24*time.Hour {
		t.Errorf("retry after %v", e.RetryAfter)
	}
}

// If a handler returns the error of a downstream call, the error is that of the handler, which ran.
func TestErrorOfADownstreamCall(t *testing.T) {
	network := new(ansertest.Network)
	second := dial(t, "nobody:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failfast))
	third := dial(t, "a:1", anser.Dialer(network.Dial))
	serve(t, network.Listen("a:1"), map[string]handler{
		"First.Hop": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			return anser.Call[[]byte](ctx, second, "Second.Hop", in)
		},
		"First.Bad": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			_, err := anser.Call[[]byte](ctx, third, "No.Such", in)
			return nil, fmt.Errorf("asking further: %w", err)
		},
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	_, err := call(context.Background(), c, "First.Hop", "")
	if e := wantFault(t, err, anser.Unavailable, anser.Executed); !strings.Contains(e.Message, "call Second.Hop at nobody:1") {
		t.Error(e.Message)
	}
	_, err = call(context.Background(), c, "First.Bad", "")
	if e := wantFault(t, err, anser.Unimplemented, anser.Executed); !strings.HasPrefix(e.Message, "asking further: call No.Such at a:1") {
		t.Error(e.Message)
	}
}

// The text of an error names the call, the instance, the cause and the outcome.
func TestErrorText(t *testing.T) {
	e := &anser.Error{Code: anser.Unavailable, Outcome: anser.OutcomeUnknown, Message: "the connection was lost", Method: "Arith.Mul", Address: "a:1"}
	if want := "call Arith.Mul at a:1: the connection was lost (unavailable, may have run)"; e.Error() != want {
		t.Errorf("%s\nwant %s", e, want)
	}
	for range 8 {
		e.Attempts = append(e.Attempts, anser.AttemptInfo{Address: "a:1", Outcome: anser.NotSent, Duration: 1234567})
	}
	if text := e.Error(); !strings.HasSuffix(text, "after 8 attempts:"+strings.Repeat(" a:1 not sent after 1.23ms;", 5)+" and 3 more") {
		t.Error(text)
	}
	for outcome, want := range map[anser.Outcome]string{anser.NotSent: "not sent", anser.Refused: "refused, did not run", anser.Executed: "executed"} {
		if e := (&anser.Error{Outcome: outcome, Method: "A.B"}); !strings.Contains(e.Error(), ", "+want+")") {
			t.Error(e)
		}
	}
}

// The error of a call that was forwarded keeps its code, details and outcome.
func TestForwardError(t *testing.T) {
	if err := anser.ForwardError(nil); err != nil {
		t.Error(err)
	}
	if err := anser.ForwardError(io.EOF); err != io.EOF {
		t.Error(err)
	}
	s := foreignServer(t)
	var fault error
	anser.Handle(s, "Words.Pass", func(context.Context, *word) (*word, error) { return nil, anser.ForwardError(fault) })
	f := openForeign(t, s, nil)
	for _, c := range []struct {
		in      *anser.Error
		outcome anser.Outcome
	}{
		{&anser.Error{Code: anser.NotFound, Outcome: anser.Executed, Method: "Down.Stream", Remote: true, Message: "none", Details: []byte("d")}, anser.Executed},
		{&anser.Error{Code: anser.Unavailable, Outcome: anser.OutcomeUnknown, Method: "Down.Stream", Message: "lost"}, anser.OutcomeUnknown},
		{&anser.Error{Code: anser.Unavailable, Outcome: anser.NotSent, Method: "Down.Stream", Message: "nobody there"}, anser.Refused},
	} {
		fault = c.in
		_, _, err := f.call(anser.ProtocolRequest{Method: "Words.Pass"}, word{})
		var got *anser.Error
		if !errors.As(err, &got) || got.Code != c.in.Code || got.Outcome != c.outcome || string(got.Details) != string(c.in.Details) || !strings.HasSuffix(got.Message, c.in.Message) {
			t.Errorf("%v: %+v", c.in, got)
		}
	}
}
