package openapi

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/anser-rpc/anser/internal/jsonschema"
	"github.com/anser-rpc/anser/protocols/internal/transcode"
)

// view is what the document of a caller depends on.
type view struct {
	may           func(method string) bool
	authenticated bool // the server authenticates its clients
	tls           bool // the connection has TLS
	info          Info
	maxMessage    int
}

// render returns the document of the methods that a caller may call.
func (c *catalog) render(v *view) ([]byte, error) {
	d := &document{
		OpenAPI: Version, Info: v.info, Security: []securityNeed{}, Paths: make(map[string]*pathItem), MaxMessage: v.maxMessage,
	}
	for _, u := range v.info.Servers {
		d.Servers = append(d.Servers, serverURL{u})
	}
	if d.Servers == nil {
		d.Servers = []serverURL{{"/"}}
	}
	used := []*Schema{c.problem}
	tags := make(map[string]tag)
	paths := make(map[string]shared)
	for _, explicit := range []bool{true, false} { // a rule for all methods of HTTP gives way to others
		for _, e := range c.entries {
			if !v.may(e.method.Name) || (e.route == nil || e.route.Rule.Method != transcode.Any) != explicit {
				continue
			}
			if d.put(e, paths) {
				used = append(used, e.own...)
				tags[e.op.Tags[0]] = c.services[e.op.Tags[0]]
			}
		}
	}
	for _, name := range names(tags) {
		d.Tags = append(d.Tags, tags[name])
	}
	d.Components = componentLists{Schemas: jsonschema.Reachable(used), Parameters: headerParameters(), Responses: responses()}
	d.Components.Responses[problemName] = c.problemResponse()
	d.dropUnused()
	if v.authenticated {
		d.secure(v.tls)
	}
	return json.Marshal(d)
}

// dropUnused drops the parameters and responses that no operation has. The one for errors stays, as
// readers of any document may know it.
func (d *document) dropUnused() {
	used := map[string]bool{responsesAt + problemName: true}
	for _, item := range d.Paths {
		for _, verb := range verbs {
			op := *item.slot(verb)
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				used[p.Ref] = true
			}
			for _, r := range op.Responses {
				used[r.Ref] = true
			}
		}
	}
	maps.DeleteFunc(d.Components.Parameters, func(name string, _ *parameter) bool { return !used[parametersAt+name] })
	maps.DeleteFunc(d.Components.Responses, func(name string, _ *response) bool { return !used[responsesAt+name] })
}

// shared is a path with the names of its parts, which all operations of the path have.
type shared struct {
	path  string
	names []string
}

// put adds an operation, and reports whether its place was free.
func (d *document) put(e *entry, paths map[string]shared) bool {
	path, op := e.path, e.op
	if e.route != nil {
		t := e.route.Template
		at, known := paths[t.Shape()]
		if !known {
			for _, p := range t.Parts() {
				at.names = append(at.names, p.Name)
			}
			at.path = t.Path(at.names)
			paths[t.Shape()] = at
		}
		path, op = at.path, renamed(op, at.names)
	}
	item := d.Paths[path]
	if item == nil {
		item = new(pathItem)
	}
	slot := item.slot(e.verb)
	if *slot != nil {
		return false
	}
	*slot = op
	d.Paths[path] = item
	return true
}

// renamed returns the operation with other names of the parameters in its path, which are the first
// ones.
func renamed(op *operation, names []string) *operation {
	for i, name := range names {
		if op.Parameters[i].Name == name {
			continue
		}
		clone, p := *op, *op.Parameters[i]
		p.Name = name
		clone.Parameters = slices.Clone(op.Parameters)
		clone.Parameters[i] = &p
		op = &clone
	}
	return op
}

func (c *catalog) problemResponse() *response {
	return &response{
		Description: "An error.",
		Content:     map[string]*media{typeProblem: {Schema: c.problem}},
		Headers: map[string]*header{
			"Anser-Outcome": {"Whether the method may have run.", &Schema{Type: jsonschema.Types{jsonschema.String}, Enum: c.problem.Of.Schema.Property("outcome").Enum}},
			"Retry-After":   {"In how many seconds the call may be tried again, if the server says so.", &Schema{Type: jsonschema.Types{jsonschema.Integer}, Minimum: "0"}},
		},
	}
}

// responses returns what operations share besides the response for errors.
func responses() map[string]*response {
	return map[string]*response{
		sameName: {Description: "The reply is the one with the entity tag in If-None-Match.", Headers: cacheHeaders()},
		socketName: {
			Description: "A WebSocket, for a handshake on this path with GET and the subprotocol " + socketProtocol + ", or none. " +
				"Each message is a text message with JSON, and an empty one ends those of the client. The status 1000 is the end without an error; " +
				"otherwise the last message has a member error with a problem. The parameter timeout has the seconds that the call may take, if the path is the name of the method.",
		},
	}
}

// cacheHeaders are the headers of replies that may be kept.
func cacheHeaders() map[string]*header {
	return map[string]*header{
		"ETag":          {"The entity tag of the reply.", &Schema{Type: jsonschema.Types{jsonschema.String}}},
		"Cache-Control": {"How the reply may be kept.", &Schema{Type: jsonschema.Types{jsonschema.String}}},
	}
}

func headerParameters() map[string]*parameter {
	return map[string]*parameter{
		timeoutName: {
			Name: "Request-Timeout", In: "header", Description: "The seconds that the call may take.",
			Schema: &Schema{Type: jsonschema.Types{jsonschema.Number}, ExclusiveMinimum: "0"},
		},
		traceName: {
			Name: "traceparent", In: "header", Description: "The span of the caller, as in W3C Trace Context.",
			Schema: &Schema{Type: jsonschema.Types{jsonschema.String}, Pattern: "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"},
		},
		keyName: {
			Name: "Idempotency-Key", In: "header", Description: "A key that cannot be guessed: the same request with it runs once, and gets the first reply again.",
			Schema: &Schema{Type: jsonschema.Types{jsonschema.String}},
		},
		repeatedName: {
			Name: "Anser-Repeated", In: "header", Description: "Says that the request was sent before: a server that does not know its key refuses it.",
			Schema: &Schema{Type: jsonschema.Types{jsonschema.String}, Enum: []string{"true", "false"}},
		},
		matchName: {
			Name: "If-None-Match", In: "header", Description: "Entity tags of replies that the caller has.",
			Schema: &Schema{Type: jsonschema.Types{jsonschema.String}},
		},
	}
}

// secure says how callers authenticate themselves.
func (d *document) secure(tls bool) {
	d.Components.SecuritySchemes = map[string]*securityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "A token that the server accepts."},
	}
	d.Security = []securityNeed{{"bearer": {}}}
	if tls {
		d.Components.SecuritySchemes["mutualTLS"] = &securityScheme{Type: "mutualTLS", Description: "A certificate that the server accepts."}
		d.Security = append(d.Security, securityNeed{"mutualTLS": {}})
	}
}
