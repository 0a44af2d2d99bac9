package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser"
)

// session is what the tools are for one caller.
type session struct {
	server *Server
	source Source
}

// tools returns the tools of the caller by their names.
func (at *session) tools(ctx context.Context) ([]*tool, error) {
	methods, err := at.source.Methods(ctx)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "list the methods: " + err.Error()}
	}
	var list []*tool
	for _, m := range methods {
		if !at.server.Allows(m.Name) {
			continue
		}
		t, err := m.tool()
		if err != nil {
			at.server.o.Logger.Debug("mcp: a method cannot be a tool", "method", m.FullName(), "error", err)
			continue
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *tool) int { return strings.Compare(a.method.FullName(), b.method.FullName()) })
	taken := make(map[string]bool)
	return slices.DeleteFunc(list, func(t *tool) bool {
		twice := taken[t.sdk.Name]
		if taken[t.sdk.Name] = true; twice { // a collision of hashes
			at.server.o.Logger.Warn("mcp: the tool of a method has the name of another one, and is left out", "method", t.method.FullName())
		}
		return twice
	}), nil
}

// listed is tools for a caller that calls none of them.
func (at *session) listed(ctx context.Context) ([]*tool, error) {
	if err := at.count(); err != nil {
		return nil, err
	}
	return at.tools(ctx)
}

// count counts a request that is not the call of a method. Its errors are for clients of MCP.
func (at *session) count() error {
	if err := at.countList(); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "list the methods: " + err.Error()}
	}
	return nil
}

func (at *session) countList() error {
	if c, ok := at.source.(Counter); ok {
		return c.Count()
	}
	return nil
}

// list answers tools/list.
func (at *session) list(ctx context.Context, q *sdk.ListToolsRequest) (sdk.Result, error) {
	if q.Params != nil && q.Params.Cursor != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is unknown: all tools are on one page"}
	}
	at.server.counts.lists.Add(1)
	out := &sdk.ListToolsResult{Tools: []*sdk.Tool{}}
	out.CacheScope = "private"
	if at.server.o.Compact {
		out.Tools = compactTools
		return out, at.count()
	}
	tools, err := at.listed(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		out.Tools = append(out.Tools, t.sdk)
	}
	return out, nil
}

// find returns the handler of a tool of the caller.
func (at *session) find(ctx context.Context, name string) (sdk.ToolHandler, error) {
	if at.server.o.Compact {
		if h := at.compact(name); h != nil {
			return h, nil
		}
		return nil, at.unknown(name)
	}
	tools, err := at.tools(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		if t.sdk.Name == name {
			return func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return at.call(ctx, t, q, q.Params.Arguments), nil
			}, nil
		}
	}
	return nil, at.unknown(name)
}

func (at *session) unknown(name string) error {
	at.server.counts.unknown.Add(1)
	if err := at.count(); err != nil {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q: tools/list has those that you may call", name)}
}

// call calls the method of a tool. All that goes wrong is told to the agent.
func (at *session) call(ctx context.Context, t *tool, q *sdk.CallToolRequest, arguments json.RawMessage) *sdk.CallToolResult {
	message, err := t.message(arguments)
	if err != nil {
		return at.invalid(fmt.Errorf("the arguments do not fit the schema of %s: %w", t.sdk.Name, err))
	}
	at.server.counts.calls.Add(1)
	ctx, cancel := context.WithTimeout(ctx, at.server.o.Timeout)
	defer cancel()
	if t.about.ServerStream {
		return at.stream(ctx, t, q, message)
	}
	reply, err := at.source.Call(ctx, t.method, message, nil)
	switch {
	case err != nil:
		return at.failed(err)
	case t.about.Oneway:
		return text("The message was sent. The method does not answer.")
	case len(reply) > at.server.o.MaxResult:
		return at.failed(fmt.Errorf("the reply has %d bytes, and agents get at most %d: ask for less", len(reply), at.server.o.MaxResult))
	}
	return structured(t.result(reply))
}

// errEnough ends a stream of which no more messages are collected.
var errEnough = errors.New("enough messages")

// maxProgress is the number of bytes of a message in a notification.
const maxProgress = 1024

// stream collects the messages of a stream, and sends each as progress if the client asked for it.
func (at *session) stream(ctx context.Context, t *tool, q *sdk.CallToolRequest, message json.RawMessage) *sdk.CallToolResult {
	var all bytes.Buffer
	n := 0
	token := q.Params.GetProgressToken()
	_, err := at.source.Call(ctx, t.method, message, func(one json.RawMessage) error {
		one = t.result(one)
		if n == at.server.o.MaxMessages || all.Len()+len(one) > at.server.o.MaxResult {
			return errEnough
		}
		if n++; n > 1 {
			all.WriteByte(',')
		}
		all.Write(one)
		if token == nil {
			return nil
		}
		about := string(one)
		if len(about) > maxProgress {
			about = strings.ToValidUTF8(about[:maxProgress], "") + "…"
		}
		return q.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: about})
	})
	enough := errors.Is(err, errEnough)
	if err != nil && !enough {
		r := at.failed(err)
		if n > 0 {
			r.Content = append(r.Content, &sdk.TextContent{Text: fmt.Sprintf("Before that it sent %d messages: [%s]", n, all.String())})
		}
		return r
	}
	return structured(json.RawMessage(fmt.Sprintf(`{"messages":[%s],"complete":%t}`, all.String(), !enough)))
}

// structured returns a result with a value, and its text for clients that do not read values.
func structured(value json.RawMessage) *sdk.CallToolResult {
	r := text(string(value))
	r.StructuredContent = value
	return r
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// invalid returns the result of a call that did not go on.
func (at *session) invalid(err error) *sdk.CallToolResult {
	at.server.counts.invalid.Add(1)
	r := text(err.Error())
	r.IsError = true
	return r
}

// failed returns the result of a call that has failed.
func (at *session) failed(err error) *sdk.CallToolResult {
	at.server.counts.failed.Add(1)
	about := err.Error()
	if e, ok := errors.AsType[*anser.Error](err); ok {
		about = fmt.Sprintf("%s: %s (outcome: %s)", e.Code, e.Message, e.Outcome)
	}
	r := text(about)
	r.IsError = true
	return r
}
