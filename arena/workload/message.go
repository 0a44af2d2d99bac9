// Package workload is what the Go peers of the arena share: the messages of its workloads, the
// load that a client program makes, and the command lines of the contract.
package workload

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

//go:generate env GOWORK=off go run -C ../../internal/tools ./pbgen -root ../.. -vt arena/workload/benchmark.proto arena/workload/math.proto

// Text is the value of every string field of the message of 581 bytes.
const Text = "许多往事在眼前一幕一幕，变的那麼模糊"

// The payloads of say.
const (
	StandardPayload = 581
	LeastPayload    = 64
)

// ErrWrong says that a reply arrived and was not the right one. The load counts it as wrong.
var ErrWrong = errors.New("wrong reply")

// NewMessage returns the request of say whose protobuf encoding has the given number of bytes.
func NewMessage(payload int) (*BenchmarkMessage, error) {
	if payload == StandardPayload {
		return filled(), nil
	}
	if payload < LeastPayload {
		return nil, fmt.Errorf("payload of %d bytes: %d is the least", payload, LeastPayload)
	}
	m := &BenchmarkMessage{Field1: proto.String("x"), Field2: proto.Int32(1), Field3: proto.Int32(1)}
	for pad := payload - m.SizeVT(); pad > 0; pad-- {
		m.Field9 = proto.String(strings.Repeat("x", pad))
		if m.SizeVT() == payload {
			return m, nil
		}
		if m.SizeVT() < payload {
			break
		}
	}
	return nil, fmt.Errorf("payload of %d bytes: no message has that size, %d has", payload, payload+1)
}

// filled sets every scalar and string field and leaves the repeated one empty.
func filled() *BenchmarkMessage {
	m := new(BenchmarkMessage)
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.IsList() {
			continue
		}
		switch f.Kind() {
		case protoreflect.StringKind:
			r.Set(f, protoreflect.ValueOfString(Text))
		case protoreflect.BoolKind:
			r.Set(f, protoreflect.ValueOfBool(true))
		case protoreflect.Int32Kind:
			r.Set(f, protoreflect.ValueOfInt32(100000))
		case protoreflect.Int64Kind:
			r.Set(f, protoreflect.ValueOfInt64(100000))
		}
	}
	return m
}

// The two fields that a server sets in the message.
const (
	AnswerField1 = "OK"
	AnswerField2 = 100
)

// Answer makes a request of say its reply, after the delays that the server was started with.
func (o *ServerOptions) Answer(m *BenchmarkMessage) {
	o.Delay()
	m.Field1, m.Field2 = proto.String(AnswerField1), proto.Int32(AnswerField2)
}

// Said is a reply of say: BenchmarkMessage, or the type of a peer whose encoding is not protobuf.
type Said interface {
	GetField1() string
	GetField2() int32
}

// Check returns ErrWrong unless m is a reply of say.
func Check(m Said) error {
	if m.GetField1() != AnswerField1 || m.GetField2() != AnswerField2 {
		return ErrWrong
	}
	return nil
}

// Delay sleeps and works as long as the server was told to, after it has waited for one of its
// slots.
func (o *ServerOptions) Delay() {
	if o.slots != nil {
		o.slots <- struct{}{}
		defer func() { <-o.slots }()
	}
	if o.Sleep > 0 {
		time.Sleep(o.Sleep)
	}
	if o.Work > 0 {
		for end := time.Now().Add(o.Work); time.Now().Before(end); {
		}
	}
}
