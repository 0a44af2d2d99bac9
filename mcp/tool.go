package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonschema2 "github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/jsonschema"
)

// tool is a method as a tool.
type tool struct {
	method     *Method
	about      *contract.Method
	sdk        *sdk.Tool
	input      *jsonschema2.Resolved
	wrapsInput bool // the message is the member jsonschema.Value of the arguments
	wrapsReply bool
}

// tool returns the method as a tool, or why it cannot be one.
func (m *Method) tool() (*tool, error) {
	m.once.Do(func() { m.made, m.problem = newTool(m) })
	return m.made, m.problem
}

var (
	errNotDescribed = errors.New("its contract does not describe it")
	errClientStream = errors.New("its client sends several messages, for which tools have no form")
)

func newTool(m *Method) (*tool, error) {
	t := &tool{method: m, about: m.about()}
	switch {
	case t.about == nil:
		return nil, errNotDescribed
	case t.about.ClientStream:
		return nil, errClientStream
	}
	in, wrapped, err := jsonschema.OfContract(m.Contract, t.about.Request, jsonschema.Request)
	if err != nil {
		return nil, err
	}
	t.wrapsInput = wrapped
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var parsed jsonschema2.Schema
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("the schema of its requests: %w", err)
	}
	if t.input, err = parsed.Resolve(nil); err != nil {
		return nil, fmt.Errorf("the schema of its requests: %w", err)
	}
	t.sdk = &sdk.Tool{Name: toolName(m.FullName()), Title: m.Name, Description: t.description(), InputSchema: json.RawMessage(text)}
	t.sdk.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: m.ReadOnly, IdempotentHint: m.ReadOnly || m.Idempotent}
	if t.about.Oneway {
		return t, nil
	}
	out, wrapped, err := jsonschema.OfContract(m.Contract, t.about.Reply, jsonschema.Reply)
	if err != nil {
		return nil, err
	}
	t.wrapsReply = wrapped
	if t.about.ServerStream {
		out = collected(out)
	}
	if text, err = json.Marshal(out); err != nil {
		return nil, err
	}
	t.sdk.OutputSchema = json.RawMessage(text)
	return t, nil
}

// collected returns the schema of the messages of a stream.
func collected(one *jsonschema.Schema) *jsonschema.Schema {
	message := *one
	defs := message.Defs
	message.Defs = nil
	return &jsonschema.Schema{
		Type: jsonschema.Types{jsonschema.Object}, Required: []string{"messages", "complete"}, Defs: defs,
		Properties: jsonschema.Members{
			{Name: "messages", Schema: &jsonschema.Schema{Type: jsonschema.Types{jsonschema.Array}, Items: &message}},
			{Name: "complete", Schema: &jsonschema.Schema{Type: jsonschema.Types{jsonschema.Boolean}, Description: "Whether the method has sent all messages; otherwise there were more."}},
		},
	}
}

// description returns what the contract says of the method.
func (t *tool) description() string {
	text := t.about.Doc
	if text == "" {
		text = "Calls the method " + t.method.Name + "."
	}
	if t.about.Deprecated {
		text = "Deprecated. " + text
	}
	if t.about.ServerStream {
		text += "\n\nIt answers with several messages, which are collected."
	}
	return text
}

// message returns the message of arguments, or what is wrong with them.
func (t *tool) message(arguments json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(arguments)) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	if err := codec.CheckJSON(arguments); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return nil, err
	}
	if err := t.input.Validate(value); err != nil {
		return nil, err
	}
	if !t.wrapsInput {
		return arguments, nil
	}
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &outer); err != nil {
		return nil, err
	}
	return outer[jsonschema.Value], nil
}

// result returns a reply as an object.
func (t *tool) result(reply json.RawMessage) json.RawMessage {
	if !t.wrapsReply {
		return reply
	}
	return json.RawMessage(`{"` + jsonschema.Value + `":` + string(reply) + `}`)
}
