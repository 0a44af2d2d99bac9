package openapi

import (
	"reflect"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/jsonschema"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// The types of content.
const (
	typeJSON    = "application/json"
	typeLines   = "application/x-ndjson"
	typeEvents  = "text/event-stream"
	typeProblem = "application/problem+json"
	typeAny     = "*/*"
)

// The names of the components that are not types of messages.
const (
	problemName  = "Problem"
	timeoutName  = "RequestTimeout"
	traceName    = "Traceparent"
	keyName      = "IdempotencyKey"
	repeatedName = "AnserRepeated"
	matchName    = "IfNoneMatch"
	sameName     = "NotModified"
	socketName   = "WebSocket"
)

const (
	parametersAt = "#/components/parameters/"
	responsesAt  = "#/components/responses/"
)

// socketProtocol is the subprotocol of streams over WebSocket.
const socketProtocol = "anser.json"

// addProblem adds the schemas of errors.
func (b *builder) addProblem() {
	key := typeKey{fixed: problemName}
	b.problem = b.types.Ref(key, reply, problemName, func() *Schema {
		s := b.goStruct(reflect.TypeFor[exchange.Problem](), reply, hint{})
		s.Description = "An error, as in RFC 9457."
		for name, doc := range map[string]string{
			"title": "The code in words.", "status": "The status of HTTP.", "detail": "What went wrong.",
			"code":    "The code of the error, as in gRPC.",
			"outcome": "Whether the method may have run: only a call that was refused has had no effect for sure.",
			"details": "What the method adds to the error, in base64.",
		} {
			if p := s.Property(name); p != nil {
				p.Description = doc
			}
		}
		s.Property("code").Enum = codeNames()
		for _, o := range []anser.Outcome{anser.Refused, anser.Executed, anser.OutcomeUnknown} {
			s.Property("outcome").Enum = append(s.Property("outcome").Enum, o.String())
		}
		if p := s.Property("details"); p != nil {
			p.ContentEncoding = "base64"
		}
		return s
	})
	b.failed = b.types.Ref(typeKey{fixed: "StreamError"}, reply, "StreamError", func() *Schema {
		return &Schema{
			Type: jsonschema.Types{jsonschema.Object}, Description: "The last message of a stream that has failed after its first message.",
			Properties: jsonschema.Members{{Name: "error", Schema: b.problem}}, Required: []string{"error"},
		}
	})
}

func codeNames() []string {
	var list []string
	for c := anser.OK + 1; c <= anser.Unauthenticated; c++ {
		list = append(list, exchange.CodeName(c))
	}
	return list
}

// content returns a body with messages of a schema, and an example of them.
func (b *builder) content(s *Schema, to jsonschema.Direction) *media {
	m := &media{Schema: s}
	b.medias = append(b.medias, madeMedia{m, to})
	return m
}

// add adds the operation with the name of a method.
func (b *builder) add(m *exchange.Method) {
	in := b.schemaOf(m, request)
	e := &entry{method: m, verb: "POST", path: "/" + m.Name, op: b.operation(m, m.Name), own: []*Schema{in}}
	kind := typeJSON
	if m.ClientStream {
		kind = typeLines
	}
	e.op.Body = &body{Required: true, Content: map[string]*media{kind: b.content(in, request)}}
	if m.ClientStream {
		e.op.Body.Description = "The messages, each on a line."
	}
	var out *Schema
	if !m.Oneway {
		out = b.schemaOf(m, reply)
	}
	b.answers(e, out, false)
	b.entries = append(b.entries, e)
}

// operation returns what all operations of a method have.
func (b *builder) operation(m *exchange.Method, id string) *operation {
	op := &operation{
		ID: b.id(id), Tags: []string{serviceOf(m.Name)}, Deprecated: m.Deprecated,
		Method: m.Name, Oneway: m.Oneway, Idempotent: m.Idempotent,
		Parameters: []*parameter{{Ref: parametersAt + timeoutName}, {Ref: parametersAt + traceName}},
	}
	if m.Deduplicates && !m.Stream {
		op.Parameters = append(op.Parameters, &parameter{Ref: parametersAt + keyName}, &parameter{Ref: parametersAt + repeatedName})
	}
	op.Summary, op.Description = summary(m.Doc)
	if op.Summary == "" {
		op.Summary = m.Name
	}
	switch {
	case m.ClientStream && m.ServerStream:
		op.Stream = "both"
		op.note("Both sides send messages. Over HTTP/1.1 the answers are read after the last message was sent; over WebSocket they are not.")
	case m.ClientStream:
		op.Stream = "client"
	case m.ServerStream:
		op.Stream = "server"
	}
	return op
}

// note adds a paragraph to the description.
func (op *operation) note(text string) {
	op.Description = strings.TrimSpace(op.Description + "\n\n" + text)
}

// summary returns the first sentence of a comment, and the whole comment if it has more.
func summary(doc string) (first, all string) {
	doc = strings.TrimSpace(doc)
	first, _, _ = strings.Cut(doc, "\n\n")
	first = strings.Join(strings.Fields(first), " ")
	if sentence, _, more := strings.Cut(first, ". "); more {
		first = sentence + "."
	}
	const long = 120
	if runes := []rune(first); len(runes) > long {
		first = string(runes[:long-1]) + "…"
	}
	if strings.Join(strings.Fields(doc), " ") != first {
		all = doc
	}
	return first, all
}

// answers adds the responses of an operation. out is the schema of a message, or nil for a method
// without replies; raw says that the body is bytes of any type.
func (b *builder) answers(e *entry, out *Schema, raw bool) {
	op := e.op
	op.Responses = map[string]*response{
		"4XX": {Ref: responsesAt + problemName},
		"5XX": {Ref: responsesAt + problemName},
	}
	if op.Stream != "" && !raw {
		op.WebSocket = socketProtocol
		op.Responses["101"] = &response{Ref: responsesAt + socketName}
	}
	switch {
	case raw:
		op.Responses["200"] = &response{Description: "Bytes of the type that the method chooses.", Content: map[string]*media{typeAny: {}}}
	case out == nil:
		op.Responses["202"] = &response{Description: "The message was taken. There is no reply."}
	case op.Stream == "":
		op.Responses["200"] = &response{Description: "The reply.", Content: map[string]*media{typeJSON: b.content(out, reply)}}
		e.own = append(e.own, out)
	default:
		line := &Schema{AnyOf: []*Schema{out, b.failed}}
		array := &Schema{Type: jsonschema.Types{jsonschema.Array}, Items: line}
		event := &Schema{AnyOf: []*Schema{out, b.problem}}
		op.Responses["200"] = &response{
			Description: "The messages, as they are sent: each on a line, each as the data of an event, or the elements of an array. " +
				"After the last event comes one with the type end, or error and a problem.",
			Content: map[string]*media{typeLines: b.content(line, reply), typeEvents: b.content(event, reply), typeJSON: b.content(array, reply)},
		}
		e.own = append(e.own, line, array, event)
	}
	if e.method.Safe && op.Stream == "" && e.verb == "GET" {
		op.Parameters = append(op.Parameters, &parameter{Ref: parametersAt + matchName})
		op.Responses["304"] = &response{Ref: responsesAt + sameName}
		op.Responses["200"].Headers = cacheHeaders()
	}
}
