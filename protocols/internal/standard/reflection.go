package standard

import (
	"context"
	"io"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// The fields of ServerReflectionRequest and ServerReflectionResponse, which v1 and v1alpha share.
const (
	askFile       = 3
	askSymbol     = 4
	askExtension  = 5
	askExtensions = 6
	askServices   = 7

	tellHost       = 1
	tellRequest    = 2
	tellFiles      = 4
	tellExtensions = 5
	tellServices   = 6
	tellError      = 7
)

// reflection answers questions about the descriptors of the services that the caller may call.
func reflection(s *anser.Server) func(context.Context, *anser.DynamicStream) error {
	return func(ctx context.Context, st *anser.DynamicStream) error {
		d := descriptorsOf(s.MethodsFor(ctx))
		sent := make(map[string]bool) // files, once on a stream
		for {
			in := new(exchange.Bytes)
			err := st.Recv(in)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			out, err := d.answer(in.B, sent)
			if err != nil {
				return err
			}
			if err := st.Send(&exchange.Bytes{B: out}); err != nil {
				return err
			}
		}
	}
}

// descriptors are what a caller may learn.
type descriptors struct {
	services []string
	files    *protoregistry.Files // of contracts; the program's own are in GlobalFiles
	global   map[string]bool      // services whose files are the program's own
}

func descriptorsOf(methods []anser.MethodType) *descriptors {
	d := &descriptors{files: new(protoregistry.Files), global: make(map[string]bool)}
	seen := make(map[*contract.Source]bool)
	var plain []*contract.Schema
	for _, m := range methods {
		if m.Request == reflect.TypeFor[exchange.Bytes]() {
			continue // its types say nothing: the services of gRPC itself are added below, or not told
		}
		if strings.Contains(m.Name, "/") {
			continue // another name of a method behind a gateway
		}
		service := ServiceOf(m.Name)
		if _, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service)); err == nil {
			d.global[service] = true
			d.services = append(d.services, service)
		} else if m.Contract != nil && len(m.Contract.Descriptors()) > 0 {
			if !seen[m.Contract] {
				d.add(m.Contract.Descriptors())
			}
			seen[m.Contract] = true
			d.services = append(d.services, service)
		} else if s := m.Schema(); s != nil {
			plain = append(plain, s)
		}
	}
	d.addPlain(plain)
	if len(methods) > 0 && !slices.Contains(d.services, healthService) {
		d.addHealth()
	}
	slices.Sort(d.services)
	d.services = slices.Compact(d.services)
	return d
}

// addHealth adds the health service, which every caller of some method sees.
func (d *descriptors) addHealth() {
	d.services = append(d.services, healthService)
	if _, err := protoregistry.GlobalFiles.FindDescriptorByName(healthService); err == nil {
		d.global[healthService] = true
		return
	}
	d.add(healthFile())
}

// add adds the files of a contract, except the ones that are there.
func (d *descriptors) add(set []byte) {
	all := new(descriptorpb.FileDescriptorSet)
	if proto.Unmarshal(set, all) == nil {
		d.addFiles(all)
	}
}

// addPlain adds the services whose messages are Go types, as far as they have a form in protobuf.
func (d *descriptors) addPlain(schemas []*contract.Schema) {
	set, _ := protocontract.ToFiles(schemas...)
	d.addFiles(set)
	for _, f := range set.File {
		for _, s := range f.Service {
			name := protoreflect.FullName(s.GetName())
			if f.GetPackage() != "" {
				name = protoreflect.FullName(f.GetPackage()).Append(protoreflect.Name(s.GetName()))
			}
			if _, err := d.files.FindDescriptorByName(name); err == nil {
				d.services = append(d.services, string(name))
			}
		}
	}
}

func (d *descriptors) addFiles(all *descriptorpb.FileDescriptorSet) {
	for _, f := range all.File {
		if _, err := d.files.FindFileByPath(f.GetName()); err == nil {
			continue
		}
		if fd, err := protodesc.NewFile(f, d); err == nil {
			_ = d.files.RegisterFile(fd)
		}
	}
}

// FindFileByPath and FindDescriptorByName make descriptors a protodesc.Resolver.
func (d *descriptors) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if fd, err := d.files.FindFileByPath(path); err == nil {
		return fd, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

func (d *descriptors) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if found, err := d.files.FindDescriptorByName(name); err == nil {
		return found, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}

// visible reports whether the caller may see a file: it has one of the services, or such a file
// imports it.
func (d *descriptors) visible(fd protoreflect.FileDescriptor) bool {
	if _, err := d.files.FindFileByPath(fd.Path()); err == nil {
		return true
	}
	seen := make(map[string]bool)
	for service := range d.global {
		if found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service)); err == nil && imports(found.ParentFile(), fd.Path(), seen) {
			return true
		}
	}
	return false
}

