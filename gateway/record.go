package gateway

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/record"
)

// Record says which calls are recorded; see package record. Calls over Anser's own protocol, and
// calls in MessagePack, go on without being decoded, and are not recorded here: their servers can
// record them.
type Record struct {
	// Dir is the folder of the files.
	Dir string `yaml:"dir"`
	// Share, PerSecond and MaxBytes are those of record.Options.
	Share     float64 `yaml:"share,omitempty"`
	PerSecond int     `yaml:"per_second,omitempty"`
	MaxBytes  int64   `yaml:"max_bytes,omitempty"`
	// Methods are patterns, such as "Orders.*"; none means all. They match the name of a method
	// with and without its service: "orders/Orders.*".
	Methods []string `yaml:"methods,omitempty"`
	// Metadata, Secret and Public are those of record.Options.
	Metadata []string `yaml:"metadata,omitempty"`
	Secret   []string `yaml:"secret,omitempty"`
	Public   []string `yaml:"public,omitempty"`
}

func (r *Record) options() record.Options {
	o := record.Options{
		Dir: r.Dir, Share: r.Share, PerSecond: r.PerSecond, MaxBytes: r.MaxBytes,
		Metadata: r.Metadata, Secret: r.Secret, Public: r.Public,
	}
	if len(r.Methods) > 0 {
		o.Methods = func(method string) bool {
			_, bare, _ := strings.Cut(method, "/")
			return slices.ContainsFunc(r.Methods, func(pattern string) bool {
				full, _ := path.Match(pattern, method) // it was checked
				alone, _ := path.Match(pattern, bare)
				return full || alone
			})
		}
	}
	return o
}

// record checks what is recorded.
func (m *mistakes) record(r *Record) {
	if err := r.options().Check(); err != nil {
		m.add("record", "%v", err)
	}
	for i, pattern := range r.Methods {
		if _, err := path.Match(pattern, ""); err != nil {
			m.add(fmt.Sprintf("record.methods[%d]", i), "%q is not a pattern: use * for any characters, as in Orders.*", pattern)
		}
	}
}

// startRecording makes the recorder, if calls are recorded.
func (g *Gateway) startRecording(r *Record) (err error) {
	if r == nil {
		return nil
	}
	o := r.options()
	o.Logger, o.Decode = g.log, g.decode
	g.recorder, err = record.New(o)
	return err
}

// recordingEnd is how long the end of the gateway waits for the files of the recording.
const recordingEnd = 5 * time.Second

// endRecording writes what waits.
func (g *Gateway) endRecording() {
	if g.recorder == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordingEnd)
	defer cancel()
	if err := g.recorder.Close(ctx); err != nil {
		g.log.Warn("gateway: the end of the recording is lost", "error", err)
	}
}

// decode returns a message that is forwarded.
func (g *Gateway) decode(method string, reply bool, m *codec.Encoded) (any, error) {
	e := (*g.methods.offered.Load())[method]
	if e == nil || m.Codec != codec.ProtobufID {
		return nil, errOpaque
	}
	in, out, err := e.method.messages.of(e.method.contract, e.method.name)
	if err != nil {
		return nil, err
	}
	if reply {
		in = out
	}
	msg := dynamicpb.NewMessage(in)
	return msg, proto.Unmarshal(m.Data, msg)
}

var errOpaque = errors.New("the message cannot be decoded")

// messages are the types of the messages of a protobuf method, which are made when they are first
// needed.
type messages struct {
	once    sync.Once
	in, out protoreflect.MessageDescriptor
	err     error
}

func (t *messages) of(source *contract.Source, method string) (in, out protoreflect.MessageDescriptor, err error) {
	t.once.Do(func() { t.in, t.out, t.err = messageTypes(source, method) })
	return t.in, t.out, t.err
}

// messageTypes returns the types of the messages of a method.
func messageTypes(source *contract.Source, method string) (in, out protoreflect.MessageDescriptor, err error) {
	if source == nil {
		return nil, nil, errOpaque
	}
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(source.Descriptors(), set); err != nil {
		return nil, nil, err
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, nil, err
	}
	d, err := files.FindDescriptorByName(protoreflect.FullName(method))
	if err != nil {
		return nil, nil, err
	}
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, nil, errOpaque
	}
	return m.Input(), m.Output(), nil
}
