package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract/protocontract"
	"github.com/anser-rpc/anser/internal/introspect"
)

// grpcScheme begins the addresses of gRPC servers.
const grpcScheme = "grpc://"

// The fields of ServerReflectionRequest and ServerReflectionResponse.
const (
	askFile     = 3
	askSymbol   = 4
	askServices = 7

	tellFiles    = 4
	tellServices = 6
	tellError    = 7
)

// maxFiles is the number of files of descriptors that a server may have.
const maxFiles = 1024

// reflected are the descriptors of a gRPC server, as its reflection tells them.
type reflected struct {
	st    *anser.DynamicStream
	files map[string]*descriptorpb.FileDescriptorProto
}

// reflectInstance asks a gRPC server of the service by its reflection what it serves. A stream
// goes where the balancer sends it.
func reflectInstance(ctx context.Context, c *anser.Client) (*description, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var failed error
	for _, version := range []string{"v1", "v1alpha"} {
		var none *codec.Encoded
		st, err := c.OpenDynamic(ctx, "grpc.reflection."+version+".ServerReflection.ServerReflectionInfo", none, none, nil, anser.Codec(forwardingProtobuf), anser.StreamSides(true, true))
		if err == nil {
			var d *description
			if d, err = (&reflected{st, make(map[string]*descriptorpb.FileDescriptorProto)}).describe(); err == nil {
				return d, st.CloseSend()
			}
		}
		failed = errors.Join(failed, err)
		if !errors.Is(err, anser.Unimplemented) {
			break
		}
	}
	return nil, fmt.Errorf("the gRPC server does not say what it serves: give it the reflection service\n%w", failed)
}

// ask sends a question, and returns the field of the answer with this number.
func (r *reflected) ask(number protowire.Number, about string, answer protowire.Number) ([]byte, error) {
	question := protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), about)
	if err := r.st.Send(&codec.Encoded{Codec: codec.ProtobufID, Data: question}); err != nil {
		return nil, err
	}
	reply := new(codec.Encoded)
	if err := r.st.Recv(reply); err != nil {
		return nil, err
	}
	found := fields(reply.Data)
	if wrong := found[tellError]; wrong != nil {
		text := ""
		if list := fields(wrong[0])[2]; list != nil {
			text = string(list[0])
		}
		return nil, fmt.Errorf("it does not know %q: %s", about, text)
	}
	if found[answer] == nil {
		return nil, fmt.Errorf("its answer about %q is another one than it was asked for", about)
	}
	return found[answer][0], nil
}

// fields returns the fields with bytes of an encoded message.
func fields(b []byte) map[protowire.Number][][]byte {
	found := make(map[protowire.Number][][]byte)
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		b = b[n:]
		if kind == protowire.BytesType {
			if value, m := protowire.ConsumeBytes(b); m >= 0 {
				found[number] = append(found[number], value)
			}
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			break
		}
		b = b[n:]
	}
	return found
}

// describe asks for all services and their files.
func (r *reflected) describe() (*description, error) {
	list, err := r.ask(askServices, "*", tellServices)
	if err != nil {
		return nil, err
	}
	var services []string
	for _, s := range fields(list)[1] {
		if names := fields(s)[1]; names != nil && !strings.HasPrefix(string(names[0]), "grpc.") {
			services = append(services, string(names[0]))
		}
	}
	if len(services) > introspect.MaxContracts {
		return nil, fmt.Errorf("it has %d services: at most %d are served", len(services), introspect.MaxContracts)
	}
	for _, name := range services {
		if err := r.add(askSymbol, name); err != nil {
			return nil, err
		}
	}
	if err := r.addImports(); err != nil {
		return nil, err
	}
	set := new(descriptorpb.FileDescriptorSet)
	for _, name := range sortedKeys(r.files) {
		set.File = append(set.File, r.files[name])
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, err
	}
	return describeFiles(files, services)
}

// add asks for files, and keeps them.
func (r *reflected) add(number protowire.Number, about string) error {
	answer, err := r.ask(number, about, tellFiles)
	if err != nil {
		return err
	}
	for _, b := range fields(answer)[1] {
		f := new(descriptorpb.FileDescriptorProto)
		if err := proto.Unmarshal(b, f); err != nil {
			return fmt.Errorf("its file for %q: %w", about, err)
		}
		if r.files[f.GetName()] = f; len(r.files) > maxFiles {
			return fmt.Errorf("it has over %d files", maxFiles)
		}
	}
	return nil
}

// addImports asks for the files that others import.
func (r *reflected) addImports() error {
	for {
		missing := ""
		for _, f := range r.files {
			for _, name := range f.Dependency {
				if r.files[name] == nil {
					missing = name
				}
			}
		}
		if missing == "" {
			return nil
		}
		if err := r.add(askFile, missing); err != nil {
			return err
		}
		if r.files[missing] == nil {
			return fmt.Errorf("it has no file %q, which others import", missing)
		}
	}
}

// describeFiles returns the methods of services.
func describeFiles(files *protoregistry.Files, services []string) (*description, error) {
	d := &description{methods: make(map[string]*published)}
	for _, name := range services {
		found, err := files.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			return nil, err
		}
		service, ok := found.(protoreflect.ServiceDescriptor)
		if !ok {
			return nil, fmt.Errorf("%s is not a service", name)
		}
		text, err := json.Marshal(protocontract.FromService(service))
		if err != nil {
			return nil, err
		}
		file := service.ParentFile()
		source := protocontract.Source(string(text), &file)
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			options, _ := m.Options().(*descriptorpb.MethodOptions)
			info := anser.MethodInfo{
				Name: name + "." + string(m.Name()), Stream: m.IsStreamingClient() || m.IsStreamingServer(),
				ClientStream: m.IsStreamingClient(), ServerStream: m.IsStreamingServer(),
			}
			info.Idempotent = !info.Stream && options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
			if p := publish(info, source); p != nil {
				d.methods[info.Name] = p
			} else {
				d.bare = append(d.bare, info.Name)
			}
		}
	}
	if len(d.methods) > introspect.MaxMethods {
		return nil, fmt.Errorf("it has %d methods: at most %d are served", len(d.methods), introspect.MaxMethods)
	}
	return d, nil
}
