package anser

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/gocontract"
	"github.com/anser-rpc/anser/registry"
)

// Contract gives methods the schema that they are part of; generated code uses it. A method named
// "orders.v1.Orders.Place" is the method Place of the service orders.v1.Orders. It is an error if
// the schema has no such method, or one of another kind: a call, a oneway call or a stream.
//
// The server then describes the method in the words of its schema (see [MethodsName] and
// [ContractName]), and announces a fingerprint of it with its instances (see [ContractTag]).
func Contract(s *contract.Source) HandleOption {
	return handleOption(func(o *handleOptions) {
		if o.wants(s != nil, "anser.Contract: the contract is nil: leave the option out") {
			o.contract = s
		}
	})
}

// methodContract is what the schema says of a method.
type methodContract struct {
	source      *contract.Source
	schema      *contract.Schema
	service     *contract.Service
	method      *contract.Method
	fingerprint string
}

// bindContract finds the method in its schema.
func (m *method) bindContract(source *contract.Source) error {
	if source == nil {
		return nil
	}
	schema, err := source.Schema()
	if err != nil {
		return err
	}
	c := &methodContract{source: source, schema: schema}
	service, name := splitName(m.nameInContract())
	if c.service = schema.Service(service); c.service == nil {
		return fmt.Errorf("its contract has no service %s", service)
	}
	if c.method = c.service.Method(name); c.method == nil {
		return fmt.Errorf("its contract has no such method")
	}
	is := sides{c.method.ClientStream, c.method.ServerStream}
	if m.oneway != c.method.Oneway || is != m.sides {
		return fmt.Errorf("it is %s, and %s in its contract", kindOf(m.oneway, m.sides), kindOf(c.method.Oneway, is))
	}
	c.fingerprint = schema.Fingerprint(service, name)
	m.contract = c
	return nil
}

func kindOf(oneway bool, s sides) string {
	switch {
	case oneway:
		return "oneway"
	case s.client && s.server:
		return "a stream in both directions"
	case s.client:
		return "a stream of the client"
	case s.server:
		return "a stream of the server"
	}
	return "a call"
}

