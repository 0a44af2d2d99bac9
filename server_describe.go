package anser

import (
	"context"
	"reflect"
	"sync"

	"github.com/anser-rpc/anser/contract"
)

// MethodsName is the built-in method that lists the methods of a server. Its request is [None] and
// its reply [MethodList], both in the JSON codec or MessagePack. [NoDescribe] disables it.
const MethodsName = builtinPrefix + "Methods"

// MethodList is the reply of [MethodsName].
type MethodList struct {
	Methods []MethodInfo `json:"methods"` // sorted by name
}

// MethodInfo describes one method.
type MethodInfo struct {
	Name       string   `json:"name"`
	Aliases    []string `json:"aliases,omitempty"`
	Request    Shape    `json:"request"`
	Reply      Shape    `json:"reply"`
	Idempotent bool     `json:"idempotent,omitempty"`
	Stream     bool     `json:"stream,omitempty"` // Request and Reply describe one message
	Oneway     bool     `json:"oneway,omitempty"` // there is no reply: see [Send]
	// ClientStream and ServerStream tell which sides of a stream send any number of messages.
	ClientStream bool `json:"client_stream,omitempty"`
	ServerStream bool `json:"server_stream,omitempty"`
	// The others are those of the method's contract; see [Contract].
	Doc         string        `json:"doc,omitempty"` // comment of the schema
	Deprecated  bool          `json:"deprecated,omitempty"`
	Contract    contract.Kind `json:"contract,omitempty"`    // language of the schema
	Fingerprint string        `json:"fingerprint,omitempty"` // see [contract.Schema.Fingerprint]
}

// addDescribe serves MethodsName.
func (s *Server) addDescribe() {
	list := &methodLister{server: s}
	s.add([]HandleOption{idempotentOption{}}, &method{
		name: MethodsName, builtin: true, idempotent: true,
		newRequest: func() any { return new(None) },
		handle:     func(ctx context.Context, _ any) (any, error) { return callFrom(ctx).conn.visible(list.get()), nil },
		request:    reflect.TypeFor[None](), reply: reflect.TypeFor[MethodList](),
	})
}

// methodLister caches the list of a server's methods until more are added: building it costs more
// than a peer should be able to request repeatedly.
type methodLister struct {
	server *Server

	mu      sync.Mutex // guards the fields below
	list    *MethodList
	version uint64 // version of the method table
}

func (l *methodLister) get() *MethodList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if version := l.server.table.version.Load(); l.list == nil || l.version != version {
		l.list, l.version = l.server.describe(), version
	}
	return l.list
}

func (s *Server) describe() *MethodList {
	list := &MethodList{Methods: []MethodInfo{}} // not null in JSON
	aliases := make(map[*method][]string)
	s.table.each(func(name string, m *method, a *alias) {
		if a != nil {
			aliases[m] = append(aliases[m], name)
		}
	})
	s.table.each(func(name string, m *method, a *alias) {
		if m.builtin || m.foreign || a != nil {
			return
		}
		info := MethodInfo{
			Name: name, Aliases: aliases[m], Idempotent: m.idempotent, Oneway: m.oneway, Stream: m.converse != nil,
			ClientStream: m.sides.client, ServerStream: m.sides.server,
		}
		m.contract.describe(&info)
		if c := m.contract; c != nil && c.schema.Kind == contract.FlatBuffers {
			info.Request = tableShape(c.schema, c.method.Request)
			if info.Reply = shapeOf(m.reply); !m.oneway {
				info.Reply = tableShape(c.schema, c.method.Reply)
			}
		} else if m.in != nil {
			info.Request, info.Reply = m.in.shape(), m.out.shape()
		} else {
			info.Request, info.Reply = shapeOf(m.request), shapeOf(m.reply)
		}
		list.Methods = append(list.Methods, info)
	})
	return list
}
