package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tools of the compact mode. With hundreds of methods, a tool for each would fill the context
// of a model before it has read the question.
const (
	searchName   = "search_methods"
	describeName = "describe_method"
	callName     = "call_method"
)

var compactTools = []*sdk.Tool{
	{
		Name: searchName, Description: "Finds methods by words of their names and comments. Without words it returns the first methods of all.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"Words that the name or the comment of a method has."},` +
			`"limit":{"type":"integer","minimum":1,"maximum":100,"description":"The number of methods to return; 20 by default."}},"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"methods":{"type":"array","items":{"type":"object","properties":` +
			`{"method":{"type":"string"},"description":{"type":"string"}},"required":["method"]}},"more":{"type":"integer","description":"The number of further methods."}},"required":["methods","more"]}`),
	},
	{
		Name: describeName, Description: "Describes a method: its comment, the JSON Schema of its arguments and of its result, and what calls do.",
		Annotations:  &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"method":{"type":"string","description":"A name that ` + searchName + ` has returned."}},"required":["method"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"method":{"type":"string"},"description":{"type":"string"},"inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"type":"object"}},"required":["method","inputSchema"]}`),
	},
	{
		Name: callName, Description: "Calls a method. " + describeName + " says what it takes, and what it returns.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"method":{"type":"string","description":"A name that ` + searchName + ` has returned."},` +
			`"arguments":{"type":"object","description":"The arguments, as the inputSchema of the method has them."}},"required":["method"],"additionalProperties":false}`),
	},
}

// found is a method that was searched for.
type found struct {
	Method      string `json:"method"`
	Description string `json:"description,omitempty"`
}

// described is a method as describe_method returns it.
type described struct {
	Method       string               `json:"method"`
	Description  string               `json:"description,omitempty"`
	InputSchema  any                  `json:"inputSchema"`
	OutputSchema any                  `json:"outputSchema,omitempty"`
	Annotations  *sdk.ToolAnnotations `json:"annotations,omitempty"`
}

// compact returns the handler of a tool of the compact mode, or nil.
func (at *session) compact(name string) sdk.ToolHandler {
	switch name {
	case searchName:
		return at.search
	case describeName:
		return at.describe
	case callName:
		return at.callNamed
	}
	return nil
}

// compactArguments are those of all three tools.
type compactArguments struct {
	Query     *string         `json:"query"`
	Limit     *int            `json:"limit"`
	Method    *string         `json:"method"`
	Arguments json.RawMessage `json:"arguments"`
}

// arguments decodes the arguments of a tool, and refuses all but the named ones.
func arguments(q *sdk.CallToolRequest, may ...string) (*compactArguments, error) {
	a := new(compactArguments)
	if len(q.Params.Arguments) == 0 {
		return a, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(q.Params.Arguments, &keys); err != nil {
		return nil, fmt.Errorf("the arguments of %s are not an object: %w", q.Params.Name, err)
	}
	for key := range keys {
		if !slices.Contains(may, key) {
			return nil, fmt.Errorf("%s has no argument %q: it has %s", q.Params.Name, key, strings.Join(may, " and "))
		}
	}
	if err := json.Unmarshal(q.Params.Arguments, a); err != nil {
		return nil, fmt.Errorf("the arguments do not fit the schema of %s: %w", q.Params.Name, err)
	}
	return a, nil
}

func (at *session) search(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	a, err := arguments(q, "query", "limit")
	if err != nil {
		return at.invalid(err), nil
	}
	limit := 20
	if a.Limit != nil {
		if limit = *a.Limit; limit < 1 || limit > 100 {
			return at.invalid(fmt.Errorf("the limit %d is not in the range from 1 to 100", limit)), nil
		}
	}
	tools, err := at.listed(ctx)
	if err != nil {
		return nil, err
	}
	var words []string
	if a.Query != nil {
		words = strings.Fields(strings.ToLower(*a.Query))
	}
	out := struct {
		Methods []found `json:"methods"`
		More    int     `json:"more"`
	}{Methods: []found{}}
	for _, t := range tools {
		if text := strings.ToLower(t.method.FullName() + "\n" + t.about.Doc); slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		if len(out.Methods) == limit {
			out.More++
			continue
		}
		first, _, _ := strings.Cut(t.about.Doc, "\n")
		out.Methods = append(out.Methods, found{t.method.FullName(), first})
	}
	return value(out)
}

func (at *session) describe(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	t, _, refused, err := at.named(ctx, q, "method")
	if t == nil {
		return refused, err
	}
	if err := at.count(); err != nil {
		return nil, err
	}
	return value(described{t.method.FullName(), t.sdk.Description, t.sdk.InputSchema, t.sdk.OutputSchema, t.sdk.Annotations})
}

func (at *session) callNamed(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	t, a, refused, err := at.named(ctx, q, "method", "arguments")
	if t == nil {
		return refused, err
	}
	return at.call(ctx, t, q, a.Arguments), nil
}

// named returns the tool of the method that the arguments name, or the result that there is none.
func (at *session) named(ctx context.Context, q *sdk.CallToolRequest, may ...string) (*tool, *compactArguments, *sdk.CallToolResult, error) {
	a, err := arguments(q, may...)
	if err == nil && a.Method == nil {
		err = fmt.Errorf("the argument method is missing: %s returns names", searchName)
	}
	if err != nil {
		return nil, nil, at.invalid(err), nil
	}
	tools, err := at.tools(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, t := range tools {
		if t.method.FullName() == *a.Method {
			return t, a, nil, nil
		}
	}
	at.server.counts.unknown.Add(1)
	if err := at.count(); err != nil {
		return nil, nil, nil, err
	}
	r := text(fmt.Sprintf("there is no method %q that you may call: %s finds methods", *a.Method, searchName))
	r.IsError = true
	return nil, nil, r, nil
}

// value returns a result with a value.
func value(v any) (*sdk.CallToolResult, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return structured(text), nil
}
