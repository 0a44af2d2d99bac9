package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// jsonCaller makes calls through gateways in JSON over HTTP, as a program in any language can. It
// does what docs/gateway.md asks of one that knows several gateways: a request that was not sent,
// or that was refused with 503 or 408, goes to the next one, and one whose fate is unknown only if
// the method is idempotent.
type jsonCaller struct {
	client    *http.Client
	addresses []string
	service   string
	timeout   time.Duration
	next      atomic.Uint64
	attempts  *atomic.Int64
}

const (
	jsonAttempts = 5
	jsonPause    = 50 * time.Millisecond
)

func newJSONCaller(c config, attempts *atomic.Int64) *jsonCaller {
	return &jsonCaller{
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}, attempts: attempts,
		addresses: strings.Split(c.Target, ","), service: c.of(), timeout: c.Timeout,
	}
}

// jsonError is an error of a call in JSON.
type jsonError struct {
	status  int // 0: there was no answer
	outcome ledger.Outcome
	code    anser.Code
	text    string
}

// Error returns the text.
func (e *jsonError) Error() string { return e.text }

func (j *jsonCaller) call(ctx context.Context, idempotent bool, in *entry) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	method := string(appendEntry)
	if idempotent {
		method = string(setEntry)
	}
	first, mayHaveRun := j.next.Add(1), false
	for attempt := uint64(0); ; attempt++ {
		out := new(entry)
		fault := j.once(ctx, j.addresses[(first+attempt)%uint64(len(j.addresses))], method, in, out)
		if fault == nil {
			return out, nil
		}
		if mayHaveRun = mayHaveRun || fault.outcome == ledger.Unknown; mayHaveRun {
			fault.outcome = ledger.Unknown // whatever the last attempt says
		}
		if attempt+1 == jsonAttempts || ctx.Err() != nil || !fault.again(idempotent) {
			return nil, fault
		}
		if attempt > 0 { // the first time another gateway is tried at once
			time.Sleep(jsonPause << attempt)
		}
	}
}

// again reports whether the call may be repeated.
func (e *jsonError) again(idempotent bool) bool {
	switch e.outcome {
	case ledger.NotSent:
		return true
	case ledger.Refused:
		return e.status == http.StatusServiceUnavailable || e.status == http.StatusRequestTimeout
	default:
		return idempotent && e.outcome == ledger.Unknown
	}
}

// once makes one attempt.
func (j *jsonCaller) once(ctx context.Context, address, method string, in, out *entry) *jsonError {
	body, err := json.Marshal(in)
	if err != nil {
		return unsent(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/"+j.service+"/"+method, bytes.NewReader(body))
	if err != nil {
		return unsent(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if by, ok := ctx.Deadline(); ok {
		r.Header.Set("Request-Timeout", strconv.FormatFloat(time.Until(by).Seconds(), 'f', 6, 64))
	}
	if j.attempts.Add(1); ctx.Err() != nil {
		return unsent(ctx.Err())
	}
	resp, err := j.client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
			return unsent(err)
		}
		return interrupted(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return interrupted(err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusalOf(resp.StatusCode, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &jsonError{resp.StatusCode, ledger.Unknown, anser.Internal, fmt.Sprintf("the answer %.100q: %v", text, err)}
	}
	return nil
}

func unsent(err error) *jsonError {
	return &jsonError{0, ledger.NotSent, anser.CodeOf(err), "not sent: " + err.Error()}
}

func interrupted(err error) *jsonError {
	code := anser.Unavailable
	if errors.Is(err, context.DeadlineExceeded) {
		code = anser.DeadlineExceeded
	}
	return &jsonError{0, ledger.Unknown, code, err.Error()}
}

// refusalOf returns the error in an answer.
func refusalOf(status int, text []byte) *jsonError {
	e := &jsonError{status, ledger.Unknown, anser.Unknown, fmt.Sprintf("%d %s", status, text)}
	var problem struct{ Code, Outcome string }
	if json.Unmarshal(text, &problem) != nil {
		return e
	}
	for o := ledger.Unknown; o < ledger.OK; o++ {
		if o.String() == strings.ReplaceAll(problem.Outcome, "_", " ") {
			e.outcome = o
		}
	}
	for code := anser.OK; code <= anser.Unauthenticated; code++ {
		if strings.ReplaceAll(code.String(), " ", "_") == problem.Code {
			e.code = code
		}
	}
	return e
}

func (j *jsonCaller) outcome(err error) (ledger.Outcome, anser.Code) {
	if e, ok := errors.AsType[*jsonError](err); ok {
		return e.outcome, e.code
	}
	return ledger.Unknown, anser.CodeOf(err)
}

func (j *jsonCaller) hold(ctx context.Context, n int) (wait func() error) {
	return holdEach(n, func(_ int, in *entry) error {
		if fault := j.once(ctx, j.addresses[0], string(hold), in, new(entry)); fault != nil && ctx.Err() == nil {
			return fault
		}
		return nil
	})
}

func (j *jsonCaller) close() error {
	j.client.CloseIdleConnections()
	return nil
}
