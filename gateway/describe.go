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
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/registry"
)

// What a service may publish. One that publishes more is not served, so that no service can fill
// the memory of the gateway.
const (
	maxMethods   = 4096
	maxContracts = 256
	askTimeout   = 10 * time.Second
)

// published is a method as its service publishes it.
type published struct {
	name        string // "Arith.Mul"
	info        anser.MethodInfo
	contract    *contract.Source // nil: it can be passed on over Anser's own protocol only
	protobuf    bool             // its messages are passed on in protobuf, otherwise in JSON
	fingerprint string
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

// errNothing is the error of a service whose instances do not say what they serve.
var errNothing = errors.New("it does not publish its methods: start it without anser.NoDescribe, and let the gateway call Anser.Methods and Anser.Contract")

// describe asks instances of a service what they serve. Instances that announce the same contracts
// are asked once; of methods that differ between them, the newest version counts. With an error,
// the description is what the others have said, or nil if none has said anything.
func describe(ctx context.Context, c *anser.Client, instances []registry.Instance) (*description, error) {
	all := &description{methods: make(map[string]*published)}
	var failed error
	answered := false
	for _, in := range representatives(instances) {
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
	ask := []anser.CallOption{anser.Codec(new(codec.JSON)), anser.At(in.Key()), anser.WithFailMode(anser.Failfast)}
	list := new(anser.MethodList)
	if err := c.Call(ctx, anser.MethodsName, new(anser.None), list, ask...); err != nil {
		if errors.Is(err, anser.Unimplemented) {
			return nil, errNothing
		}
		return nil, err
	}
	if len(list.Methods) > maxMethods {
		return nil, fmt.Errorf("instance %s publishes %d methods: at most %d are served", in.Key(), len(list.Methods), maxMethods)
	}
	d := &description{methods: make(map[string]*published)}
	contracts := make(map[string]*contract.Source)
	for _, m := range list.Methods {
		service, _ := splitName(m.Name)
		source, known := contracts[service]
		if !known {
			if len(contracts) == maxContracts {
				return nil, fmt.Errorf("instance %s publishes methods of over %d services: no more are served", in.Key(), maxContracts)
			}
			var err error
			if source, err = askContract(ctx, c, service, ask); err != nil {
				return nil, fmt.Errorf("the contract of %s: %w", service, err)
			}
			contracts[service] = source
		}
		p := publish(m, source)
		if p == nil {
			d.bare = append(d.bare, m.Name)
			p = &published{name: m.Name, info: m}
		}
		d.methods[m.Name] = p
	}
	return d, nil
}

// askContract returns the contract of a service, or nil if it has none.
func askContract(ctx context.Context, c *anser.Client, service string, ask []anser.CallOption) (*contract.Source, error) {
	reply := new(anser.ContractReply)
	err := c.Call(ctx, anser.ContractName, &anser.ContractRequest{Service: service}, reply, ask...)
	if errors.Is(err, anser.NotFound) || err == nil && reply.Schema == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(reply.Schema)
	if err != nil {
		return nil, err
	}
	source := contract.NewSource(string(text))
	if _, err := source.Schema(); err != nil {
		return nil, err
	}
	if len(reply.Descriptors) > 0 {
		source = source.WithDescriptors(func() []byte { return reply.Descriptors })
	}
	return source, nil
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
	service, name := splitName(info.Name)
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

// splitName returns the service and the method of a name.
func splitName(name string) (service, method string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}
