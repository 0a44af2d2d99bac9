package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/introspect"
	"github.com/anser-rpc/anser/registry"
)

// askTimeout bounds the time of an instance to say what it serves.
const askTimeout = 10 * time.Second

// published is a method as its service publishes it.
type published struct {
	name        string // "Arith.Mul"
	info        anser.MethodInfo
	contract    *contract.Source // nil: it can be forwarded over Anser's own protocol only
	protobuf    bool             // its messages are forwarded in protobuf, otherwise in JSON
	fingerprint string
	messages    messages
}

// description is what a service publishes.
type description struct {
	methods map[string]*published
	bare    []string // methods without a contract, which cannot be translated
}

// translated returns the names of the methods that have a contract, sorted.
func (d *description) translated() []string {
	return slices.DeleteFunc(sortedKeys(d.methods), func(name string) bool { return d.methods[name].contract == nil })
}

// describe asks representatives of a service what they serve. Of methods that differ between them,
// the newest version counts. With an error, the description is what the others have said, or nil
// if none has said anything.
func describe(ctx context.Context, c *anser.Client, instances []registry.Instance) (*description, error) {
	all := &description{methods: make(map[string]*published)}
	var failed error
	answered := false
	for _, in := range instances {
		one, err := describeInstance(ctx, c, &in)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		answered = true
		for name, m := range one.methods {
			if all.methods[name] == nil {
				all.methods[name] = m
			}
		}
		all.bare = append(all.bare, one.bare...)
	}
	if !answered {
		return nil, failed
	}
	return all, failed
}

// maxRepresentatives is the number of instances of a service that are asked.
const maxRepresentatives = 4

// representatives returns instances that differ in their versions or contracts, the newest first.
// Of instances that announce the same ones it returns one.
func representatives(instances []registry.Instance) []registry.Instance {
	var list []registry.Instance
	seen := make(map[string]bool)
	for _, in := range newestFirst(instances) {
		if key := surface(&in); !seen[key] && len(list) < maxRepresentatives {
			seen[key] = true
			list = append(list, in)
		}
	}
	return list
}

// surface returns what an instance announces of its methods.
func surface(in *registry.Instance) string {
	var b strings.Builder
	b.WriteString(in.Version)
	for _, key := range sortedKeys(in.Tags) {
		if strings.HasPrefix(key, anser.ContractTag) {
			b.WriteString("\n" + key + "=" + in.Tags[key])
		}
	}
	return b.String()
}

func describeInstance(ctx context.Context, c *anser.Client, in *registry.Instance) (*description, error) {
	if strings.HasPrefix(in.Address, grpcScheme) {
		return reflectInstance(ctx, c)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := introspect.Methods(ctx, c, anser.At(in.Key()))
	if err != nil {
		return nil, fmt.Errorf("instance %s: %w", in.Key(), err)
	}
	contracts, err := introspect.Contracts(ctx, c, list, anser.At(in.Key()))
	if err != nil {
		return nil, fmt.Errorf("instance %s: %w", in.Key(), err)
	}
	sources := make(map[string]*contract.Source, len(contracts))
	for service, reply := range contracts {
		if sources[service], err = sourceOf(reply); err != nil {
			return nil, fmt.Errorf("instance %s: the contract of %s: %w", in.Key(), service, err)
		}
	}
	d := &description{methods: make(map[string]*published)}
	for _, m := range list {
		service, _ := introspect.SplitName(m.Name)
		p := publish(m, sources[service])
		if p == nil {
			d.bare = append(d.bare, m.Name)
			p = &published{name: m.Name, info: m}
		}
		d.methods[m.Name] = p
	}
	return d, nil
}

// sourceOf returns a contract as the methods of a server have it.
func sourceOf(reply *anser.ContractReply) (*contract.Source, error) {
	text, err := json.Marshal(reply.Schema)
	if err != nil {
		return nil, err
	}
	source := contract.NewSource(string(text))
	if len(reply.Descriptors) > 0 {
		source = source.WithDescriptors(func() []byte { return reply.Descriptors })
	}
	_, err = source.Schema()
	return source, err
}

// publish returns the method with its contract, or nil if there is none that describes it.
func publish(info anser.MethodInfo, source *contract.Source) *published {
	if source == nil {
		return nil
	}
	schema, err := source.Schema()
	if err != nil {
		return nil
	}
	service, name := introspect.SplitName(info.Name)
	of := schema.Service(service)
	if of == nil || of.Method(name) == nil {
		return nil
	}
	p := &published{name: info.Name, info: info, contract: source, protobuf: schema.Kind == contract.Protobuf}
	if p.protobuf && len(source.Descriptors()) == 0 {
		return nil // its messages cannot be translated
	}
	p.fingerprint = string(schema.Kind) + schema.Fingerprint(service, name)
	return p
}
