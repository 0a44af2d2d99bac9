package exchange

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/contract"
)

// descriptorOf returns the method in a file of the program or of its contract, or nil. The files of
// this program say nothing of a method of another one that is forwarded.
func (d *Directory) descriptorOf(t *anser.MethodType, forwarded bool) protoreflect.MethodDescriptor {
	name := nameOf(t)
	if !forwarded {
		if found, err := protoregistry.GlobalFiles.FindDescriptorByName(name); err == nil {
			m, _ := found.(protoreflect.MethodDescriptor)
			return m
		}
	}
	if t.Contract == nil || len(t.Contract.Descriptors()) == 0 {
		return nil
	}
	found, err := d.filesOf(t.Contract).FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	m, _ := found.(protoreflect.MethodDescriptor)
	return m
}

// filesOf returns the files of a contract, which are read once.
func (d *Directory) filesOf(c *contract.Source) *protoregistry.Files {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := d.files[c]
	if files == nil {
		files = FilesOf(c.Descriptors())
		if d.files != nil {
			d.files[c] = files
		}
	}
	return files
}

// FilesOf returns the files of an encoded google.protobuf.FileDescriptorSet. Imports that it does
// not have are those of the program.
func FilesOf(set []byte) *protoregistry.Files {
	all := new(descriptorpb.FileDescriptorSet)
	if len(set) == 0 || proto.Unmarshal(set, all) != nil {
		return new(protoregistry.Files)
	}
	return newFiles(all)
}

func newFiles(all *descriptorpb.FileDescriptorSet) *protoregistry.Files {
	files := new(protoregistry.Files)
	for _, f := range all.File {
		if fd, err := protodesc.NewFile(f, resolver{files}); err == nil {
			_ = files.RegisterFile(fd) // of two with the same names, the first one
		}
	}
	return files
}

// resolver finds what files import.
type resolver struct{ files *protoregistry.Files }

func (r resolver) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if fd, err := r.files.FindFileByPath(path); err == nil {
		return fd, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

func (r resolver) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if found, err := r.files.FindDescriptorByName(name); err == nil {
		return found, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}
