package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/internal/introspect"
	"github.com/anser-rpc/anser/internal/rawjson"
	"github.com/anser-rpc/anser/registry"
)

// userKey is the key of the metadata with the name of the user of the console. It is a claim, as
// all metadata are.
const userKey = "console-user"

// Limits of calls.
const (
	defaultTimeout = 5 * time.Second
	maxTimeout     = time.Minute
	maxStream      = 10 * time.Minute
	describeWithin = 3 * time.Second
)

// callRequest is the body of api/call, and the first line of api/call/stream.
type callRequest struct {
	Service  string            `json:"service"`
	Method   string            `json:"method"`
	Instance string            `json:"instance,omitempty"` // key of the only instance to call
	Request  json.RawMessage   `json:"request,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Timeout  time.Duration     `json:"timeout,omitempty"` // nanoseconds
}

// callAnswer is the answer of api/call.
type callAnswer struct {
	Reply    json.RawMessage     `json:"reply,omitempty"`
	Error    *callError          `json:"error,omitempty"`
	Outcome  string              `json:"outcome"` // "ok", or the outcome of the error
	Attempts []anser.AttemptInfo `json:"attempts"`
	Trailers anser.Metadata      `json:"trailers,omitempty"`
	Time     time.Duration       `json:"time"`
	Copy     snippets            `json:"copy"`
}

// callError is the error of a call.
type callError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Address string `json:"address,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Remote  bool   `json:"remote"`
}

func (q *callRequest) check(most time.Duration) error {
	if err := checkService(q.Service); err != nil {
		return err
	}
	switch {
	case q.Method == "" || len(q.Method) > registry.MaxText:
		return mistake("the method has no name: use Service.Method")
	case q.Timeout < 0 || q.Timeout > most:
		return mistake("timeout: %v: use up to %v", q.Timeout, most)
	case len(q.Request) == 0:
		q.Request = json.RawMessage("{}")
	}
	if q.Timeout == 0 {
		q.Timeout = min(defaultTimeout, most)
	}
	for key := range q.Metadata {
		if strings.EqualFold(key, userKey) {
			return mistake("metadata: %s has the name of the user: leave it out", userKey)
		}
	}
	return nil
}

// metadata returns the metadata of a call with the name of the user.
func (q *callRequest) metadata(user string) anser.Metadata {
	md := make(anser.Metadata)
	for key, value := range q.Metadata {
		md.Set(key, value)
	}
	md.Set(userKey, user)
	return md
}

// dial returns a client for the service, or for the instance that is named.
func (c *Changes) dial(ctx context.Context, q *callRequest) (*anser.Client, error) {
	to := q.Service
	if q.Instance != "" {
		list, err := registry.List(ctx, c.d.Registry, q.Service)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(list, func(in registry.Instance) bool { return in.Key() == q.Instance })
		if at < 0 {
			return nil, &respond.Error{Status: http.StatusNotFound, Text: fmt.Sprintf("%s has no instance %q", q.Service, q.Instance), Advice: "it may have left: look at the list again"}
		}
		to = list[at].Address
	}
	client, err := c.d.Dial(to)
	if err != nil {
		return nil, asMistake(err)
	}
	return client, nil
}

// planCall plans a call. The audit log has its method and size, not what is in it.
func (c *Changes) planCall(w http.ResponseWriter, r *http.Request) (*plan, error) {
	var q callRequest
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	if err := q.check(maxTimeout); err != nil {
		return nil, err
	}
	client, err := c.dial(r.Context(), &q)
	if err != nil {
		return nil, err
	}
	user := access.From(r.Context()).Name
	return &plan{
		entry: audit.Entry{Action: "call", Service: q.Service, Subject: q.Method, Text: fmt.Sprintf("a request of %d bytes", len(q.Request))},
		limit: q.Timeout + patient,
		do: func(ctx context.Context) (any, error) {
			defer client.Close()
			return c.call(anser.WithMetadata(ctx, q.metadata(user)), client, &q)
		},
		drop: func() { client.Close() },
	}, nil
}

// call makes a call. A failed call is an answer, not an error.
func (c *Changes) call(ctx context.Context, client *anser.Client, q *callRequest) (*callAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	var reply json.RawMessage
	out := &callAnswer{Outcome: "ok", Attempts: []anser.AttemptInfo{}, Copy: c.snippets(q)}
	began := time.Now()
	err := client.Call(ctx, q.Method, &q.Request, &reply, anser.Codec(rawjson.Codec{}), anser.Trailer(&out.Trailers))
	out.Time = time.Since(began)
	if err == nil {
		out.Reply = reply
		return out, nil
	}
	out.Error, out.Outcome = errorOf(err), anser.OutcomeOf(err).String()
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Attempts != nil {
		out.Attempts = e.Attempts
	}
	return out, nil
}

func errorOf(err error) *callError {
	e, ok := errors.AsType[*anser.Error](err)
	if !ok {
		return &callError{Code: anser.CodeOf(err).String(), Message: err.Error()}
	}
	return &callError{e.Code.String(), e.Message, e.Address, e.Phase.String(), e.Remote}
}

// schema is the answer of api/schema/{service}/{method}.
type schema struct {
	anser.MethodInfo
	Kind string `json:"kind"` // "call", "server stream", "client stream" or "stream"
}

// readSchema asks an instance of a service what a method takes and returns.
func (c *Changes) readSchema(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := callRequest{Service: r.PathValue("service"), Method: r.PathValue("method")}
	if err := q.check(maxTimeout); err != nil {
		return nil, err
	}
	client, err := c.dial(r.Context(), &q)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(r.Context(), describeWithin)
	defer cancel()
	list, err := introspect.Methods(ctx, client, anser.WithFailMode(anser.Failfast))
	if err != nil {
		return nil, &respond.Error{Status: http.StatusBadGateway, Text: err.Error(), Advice: "look at the instances of the service"}
	}
	for _, m := range list {
		if m.Name == q.Method || slices.Contains(m.Aliases, q.Method) {
			return schema{m, kindOf(&m)}, nil
		}
	}
	return nil, &respond.Error{Status: http.StatusNotFound, Text: fmt.Sprintf("%s has no method %q", q.Service, q.Method)}
}

func kindOf(m *anser.MethodInfo) string {
	if !m.Stream {
		return "call"
	}
	return introspect.StreamKind(m)
}
