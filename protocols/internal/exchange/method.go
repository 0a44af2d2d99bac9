// Package exchange has what the protocols over HTTP share: methods by their paths, metadata,
// deadlines, messages and errors.
package exchange

import (
	"bytes"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/contract"
)

// Method is a method of the server.
type Method struct {
	anser.MethodType
	// Protobuf says that both messages are protobuf messages.
	Protobuf bool
	// Safe says that a call changes nothing (idempotency_level = NO_SIDE_EFFECTS), so that it may
	// be called with GET.
	Safe bool
	// Descriptor is the method in its protobuf file, or nil.
	Descriptor protoreflect.MethodDescriptor
	// Mapped is the method in protobuf if its messages are Go types, or nil.
	Mapped protoreflect.MethodDescriptor
	// Own says that they are of type [Bytes]: the method is one of the protocol itself.
	Own bool
	// Forwarded says that they are of type [codec.Encoded]: the method is one behind a program that
	// forwards calls. Protobuf and Mapped then say what its contract does.
	Forwarded bool
	// Packs says that messages that are forwarded can be in MessagePack: they are those of Go types
	// or of kiss-rpc. They go on as they are, since the keys that a Go type has in MessagePack need
	// not be those of its contract.
	Packs bool

	request shape // of a method that is forwarded
	single  bool  // its reply is a tuple with one value
}

// Directory finds the methods of a server by their paths. It is safe for concurrent use.
type Directory struct {
	// IgnoreUnknown says that members of JSON that the message does not have are ignored.
	IgnoreUnknown bool

	server    *anser.Server
	unpacking chan struct{} // full while as many messages are decompressed as may be at once

	mu      sync.RWMutex // guards the fields below
	version uint64       // of the methods in paths and names
	// A path is not a name: the two are apart, so that none is found as the other.
	paths, names map[string]*Method
	files        map[*contract.Source]*protoregistry.Files
}

// NewDirectory returns the directory of a server.
func NewDirectory(s *anser.Server) *Directory {
	return &Directory{server: s, unpacking: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
}

// Server returns the server.
func (d *Directory) Server() *anser.Server { return d.server }

// RequestJSON returns the JSON of the requests of the protocols that have no other messages. That
// of Connect and gRPC ignores members that the message does not have, as theirs does.
func (d *Directory) RequestJSON() codec.Codec {
	if d.IgnoreUnknown {
		return JSON
	}
	return strict
}

// Find returns the method of a path such as "/orders.v1.Orders/Place", or nil. Only this form is
// accepted: no escapes, no other case, no further slash.
func (d *Directory) Find(path string) *Method {
	if m := d.known(&d.paths, path); m != nil {
		return m
	}
	name, ok := NameOf(path)
	if !ok {
		return nil
	}
	return d.add(&d.paths, path, name)
}

// FindName returns the method of a name such as "orders.v1.Orders.Place", or nil.
func (d *Directory) FindName(name string) *Method {
	if m := d.known(&d.names, name); m != nil {
		return m
	}
	return d.add(&d.names, name, name)
}

// known returns the method that in remembers under a key, or nil. Methods that were replaced are
// forgotten.
func (d *Directory) known(in *map[string]*Method, key string) *Method {
	version := d.server.MethodsVersion()
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.version != version {
		return nil
	}
	return (*in)[key]
}

// add remembers a method in a map under a key. Only methods that exist are remembered, so clients
// cannot fill the memory.
func (d *Directory) add(in *map[string]*Method, key, name string) *Method {
	version := d.server.MethodsVersion()
	t, ok := d.server.Method(name)
	if !ok {
		return nil
	}
	m := &Method{MethodType: t, Protobuf: isProtobuf(t.Request) && isProtobuf(t.Reply), Forwarded: t.Request == encodedType}
	if m.Descriptor = d.descriptorOf(&t, m.Forwarded); m.Descriptor != nil {
		options, _ := m.Descriptor.Options().(*descriptorpb.MethodOptions)
		m.Safe = options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
	}
	m.Name = name // an alias is counted
	m.Own = t.Request == reflect.TypeFor[Bytes]()
	m.Protobuf = m.Protobuf || m.Own || m.Forwarded && m.Descriptor != nil
	if !m.Protobuf {
		m.Mapped = mappedOf(&t)
	}
	if m.Forwarded {
		m.learn()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resetLocked(version)
	if d.version == version {
		(*in)[key] = m
	}
	return m
}

// resetLocked forgets all methods if those of this version are newer.
func (d *Directory) resetLocked(version uint64) {
	if d.paths == nil || version > d.version {
		d.version, d.files = version, make(map[*contract.Source]*protoregistry.Files)
		d.paths, d.names = make(map[string]*Method), make(map[string]*Method)
	}
}

// InJSON reports whether the messages of the method can be in JSON.
func (m *Method) InJSON() bool {
	if m.Own || m.Only != nil && !slices.Contains(m.Only, JSON.ID()) {
		return false
	}
	fits, ok := JSON.(interface{ Fits(v any) bool })
	return !ok || fits.Fits(reflect.New(m.Request).Interface()) && fits.Fits(reflect.New(m.Reply).Interface())
}

// NameOf returns the name of the method with a path such as "/orders.v1.Orders/Place".
func NameOf(path string) (name string, ok bool) {
	if path == "" || path[0] != '/' {
		return "", false
	}
	service, method, found := strings.Cut(path[1:], "/")
	if !found || service == "" || method == "" || strings.ContainsAny(method, "/.") {
		return "", false
	}
	return service + "." + method, true
}

// Bytes is a protobuf message that is encoded and decoded by hand: the services of gRPC itself have
// no generated types here, which would collide with the ones of a program that has them too.
type Bytes struct{ B []byte }

// codecOfBytes is protobuf for messages of type Bytes.
type codecOfBytes struct{ codec.Codec }

func (codecOfBytes) Append(dst []byte, v any) ([]byte, error) {
	return append(dst, v.(*Bytes).B...), nil
}

func (codecOfBytes) Unmarshal(data []byte, v any) error {
	v.(*Bytes).B = bytes.Clone(data)
	return nil
}

// ProtobufCodec returns the codec of protobuf for the messages of the method.
func (m *Method) ProtobufCodec() codec.Codec {
	switch {
	case m.Own:
		return codecOfBytes{Protobuf}
	case m.Forwarded:
		return forwarded{Protobuf, m}
	}
	if m.Mapped != nil {
		return mapped{JSON, m.Mapped}
	}
	return Protobuf
}

// The codecs of messages.
var (
	Protobuf codec.Codec = protobuf.New()
	JSON     codec.Codec = protobuf.NewJSON()
)

var messageType = reflect.TypeFor[proto.Message]()

func isProtobuf(t reflect.Type) bool { return t != nil && reflect.PointerTo(t).Implements(messageType) }
