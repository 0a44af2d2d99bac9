package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Reader is a [Source] with further resources, which are read and have no effects.
type Reader interface {
	// Resources returns the resources by their URIs, such as "anser://rules/arith", with what they
	// are.
	Resources(ctx context.Context) (map[string]string, error)
	// Read returns a resource as JSON.
	Read(ctx context.Context, uri string) (json.RawMessage, error)
}

const (
	servicesURI   = "anser://services"
	statisticsURI = "anser://statistics"
)

// addResources adds the resources of a caller to its server.
func (at *session) addResources(server *sdk.Server) {
	at.addResource(server, servicesURI, "services", "The services with the methods that you may call.", at.services)
	at.addResource(server, statisticsURI, "statistics", "How often tools were listed and called, and with which ends.", func(context.Context) (any, error) {
		return at.server.Stats(), nil
	})
	more, ok := at.source.(Reader)
	if !ok {
		return
	}
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "resources/list" || method == "resources/read" {
				list, err := more.Resources(ctx)
				if err != nil {
					return nil, err
				}
				for uri, about := range list {
					at.addResource(server, uri, strings.TrimPrefix(uri, "anser://"), about, func(ctx context.Context) (any, error) { return more.Read(ctx, uri) })
				}
			}
			return next(ctx, method, r)
		}
	})
}

func (at *session) addResource(server *sdk.Server, uri, name, about string, read func(context.Context) (any, error)) {
	server.AddResource(&sdk.Resource{URI: uri, Name: name, Description: about, MIMEType: "application/json"},
		func(ctx context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			v, err := read(ctx)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}}}, nil
		})
}

// listedService is a service in anser://services.
type listedService struct {
	Service     string   `json:"service"`
	Description string   `json:"description,omitempty"`
	Methods     []string `json:"methods"`
}

// services returns the services with the methods of the caller.
func (at *session) services(ctx context.Context) (any, error) {
	tools, err := at.listed(ctx)
	if err != nil {
		return nil, err
	}
	out := []*listedService{}
	for _, t := range tools {
		full := t.method.FullName()
		i := strings.LastIndexByte(full, '.')
		j := slices.IndexFunc(out, func(s *listedService) bool { return s.Service == full[:max(i, 0)] })
		if j < 0 {
			j = len(out)
			out = append(out, &listedService{Service: full[:max(i, 0)]})
			name := t.method.Name
			if of := t.method.Contract.Service(name[:max(strings.LastIndexByte(name, '.'), 0)]); of != nil {
				out[j].Description = of.Doc
			}
		}
		out[j].Methods = append(out[j].Methods, full[i+1:])
	}
	return out, nil
}
