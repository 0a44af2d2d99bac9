package main

import (
	"errors"
	"fmt"

	"buf.build/go/hyperpb"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/arena/codecs/internal/corpus"
	"github.com/anser-rpc/anser/codec/protobuf"
)

// subject is one direction of a codec.
type subject struct{ run func() }

// trial is a message with what is compared on it.
type trial struct {
	data           []byte
	encode, decode []subject
}

var errSmaller = errors.New("the encoded message is not as long as the standard library's")

// newTrial checks that all codecs make the same of a message. Each decoder makes a new message
// that is not given back, but for the last one, which reuses its memory.
func newTrial(c corpus.Case) (*trial, error) {
	m, ours := c.Message, protobuf.New()
	data, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	t := &trial{data: data}
	buffer := make([]byte, 0, 2*len(data))
	for name, encode := range encoders(m, ours) {
		out, err := encode(buffer)
		if err == nil && len(out) != len(data) {
			err = errSmaller
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", encoderNames[name], err)
		}
		t.encode = append(t.encode, subject{func() { must(encode(buffer)) }})
	}
	for name, decode := range decoders(c, ours) {
		back, err := decode(data)
		if err == nil && !proto.Equal(back, m) {
			err = fmt.Errorf("it becomes %v", back)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", decoderNames[name], err)
		}
		t.decode = append(t.decode, subject{func() { must(decode(data)) }})
	}
	return t, nil
}

var (
	encoderNames = []string{"anser", "vtproto", "standard"}
	decoderNames = append(encoderNames[:3:3], "hyperpb", "hyperpb with memory that is reused")
)

func encoders(m corpus.Message, ours *protobuf.Codec) []func(dst []byte) ([]byte, error) {
	return []func(dst []byte) ([]byte, error){
		func(dst []byte) ([]byte, error) { return ours.Append(dst, m) },
		func(dst []byte) ([]byte, error) {
			n := m.SizeVT()
			_, err := m.MarshalToSizedBufferVT(dst[:n])
			return dst[:n], err
		},
		func(dst []byte) ([]byte, error) { return proto.MarshalOptions{}.MarshalAppend(dst, m) },
	}
}

func decoders(c corpus.Case, ours *protobuf.Codec) []func(data []byte) (proto.Message, error) {
	typ := hyperpb.CompileMessageDescriptor(c.Message.ProtoReflect().Descriptor())
	shared, used := new(hyperpb.Shared), false
	return []func(data []byte) (proto.Message, error){
		func(data []byte) (proto.Message, error) {
			m := c.New()
			return m, ours.UnmarshalFresh(data, m)
		},
		func(data []byte) (proto.Message, error) {
			m := c.New()
			return m, m.UnmarshalVT(data)
		},
		func(data []byte) (proto.Message, error) {
			m := c.New()
			return m, proto.Unmarshal(data, m)
		},
		func(data []byte) (proto.Message, error) {
			m := hyperpb.NewMessage(typ)
			return m, m.Unmarshal(data)
		},
		func(data []byte) (proto.Message, error) {
			if used {
				shared.Free()
			}
			used = true
			m := shared.NewMessage(typ)
			return m, m.Unmarshal(data)
		},
	}
}

func must[T any](_ T, err error) {
	if err != nil {
		panic(err) // it was no error the first time
	}
}