func imports(fd protoreflect.FileDescriptor, path string, seen map[string]bool) bool {
	if fd.Path() == path {
		return true
	}
	if seen[fd.Path()] {
		return false
	}
	seen[fd.Path()] = true
	for i := range fd.Imports().Len() {
		if imports(fd.Imports().Get(i).FileDescriptor, path, seen) {
			return true
		}
	}
	return false
}

// answer answers one question.
func (d *descriptors) answer(in []byte, sent map[string]bool) ([]byte, error) {
	var field protowire.Number
	var value []byte
	var host []byte
	err := fields(in, func(n protowire.Number, v []byte, _ uint64) {
		if n == 1 {
			host = v
		} else if n >= askFile && n <= askServices {
			field, value = n, v
		}
	})
	if err != nil {
		return nil, err
	}
	var out []byte
	put := func(n protowire.Number, v []byte) {
		out = protowire.AppendBytes(protowire.AppendTag(out, n, protowire.BytesType), v)
	}
	put(tellHost, host)
	put(tellRequest, in)
	switch field {
	case askFile:
		fd, err := d.FindFileByPath(string(value))
		d.tellFile(put, fd, err, sent)
	case askSymbol:
		found, err := d.FindDescriptorByName(protoreflect.FullName(value))
		var fd protoreflect.FileDescriptor
		if err == nil {
			fd = found.ParentFile()
		}
		d.tellFile(put, fd, err, sent)
	case askExtension:
		d.tellExtension(put, value, sent)
	case askExtensions:
		d.tellExtensionsOf(put, string(value))
	case askServices:
		var list []byte
		for _, name := range d.services {
			list = protowire.AppendBytes(protowire.AppendTag(list, 1, protowire.BytesType), textField(1, name))
		}
		put(tellServices, list)
	default:
		tellFault(put, anser.InvalidArgument, "the question is unknown")
	}
	return out, nil
}

func textField(n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), s)
}

func tellFault(put func(protowire.Number, []byte), code anser.Code, why string) {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
	put(tellError, append(b, textField(2, why)...))
}

// tellFile tells a file and what it imports, unless the client has them.
func (d *descriptors) tellFile(put func(protowire.Number, []byte), fd protoreflect.FileDescriptor, err error, sent map[string]bool) {
	if err != nil || !d.visible(fd) {
		tellFault(put, anser.NotFound, "there is no such file or symbol")
		return
	}
	var files []byte
	queue := []protoreflect.FileDescriptor{fd}
	asked := true
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if next.IsPlaceholder() || sent[next.Path()] && !asked {
			continue
		}
		asked = false
		sent[next.Path()] = true
		data, err := proto.Marshal(protodesc.ToFileDescriptorProto(next))
		if err != nil {
			tellFault(put, anser.Internal, err.Error())
			return
		}
		files = protowire.AppendBytes(protowire.AppendTag(files, 1, protowire.BytesType), data)
		for i := range next.Imports().Len() {
			queue = append(queue, next.Imports().Get(i).FileDescriptor)
		}
	}
	put(tellFiles, files)
}

// tellExtension tells the file of an extension.
func (d *descriptors) tellExtension(put func(protowire.Number, []byte), question []byte, sent map[string]bool) {
	var of string
	var number uint64
	fields(question, func(n protowire.Number, v []byte, x uint64) {
		switch n {
		case 1:
			of = string(v)
		case 2:
			number = x
		}
	})
	x, err := protoregistry.GlobalTypes.FindExtensionByNumber(protoreflect.FullName(of), protoreflect.FieldNumber(number))
	var fd protoreflect.FileDescriptor
	if err == nil {
		fd = x.TypeDescriptor().ParentFile()
	}
	d.tellFile(put, fd, err, sent)
}

// tellExtensionsOf tells the numbers of the extensions of a message.
func (d *descriptors) tellExtensionsOf(put func(protowire.Number, []byte), of string) {
	found, err := d.FindDescriptorByName(protoreflect.FullName(of))
	if _, ok := found.(protoreflect.MessageDescriptor); err != nil || !ok || !d.visible(found.ParentFile()) {
		tellFault(put, anser.NotFound, "there is no such message")
		return
	}
	b := textField(1, of)
	var numbers []byte
	protoregistry.GlobalTypes.RangeExtensionsByMessage(protoreflect.FullName(of), func(x protoreflect.ExtensionType) bool {
		numbers = protowire.AppendVarint(numbers, uint64(x.TypeDescriptor().Number()))
		return true
	})
	if len(numbers) > 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), numbers)
	}
	put(tellExtensions, b)
}