// splitName returns the service and the method of a name.
func splitName(name string) (service, method string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// describe adds what the schema says; c may be nil.
func (c *methodContract) describe(info *MethodInfo) {
	if c == nil {
		return
	}
	info.Doc, info.Contract, info.Fingerprint = c.method.Doc, c.schema.Kind, c.fingerprint
	info.Deprecated = c.method.Deprecated || c.service.Deprecated
}

// ContractTag is the beginning of the tags with which an instance tells the contracts of its
// methods: "contract.orders.v1.Orders" has the value "Place=4c0d0a2b9f6e7d18,Watch=…", the names of
// the methods with their fingerprints, sorted (see [contract.Schema.Fingerprint]). A tag of that
// name given to [Announce] is kept. The tags are left out if they would make the
// instance too large for registries.
const ContractTag = "contract."

// addContractTags adds the tags of the methods' contracts to an instance.
func (s *Server) addContractTags(in *registry.Instance) {
	services := make(map[string][]string)
	s.table.each(func(name string, m *method, a *alias) {
		if a == nil && !m.foreign && m.contract != nil {
			service, short := splitName(name)
			services[service] = append(services[service], short+"="+m.contract.fingerprint)
		}
	})
	tagged := in.Clone()
	if tagged.Tags == nil && len(services) > 0 {
		tagged.Tags = make(map[string]string)
	}
	for service, methods := range services {
		if tagged.Tags[ContractTag+service] == "" {
			slices.Sort(methods)
			tagged.Tags[ContractTag+service] = strings.Join(methods, ",")
		}
	}
	complete := tagged
	complete.Address = cmp.Or(complete.Address, "127.0.0.1:1")
	if complete.Validate() == nil {
		*in = tagged
	}
}

// ContractName is the built-in method that returns the contract of a service. Its request is
// [ContractRequest] and its reply [ContractReply], in the JSON codec or MessagePack. The contract
// of a service without a schema is made from its Go types (see [MethodType.Schema]). A client that
// may call no method of the service gets NotFound. [NoDescribe] disables it.
const ContractName = builtinPrefix + "Contract"

// ContractRequest is the request of [ContractName].
type ContractRequest struct {
	Service string `json:"service"` // "orders.v1.Orders"
}

// ContractReply is the reply of [ContractName].
type ContractReply struct {
	Schema *contract.Schema `json:"schema"`
	// Descriptors is a google.protobuf.FileDescriptorSet with the file of the service and all that
	// it imports, each after its imports. It is empty for other languages than protobuf.
	Descriptors []byte `json:"descriptors,omitempty"`
}

// addContractMethod serves ContractName.
func (s *Server) addContractMethod() {
	s.add([]HandleOption{idempotentOption{}}, &method{
		name: ContractName, builtin: true, idempotent: true,
		newRequest: func() any { return new(ContractRequest) },
		handle: func(ctx context.Context, in any) (any, error) {
			return callFrom(ctx).conn.contract(in.(*ContractRequest).Service)
		},
		request: reflect.TypeFor[ContractRequest](), reply: reflect.TypeFor[ContractReply](),
	})
}

// contract returns the contract of a service, restricted to the methods that the client may call.
func (c *calleeHalf) contract(service string) (*ContractReply, error) {
	var of *methodContract
	may, mayAll := make(map[string]bool), make(map[string]bool)
	srv := c.server
	limited := c.auth != nil && srv.o.authorizer != nil
	srv.table.each(func(name string, m *method, a *alias) {
		in, short := splitName(name)
		if in != service || a != nil || m.foreign || limited && !srv.allows(c.identity(), name) {
			return
		}
		if mayAll[name] = true; m.contract == nil {
			return
		}
		of = m.contract
		may[short] = true
	})
	if of == nil {
		if made := srv.typeContract(service, mayAll); made != nil {
			return &ContractReply{Schema: made}, nil
		}
		return nil, Errorf(NotFound, "there is no contract of a service %q", service)
	}
	part := *of.schema
	part.Services = []contract.Service{*of.service}
	methods := &part.Services[0].Methods
	*methods = slices.DeleteFunc(slices.Clone(*methods), func(m contract.Method) bool { return !may[m.Name] })
	return &ContractReply{Schema: part.Only(service), Descriptors: of.source.Descriptors()}, nil
}

// Schema returns the contract of the method's service with this method alone: that of its schema
// (see [Contract]), or else one of the kind [contract.Go] that is made from the types of its
// messages. It is nil for a method of protobuf messages without a contract: the messages have
// descriptors. The caller may change it.
func (t *MethodType) Schema() *contract.Schema {
	service, name := splitName(cmp.Or(t.ContractName, t.Name))
	if t.Contract != nil {
		if s, err := t.Contract.Schema(); err == nil && s.Service(service) != nil {
			part := *s
			v := *s.Service(service)
			v.Methods = []contract.Method{*v.Method(name)}
			part.Services = []contract.Service{v}
			return part.Only(service)
		}
	}
	if isProto(t.Request) && isProto(t.Reply) {
		return nil
	}
	s := &contract.Schema{Kind: contract.Go}
	m := contract.Method{
		Name: name, Doc: t.Doc, Deprecated: t.Deprecated, Idempotent: t.Idempotent, Oneway: t.Oneway,
		ClientStream: t.ClientStream, ServerStream: t.ServerStream,
	}
	if t.in != nil {
		m.Request, m.Reply = t.Name+".Args", t.Name+".Results"
		gocontract.Tuple(s, m.Request, t.in.layout.Names, t.in.types)
		gocontract.Tuple(s, m.Reply, t.out.layout.Names, t.out.types)
	} else {
		m.Request = gocontract.Message(s, t.Request)
		if !t.Oneway {
			m.Reply = gocontract.Message(s, t.Reply)
		}
	}
	s.Services = []contract.Service{{Name: service, Methods: []contract.Method{m}}}
	return s
}

// isProto reports whether a pointer to t is a protobuf message.
func isProto(t reflect.Type) bool {
	return t != nil && reflect.PointerTo(t).Implements(reflect.TypeFor[proto.Message]())
}

// typeContract returns the contract of a service whose methods have none, made from their types,
// or nil.
func (s *Server) typeContract(service string, may map[string]bool) *contract.Schema {
	out := &contract.Schema{Kind: contract.Go}
	s.table.each(func(name string, m *method, a *alias) {
		in, _ := splitName(name)
		if in != service || a != nil || m.builtin || m.foreign || m.contract != nil || !may[name] {
			return
		}
		t := m.methodType()
		if part := t.Schema(); part != nil {
			out.Merge(part)
		}
	})
	if len(out.Services) == 0 {
		return nil
	}
	return out
}
