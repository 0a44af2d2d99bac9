// Package benchmark is the workload as Tars sees it: a message, and a servant with the methods of
// both services. A servant of Tars listens on an address of its own, and the arena has one for
// all.
package benchmark

import (
	"context"
	"fmt"

	"github.com/TarsCloud/TarsGo/tars/model"
	"github.com/TarsCloud/TarsGo/tars/protocol/codec"
	"github.com/TarsCloud/TarsGo/tars/protocol/res/basef"
	"github.com/TarsCloud/TarsGo/tars/protocol/res/requestf"
	"github.com/TarsCloud/TarsGo/tars/util/tools"
)

//go:generate env GOWORK=off go run ../gen

// The tags of a method's result and of its parameters.
const (
	tagResult = iota
	tagFirst
	tagSecond
)

const (
	methodSay = "say"
	methodAdd = "add"
)

// ReadBlock decodes a struct.
func (m *Message) ReadBlock(r *codec.Reader, tag byte) error {
	if _, err := r.SkipTo(codec.StructBegin, tag, true); err != nil {
		return err
	}
	if err := m.ReadFrom(r); err != nil {
		return err
	}
	return r.SkipToStructEnd()
}

// WriteBlock encodes a struct.
func (m *Message) WriteBlock(b *codec.Buffer, tag byte) error {
	if err := b.WriteHead(codec.StructBegin, tag); err != nil {
		return err
	}
	if err := m.WriteTo(b); err != nil {
		return err
	}
	return b.WriteHead(codec.StructEnd, 0)
}

// Servant is what a server implements.
type Servant interface {
	Say(ctx context.Context, m *Message) (*Message, error)
	Add(ctx context.Context, a, b int32) (int32, error)
}

// Workload is the client's proxy of a servant, and the server's dispatcher to one. It is safe for
// concurrent use once SetServant has returned.
type Workload struct{ servant model.Servant }

// SetServant is called by TarsGo.
func (w *Workload) SetServant(s model.Servant) { w.servant = s }

// Say calls say.
func (w *Workload) Say(ctx context.Context, m *Message) (*Message, error) {
	b := codec.NewBuffer()
	if err := m.WriteBlock(b, tagFirst); err != nil {
		return nil, err
	}
	r, err := w.call(ctx, methodSay, b)
	if err != nil {
		return nil, err
	}
	reply := new(Message)
	return reply, reply.ReadBlock(r, tagResult)
}

// Add calls add.
func (w *Workload) Add(ctx context.Context, x, y int32) (int32, error) {
	b := codec.NewBuffer()
	if err := b.WriteInt32(x, tagFirst); err != nil {
		return 0, err
	}
	if err := b.WriteInt32(y, tagSecond); err != nil {
		return 0, err
	}
	r, err := w.call(ctx, methodAdd, b)
	if err != nil {
		return 0, err
	}
	var sum int32
	err = r.ReadInt32(&sum, tagResult, true)
	return sum, err
}

func (w *Workload) call(ctx context.Context, method string, b *codec.Buffer) (*codec.Reader, error) {
	reply := new(requestf.ResponsePacket)
	if err := w.servant.TarsInvoke(ctx, byte(basef.TARSNORMAL), method, b.ToBytes(), nil, nil, reply); err != nil {
		return nil, err
	}
	return codec.NewReader(tools.Int8ToByte(reply.SBuffer)), nil
}

// Dispatch calls the servant. Of Tars's three protocols it knows that of its own clients.
func (w *Workload) Dispatch(ctx context.Context, servant any, request *requestf.RequestPacket, reply *requestf.ResponsePacket, _ bool) error {
	if request.IVersion != basef.TARSVERSION {
		return fmt.Errorf("version %d of the protocol: only %d is served", request.IVersion, basef.TARSVERSION)
	}
	r, b := codec.NewReader(tools.Int8ToByte(request.SBuffer)), codec.NewBuffer()
	var err error
	switch request.SFuncName {
	case methodSay:
		err = dispatchSay(ctx, servant.(Servant), r, b)
	case methodAdd:
		err = dispatchAdd(ctx, servant.(Servant), r, b)
	default:
		err = fmt.Errorf("function %q: there are %s and %s", request.SFuncName, methodSay, methodAdd)
	}
	if err != nil {
		return err
	}
	*reply = requestf.ResponsePacket{
		IVersion:   request.IVersion,
		IRequestId: request.IRequestId,
		SBuffer:    tools.ByteToInt8(b.ToBytes()),
	}
	return nil
}

func dispatchSay(ctx context.Context, servant Servant, r *codec.Reader, b *codec.Buffer) error {
	var m Message
	if err := m.ReadBlock(r, tagFirst); err != nil {
		return err
	}
	reply, err := servant.Say(ctx, &m)
	if err != nil {
		return err
	}
	return reply.WriteBlock(b, tagResult)
}

func dispatchAdd(ctx context.Context, servant Servant, r *codec.Reader, b *codec.Buffer) error {
	var x, y int32
	if err := r.ReadInt32(&x, tagFirst, true); err != nil {
		return err
	}
	if err := r.ReadInt32(&y, tagSecond, true); err != nil {
		return err
	}
	sum, err := servant.Add(ctx, x, y)
	if err != nil {
		return err
	}
	return b.WriteInt32(sum, tagResult)
}
