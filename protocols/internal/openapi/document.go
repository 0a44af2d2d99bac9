// Package openapi describes the methods of a server in OpenAPI 3.1, as they are called in JSON over
// HTTP, and serves the description and a page that shows it. The schemas come from the descriptors
// of protobuf messages and from the types of other messages, the comments from contracts.
package openapi

import "encoding/json"

// Version is the version of OpenAPI that the documents have.
const Version = "3.1.1"

// Info is what a document says of the server as a whole.
type Info struct {
	Title          string   `json:"title"`
	Summary        string   `json:"summary,omitempty"`
	Description    string   `json:"description,omitempty"`
	TermsOfService string   `json:"termsOfService,omitempty"`
	Contact        *Contact `json:"contact,omitempty"`
	License        *License `json:"license,omitempty"`
	Version        string   `json:"version"`
	Servers        []string `json:"-"`
}

// Contact is the person or team that answers questions.
type Contact struct {
	Name  string `json:"name,omitempty"`
	URL   string `json:"url,omitempty"`
	Email string `json:"email,omitempty"`
}

// License is the license of what is described.
type License struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier,omitempty"`
	URL        string `json:"url,omitempty"`
}

// document is a document of OpenAPI, or the part of it that is used here.
type document struct {
	OpenAPI    string               `json:"openapi"`
	Info       Info                 `json:"info"`
	Servers    []serverURL          `json:"servers"`
	Security   []securityNeed       `json:"security"`
	Tags       []tag                `json:"tags,omitempty"`
	Paths      map[string]*pathItem `json:"paths"`
	Components componentLists       `json:"components"`
	MaxMessage int                  `json:"x-anser-max-message-bytes,omitempty"`
}

type serverURL struct {
	URL string `json:"url"`
}

// securityNeed are schemes that are needed together.
type securityNeed map[string][]string

type tag struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// pathItem has the operations of a path by their HTTP methods.
type pathItem struct {
	Get     *operation `json:"get,omitempty"`
	Put     *operation `json:"put,omitempty"`
	Post    *operation `json:"post,omitempty"`
	Delete  *operation `json:"delete,omitempty"`
	Options *operation `json:"options,omitempty"`
	Head    *operation `json:"head,omitempty"`
	Patch   *operation `json:"patch,omitempty"`
	Trace   *operation `json:"trace,omitempty"`
}

// verbs are the HTTP methods that OpenAPI has a place for.
var verbs = []string{"GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"}

// slot returns where the operation of an HTTP method is, or nil if OpenAPI has no place for it.
func (p *pathItem) slot(verb string) **operation {
	switch verb {
	case "GET":
		return &p.Get
	case "PUT":
		return &p.Put
	case "POST":
		return &p.Post
	case "DELETE":
		return &p.Delete
	case "OPTIONS":
		return &p.Options
	case "HEAD":
		return &p.Head
	case "PATCH":
		return &p.Patch
	case "TRACE":
		return &p.Trace
	}
	return nil
}

type operation struct {
	ID          string               `json:"operationId"`
	Tags        []string             `json:"tags"`
	Summary     string               `json:"summary"`
	Description string               `json:"description,omitempty"`
	Deprecated  bool                 `json:"deprecated,omitempty"`
	Parameters  []*parameter         `json:"parameters,omitempty"`
	Body        *body                `json:"requestBody,omitempty"`
	Responses   map[string]*response `json:"responses"`
	// Method is the name of the method of Anser, Stream which sides send several messages,
	// WebSocket the subprotocol in which the path takes them, and Template the path as the
	// annotation has it.
	Method     string `json:"x-anser-method"`
	Stream     string `json:"x-anser-stream,omitempty"`
	WebSocket  string `json:"x-anser-websocket,omitempty"`
	Oneway     bool   `json:"x-anser-oneway,omitempty"`
	Idempotent bool   `json:"x-anser-idempotent,omitempty"`
	Template   string `json:"x-anser-path,omitempty"`
}

type parameter struct {
	Ref         string  `json:"$ref,omitempty"`
	Name        string  `json:"name,omitempty"`
	In          string  `json:"in,omitempty"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Deprecated  bool    `json:"deprecated,omitempty"`
	Schema      *Schema `json:"schema,omitempty"`
}

type body struct {
	Description string            `json:"description,omitempty"`
	Required    bool              `json:"required,omitempty"`
	Content     map[string]*media `json:"content"`
}

type media struct {
	Schema  *Schema         `json:"schema,omitempty"`
	Example json.RawMessage `json:"example,omitempty"`
}

type response struct {
	Ref         string             `json:"$ref,omitempty"`
	Description string             `json:"description,omitempty"`
	Headers     map[string]*header `json:"headers,omitempty"`
	Content     map[string]*media  `json:"content,omitempty"`
}

type header struct {
	Description string  `json:"description,omitempty"`
	Schema      *Schema `json:"schema"`
}

type componentLists struct {
	Schemas         map[string]*Schema         `json:"schemas,omitempty"`
	Responses       map[string]*response       `json:"responses,omitempty"`
	Parameters      map[string]*parameter      `json:"parameters,omitempty"`
	SecuritySchemes map[string]*securityScheme `json:"securitySchemes,omitempty"`
}

type securityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme,omitempty"`
	Description string `json:"description,omitempty"`
}
