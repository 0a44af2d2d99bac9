package openapi

import (
	"encoding/json"
	"slices"

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
	d.Components = componentLists{
		Schemas:   reachable(used),
		Responses: map[string]*response{problemName: c.problemResponse()},
	}
	if len(d.Paths) > 0 {
		d.Components.Parameters = headerParameters()
	}
	if v.authenticated {
		d.secure(v.tls)
	}
	return json.Marshal(d)
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
			"Anser-Outcome": {"Whether the method may have run.", &Schema{Type: types{tString}, Enum: c.problem.of.schema.property("outcome").Enum}},
			"Retry-After":   {"In how many seconds the call may be tried again, if the server says so.", &Schema{Type: types{tInteger}, Minimum: "0"}},
		},
	}
}

func headerParameters() map[string]*parameter {
	return map[string]*parameter{
		timeoutName: {
			Name: "Request-Timeout", In: "header", Description: "The seconds that the call may take.",
			Schema: &Schema{Type: types{tNumber}, ExclusiveMinimum: "0"},
		},
		traceName: {
			Name: "traceparent", In: "header", Description: "The span of the caller, as in W3C Trace Context.",
			Schema: &Schema{Type: types{tString}, Pattern: "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"},
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
